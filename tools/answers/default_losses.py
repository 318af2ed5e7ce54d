"""What the default policy loses against plain streams in all cells, what else loses it, and the noise."""

from __future__ import annotations

from collections.abc import Iterator

from answers.comparing import BOUND_PERCENT, Change, against, interval
from answers.markdown import percent
from answers.suite import DEFAULT, PLAIN, PRIORITY, Cell, Run

OBSERVE = "policy:observe"  # a process behind the library that changes nothing
MOST_NAMED = 5
RACE_MS = 0.3
AS_MUCH = 0.5  # of what the default loses: another arm explains it
# Why priority loses there, by what computes; where that is known.
KINDS = {"norm-swiglu": "two kernels bound by memory, and communication gets in between them anyway"}


def secondary(run: Run) -> str | None:
    """Half a sentence: the worst of the cells that are not primary."""
    found = against([cell for cell in run.cells if not cell.primary], DEFAULT, PLAIN)
    if found is None:
        return None
    return f"in secondary cells: default against plain at worst {interval(found.worst)} ({found.worst.cell.name})"


def noise(run: Run) -> str | None:
    """Ranges of medians over all cells that have the arm: of the default, and of what changes nothing."""
    pairs = [(name, against(run.cells, name, PLAIN)) for name in (OBSERVE, DEFAULT)]
    parts = [
        f"`{name}` {percent(found.best.median)} to {percent(found.worst.median)}" for name, found in pairs if found
    ]
    return f"medians of all cells against plain, from the best to the worst: {', '.join(parts)}" if parts else None


def reasons(run: Run) -> Iterator[str]:
    """Of the worst cells that lose more than the bound by the median, those of which an arm beside says why."""
    found = against(run.cells, DEFAULT, PLAIN)
    lost = [change for change in found.changes if change.median > BOUND_PERCENT] if found else []
    for change in lost[: -MOST_NAMED - 1 : -1]:
        if said := _reason(change):
            yield f"in {change.cell.name}, {percent(change.median)} against plain, {said}"


def _reason(change: Change) -> str | None:
    raised, nothing = (_median(change.cell, arm) for arm in (PRIORITY, OBSERVE))
    if nothing is None or raised is None:
        return None
    alone = f"`{OBSERVE}`, which changes nothing, is {percent(nothing)} from plain"
    if abs(nothing) >= AS_MUCH * change.median:
        ms = change.cell.arms[PLAIN].median
        return f"{alone}{f': in {ms:.2f} ms a race decides who is first' if ms < RACE_MS else ''}"
    if raised >= AS_MUCH * change.median:
        kind = KINDS.get(change.cell.computation)
        return f"priority alone loses {percent(raised)}{f' ({kind})' if kind else ''}; {alone}"
    return None


def _median(cell: Cell, arm: str) -> float | None:
    found = against([cell], arm, PLAIN)
    return found.median if found else None
