"""How many processes are named in few words: by rank where they have one, and by host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

_SHOWN = 3
_RANGES = 6


class Somebody(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def rank(self) -> int | None: ...


def who(processes: Sequence[Somebody]) -> str:
    """Return "process node1:7", "rank 3 on node1" or "ranks 0-7 on node1 and node2"."""
    numbers = sorted({process.rank for process in processes if process.rank is not None})
    if not numbers or any(process.rank is None for process in processes):
        return which(processes)
    return f"{ranks(numbers)} on {some(sorted({process.host for process in processes}))}"


def which(processes: Sequence[Somebody]) -> str:
    """Return the process, by its id: "process node1:7 (rank 3)"."""
    named = [
        f"{process.host}:{process.pid}" + ("" if process.rank is None else f" (rank {process.rank})")
        for process in processes
    ]
    return f"{'processes' if len(named) > 1 else 'process'} {some(named)}"


def ranks(numbers: Sequence[int]) -> str:
    """Return "rank 3" or "ranks 0-7, 9"; numbers: in order."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_RANGES]]
    rest = sum(last - first + 1 for first, last in ranges[_RANGES:])
    return f"{'ranks' if len(numbers) > 1 else 'rank'} {', '.join(words)}" + (f" and {rest:,} more" if rest else "")


def some(names: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b, c and 4 more"; nothing of nothing."""
    names = list(names)
    if len(names) > _SHOWN + 1:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
