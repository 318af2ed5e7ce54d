"""Times, shares and names as the answer writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pyshim.diagnosis.parts import cut
from pyshim.profiles.kernel_names import readable

COPY = "copy or memset"


class Stepped(Protocol):
    """What is given by step, or for a whole trace."""

    @property
    def steps(self) -> str | None:
        """The name of the ranges that are steps."""

    @property
    def span_us(self) -> float:
        """How long a step is."""


def kernel_name(name: str, longest: int = 200) -> str:
    """Return the name of a kernel, or of copies, for people."""
    shown = name if name == COPY else readable(name)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def streams(names: Iterable[str]) -> str:
    """Return streams with their noun."""
    of = list(names)
    return f"{'stream' if len(of) == 1 else 'streams'} {listed(of)}"


def listed(words: Iterable[str]) -> str:
    """Return three of them, and how many more there are."""
    shown, more = cut(list(words), 3)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def plural_of(name: str, number: float = 2.0) -> str:
    """Return the name of a collective for several of them."""
    if name == "send and receive":
        return "sends and receives"
    return name if number == 1 or name.endswith(("s", "h")) else f"{name}s"


def percent(share: float) -> str:
    """Return a share: whole percents, and tenths of the small ones."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share < 0.0005 else f"{100 * share:.1f} %"


def milliseconds(microseconds: float, of: float | None = None) -> str:
    """Return a time with its unit. of: the time that it is a part of: 0.494 of 2.373 ms."""
    whole = microseconds if of is None else of
    digits = 3 if whole < 10_000 else 2 if whole < 100_000 else 1
    part = f"{microseconds / 1000:,.{digits}f}"
    return f"{part} ms" if of is None else f"{part} of {of / 1000:,.{digits}f} ms"


def size(number: float) -> str:
    """Return bytes with their unit."""
    units = ["B", "kB", "MB", "GB"]
    while number >= 999.5 and len(units) > 1:
        number /= 1000
        del units[0]
    return f"{number:.3g} {units[0]}" if number < 1000 else f"{number:,.0f} {units[0]}"


def part_of(one: Stepped, time_us: float) -> str:
    """Return a time as a share of a step; one of no length has no parts."""
    return percent(time_us / one.span_us if one.span_us else 0.0)


def a_step(one: Stepped) -> str:
    """Return what times of a process are given for."""
    return "a step" if one.steps else "in all"


def of_step(one: Stepped) -> str:
    """Return what the shares of a process are of."""
    return "a step" if one.steps else "the trace"
