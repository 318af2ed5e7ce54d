"""The parts that every screen is made of, and the screen of one kernel beside one communication kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Union

if TYPE_CHECKING:  # a trace is answered without any of them
    from pyshim.explain.answer import Answer, PolicyRule

Item = TypeVar("Item")


class Table(NamedTuple):
    """Rows below heads."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: Sequence[int] = (0,)  # columns of text
    above: bool = False  # names in the first column are worth a line of their own


class Prose(NamedTuple):
    """A paragraph."""

    text: str
    label: str = ""  # stands before it
    width: int = 12  # columns of the label


class Line(NamedTuple):
    """A line that is never broken."""

    text: str


Part = Union[Table, Prose, Line]


def apart(*groups: Iterable[Part]) -> Iterator[Part]:
    """Yield all parts, with an empty line between groups that are not empty."""
    first = True
    for group in groups:
        parts = list(group)
        if parts and not first:
            yield Line("")
        first = first and not parts
        yield from parts


def plural(number: int, word: str, words: str = "") -> str:
    """Return a number with its noun. words: the plural if it is not word + s."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def cut(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Return the first items, and how many more there are; a single item more is shown rather than counted."""
    return (items, 0) if len(items) <= most + 1 else (items[:most], len(items) - most)


# ---- one kernel ----

_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "resident")
_SIZE_HEADS = ("blocks", "of its own", "make room, bytes")
_MOST_SIZES = 5  # rows; small kernels have up to 32
_LIMITS = {"shared_memory": "shared memory", "slots": "block slots"}  # the others are words themselves


def screen(answer: Answer, usual: str = "") -> Iterator[Part]:
    """Return the screen of one kernel.

    usual: its communication, if no option gives it."""
    return apart(_footprints(answer, usual), _sizes(answer), _verdict(answer))


def _footprints(answer: Answer, usual: str) -> Iterator[Part]:
    request = answer.request
    kernel = f"{request.kernel} on " if request.kernel else ""
    yield Prose(f"{kernel}{answer.case.gpu.name}" + (f" under {request.policy}" if request.policy else ""))
    yield Line("")
    rows, limits = [], []
    for who, (block, blocks, limit) in zip(("computation", "communication"), answer.residents):
        rows.append((who, *(f"{number:,}" for number in block[:4]), f"{blocks}"))
        limits.append(f"{who} by {_LIMITS.get(limit, limit)}" if limit else f"{who}: no block fits on this GPU")
    yield Table(_HEADS, rows)
    yield Prose(", ".join(limits), "limited")
    if usual:
        yield Prose(f"communication: {usual} (--comm-threads and similar options change it)")


def _sizes(answer: Answer) -> Iterator[Part]:
    """Yield the dynamic sizes with which so many blocks stay resident, from the most blocks down."""
    plan = answer.plan
    rows = [
        (f"{one.blocks}", f"{100 * one.blocks // plan.native_blocks} %", f"{one.minimum:,} to {one.maximum:,}")
        for one in plan.windows
    ]
    shown, more = cut(rows, _MOST_SIZES)
    if shown:
        yield Table(_SIZE_HEADS, shown, ())
    if more:
        yield Prose(f"... and {more} more for fewer blocks (--json lists all)")


def _verdict(answer: Answer) -> Iterator[Part]:
    """Yield what is done, why, by which rule, and what would change a refusal."""
    asked, native = answer.request.asked, answer.plan.native_blocks
    control, reason, size, blocks = answer.decision
    if size == asked:
        yield Prose(f"{control}: launched as asked", "decision")
    else:
        when = ", in overlap windows" if answer.rule and answer.rule.when == "overlapping" else ""
        kept = f"{blocks} of {native} blocks stay{when}"
        yield Prose(f"{control}: {size:,} bytes of dynamic shared memory instead of {asked:,} ({kept})", "decision")
    yield Prose(f"{reason}: {answer.because}", "because")
    yield Prose(_rule(answer.rule), "rule")
    if native and (text := _as_asked(answer)):
        yield Prose(text, "as asked")
    if answer.help:
        yield Prose(answer.help.replace(" would: ", ": "), "would help")


def _rule(rule: PolicyRule | None) -> str:
    if rule is None:
        return "no rule of the policy matches"
    words = [rule.shape]
    if rule.asked.keep:
        words.append(f"keep_at_least {rule.asked.keep}%")
    if rule.place and rule.shape != "leave":
        words.append(f"when {rule.when}")
    if rule.policy and not rule.place:
        return f"built in: kernels that compute and communicate at once are left alone, before line {rule.line}"
    return f"{rule.place}: {', '.join(words)}" if rule.place else ", ".join(words)


def _as_asked(answer: Answer) -> str:
    """Return how communication fits without any change of size."""
    beside, native = answer.plan.beside_after_drain, answer.plan.native_blocks
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return "communication fits beside all of its blocks" if answer.resizes else ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits after {native - beside} of {native} blocks have ended"
