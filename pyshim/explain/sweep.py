"""How one kernel depends on its dynamic shared memory: every size at which anything changes, as the library counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyshim.explain.answer import SHAPES, Explainer
from pyshim.explain.parts import Line, Part, Prose, Table
from pyshim.explain.text import decided

_HEADS = ("from", "to", "blocks", "warps", "beside", "reason")


class Step(NamedTuple):
    """A range of sizes, both ends included, in which nothing changes."""

    minimum: int
    maximum: int
    blocks: int  # resident
    beside: int  # of them, at most, beside one block of communication; -1: it fits nowhere
    reason: str  # that `dynamic_shared_memory=SIZE` gets, of a size inside that is not the asked one


class Sweep(NamedTuple):
    steps: list[Step]
    asked: int
    chosen: int  # what the planner launches with; asked, where it changes nothing
    control: str
    warps: int  # of one block
    most: int  # warps of a multiprocessor

    def mark(self, step: Step) -> str:
        """What is at this step."""
        marks = []
        if step.minimum <= self.asked <= step.maximum:
            marks.append("asked")
        if step.minimum <= self.chosen <= step.maximum and self.chosen != self.asked:
            marks.append(self.control)
        return ", ".join(marks)


def sweep(explainer: Explainer, found: Mapping[str, Any]) -> Sweep:
    """Of the explainer's last request, whose whole answer is found: from the asked size to the largest. No step where
    the kernel cannot be launched."""
    asked, most = explainer.footprint("computation")[3], explainer.largest()
    warps = found["warps"]
    each = warps["as_asked"] // found["native_blocks"] if found["native_blocks"] else 0
    steps = _steps(explainer, asked, most) if found["native_blocks"] else []
    chosen = found["dynamic_shared_memory"] if found["control"] in SHAPES else asked
    return Sweep(steps, asked, chosen, found["control"], each, warps["most"])


def _steps(explainer: Explainer, asked: int, most: int) -> list[Step]:
    """Both numbers only fall as the size rises, so where they are the same at both ends they are between."""

    def starts(low: int, high: int) -> Iterator[int]:
        """Of those from low + 1 to high that begin something new."""
        if explainer.sized(low)[:2] != explainer.sized(high)[:2]:
            if high - low == 1:
                yield high
            else:
                middle = (low + high) // 2
                yield from starts(low, middle)
                yield from starts(middle, high)

    first = [asked, *(starts(asked, most) if asked < most else ())]
    ends = [*(start - 1 for start in first[1:]), most]
    # The asked size itself is no change, and its reason says nothing about the others.
    return [Step(start, end, *explainer.sized(min(max(start, asked + 1), end))) for start, end in zip(first, ends)]


def screen(found: Sweep, answer: Mapping[str, Any], columns: int, is_ascii: bool) -> Iterator[Part]:
    """answer: the whole one that the sweep is of."""
    if not found.steps:
        yield Prose(f"{answer['reason']}: {answer['help']}")
        return
    said = [_block(who, answer[who]) for who in ("computation", "communication")]
    yield Prose(f"{answer['kernel'] or 'one kernel'} on {answer['gpu']} by dynamic shared memory; {'; '.join(said)}")
    yield Line("")
    yield table(found)
    yield Line("")
    yield from picture(found, columns, is_ascii)
    yield Line("")
    size = answer["dynamic_shared_memory"]
    chosen = decided(answer["control"], size, found.asked) if size != found.asked else answer["control"]
    yield Prose(f"{chosen} ({answer['reason']})", "decision")


def _block(who: str, block: Mapping[str, int]) -> str:
    threads, static, dynamic = (f"{block[name]:,}" for name in ("threads", "static_smem", "dynamic_smem"))
    return f"{who}: {threads} threads of {block['registers']} registers, {static} bytes static, {dynamic} dynamic"


def table(found: Sweep) -> Table:
    rows = [
        (
            f"{step.minimum:,}",
            f"{step.maximum:,}",
            f"{step.blocks}",
            f"{100 * step.blocks * found.warps // found.most} %",
            "-" if step.beside < 0 else f"{min(step.beside, step.blocks)}",
            step.reason,
        )
        for step in found.steps
    ]
    return Table(_HEADS, rows, (5,))


def picture(found: Sweep, columns: int, is_ascii: bool) -> Iterator[Part]:
    """A bar for each step: its blocks, and of them those beside which communication fits."""
    full, empty, arrow = ("#", ".", "<-") if is_ascii else ("█", "░", "◀")
    most = max(step.blocks for step in found.steps)
    number = max(len(f"{step.minimum:,}") for step in found.steps)
    mark = max(len(found.mark(step)) for step in found.steps)
    room = max(10, min(columns - number - mark - len(arrow) - len(str(most)) - 6, 48))
    unit = max(1, room // most)  # so that blocks can be counted, where there are few
    for step in found.steps:
        inside = max(0, min(step.beside, step.blocks))
        bar = full * _cells(inside, unit, most, room) + empty * _cells(step.blocks - inside, unit, most, room)
        said = f"  {arrow} {found.mark(step)}" if found.mark(step) else ""
        yield Line(f"{step.minimum:>{number},}  {bar} {step.blocks}{said}")
    yield Prose(f"{full} blocks beside which communication fits, {empty} blocks that must end before it does")


def _cells(blocks: int, unit: int, most: int, room: int) -> int:
    return blocks * unit if unit * most <= room else -(-blocks * room // most)


def as_json(found: Sweep) -> list[dict[str, Any]]:
    return [
        {
            "minimum": step.minimum,
            "maximum": step.maximum,
            "blocks": step.blocks,
            "warps": step.blocks * found.warps,
            "beside": step.beside,
            "reason": step.reason,
        }
        for step in found.steps
    ]
