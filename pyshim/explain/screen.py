"""The screen of one kernel, and the parts that every screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, Union

from pyshim.explain import planner
from pyshim.explain.answer import Answer, Explanation, Warps
from pyshim.explain.planner import RESIZES
from pyshim.explain.policies import PolicyRule
from pyshim.policy.gpus import AMD

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


_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "resident")
_SIZE_HEADS = ("blocks", "of its own", "make room, bytes")
_MOST_SIZES = 5  # rows; small kernels have up to 32
_LIMITS = {"shared_memory": "shared memory", "slots": "block slots"}  # the others are words themselves


def screen(found: Explanation, usual: str = "") -> Iterator[Part]:
    """Return the screen of one kernel.

    usual: its communication, if no option gives it."""
    return apart(_headline(found.answer, found.warps), _footprints(found, usual), _sizes(found.answer), _verdict(found))


def decided(control: str, size: int, asked: int) -> str:
    """Return what is done, with its number if the size changes."""
    return control if size == asked else f"{control}: {size:,} bytes of dynamic shared memory instead of {asked:,}"


def _asks(rule: PolicyRule) -> str:
    """Return what a rule asks for."""
    words = [rule.shape]
    if rule.asked.keep:
        words.append(f"keep_at_least {rule.asked.keep}%")
    if rule.place and rule.shape != "leave":
        words.append(f"when {rule.when}")
    return ", ".join(words)


def _headline(answer: Answer, warps: Warps) -> Iterator[Part]:
    gpu, request = answer.case.gpu, answer.request
    one, registers = "multiprocessor", f"{gpu.registers:,} registers"
    if gpu.vendor == AMD:
        one, registers = "compute unit", f"{gpu.registers // planner.struct(gpu).warp_size:,} registers a lane"
    if request.kernel:
        under = f" under {request.policy}" if request.policy is not None else ""
        yield Prose(f"{request.kernel} on {(request.gpu or '').lower()}{under}")
    yield Prose(
        f"{gpu.name}: {gpu.multiprocessors} {one}s, and each has room for {gpu.blocks} blocks, "
        f"{warps.most} warps, {registers} and {gpu.shared_memory:,} bytes of shared memory"
    )


def _footprints(found: Explanation, usual: str) -> Iterator[Part]:
    rows, limits = [], []
    for who, one in (("computation", found.computation), ("communication", found.communication)):
        rows.append((who, *(f"{number:,}" for number in one.block[:4]), f"{one.blocks}"))
        limits.append(
            f"{who} by {_LIMITS.get(one.limit, one.limit)}" if one.limit else f"{who}: no block fits on this GPU"
        )
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


def _verdict(found: Explanation) -> Iterator[Part]:
    """Yield what is done, why, by which rule, what it costs, and what would change a refusal."""
    answer, asked = found.answer, found.answer.request.asked
    control, reason, size = answer.decision[:3]
    where = ": launched as asked" if size == asked else " (in overlap windows)" if answer.outside else ""
    yield Prose(f"{decided(control, size, asked)}{where}", "decision")
    yield Prose(f"{reason}: {planner.sentence(reason)}", "because")
    yield Prose(_rule(answer.rule), "rule")
    if answer.plan.native_blocks:
        yield Prose(_cost(answer, found.warps), "cost")
        if _as_asked(answer):
            yield Prose(_as_asked(answer), "as asked")
    if answer.outside:
        yield Prose(f"of overlap windows the launch is left as asked ({answer.outside})", "outside")
    if found.raises not in (None, "off") and reason != "communication":
        yield Prose(f"left as asked on a raised stream (`streams: {{raise: {_written(found.raises)}}}`)", "priority")
    if answer.help:
        yield Prose(answer.help.replace(" would: ", ": "), "would help")


def _written(raises: object) -> str:
    """Return a value of `raise` as a policy says it."""
    return f"{{share: {raises['share']}}}" if isinstance(raises, dict) else str(raises)


def _rule(rule: PolicyRule | None) -> str:
    if rule is None:
        return "no rule of the policy matches"
    if rule.policy is None:
        return _asks(rule)
    if rule.place is None:
        return f"built in: {rule.match} are left alone, before the rule on line {rule.line}"
    return f"{rule.place} matches {rule.match} and asks for {_asks(rule)}"


def _cost(answer: Answer, warps: Warps) -> str:
    native = answer.plan.native_blocks
    before = _occupancy(native, warps.as_asked, warps.most)
    if native == answer.decision.blocks:
        return f"nothing: {before}, as before"
    return f"{before} before, {_occupancy(answer.decision.blocks, warps.as_decided, warps.most)} after"


def _occupancy(blocks: int, warps: int, most: int) -> str:
    return f"{plural(blocks, 'block')} ({plural(warps, 'warp')}, {100 * warps // most} % of {most})"


def _as_asked(answer: Answer) -> str:
    """Return how communication fits without any change of size."""
    beside, native = answer.plan.beside_after_drain, answer.plan.native_blocks
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return "communication fits beside all of its blocks" if answer.decision.control in RESIZES else ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits once {native - beside} of {native} blocks have ended"
