"""What of an earlier start ends a step earlier: the work of a full GPU takes its time, in whatever order it runs.

Raised work runs beside the kernels that it waited behind, and these end later by as much. What is won is what follows
it while the GPU is not full and the streams in front do nothing: copies and small kernels of others, the host, another
rank. That runs beside these kernels then, until the next one that fills the GPU begins on a stream that is not raised.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from pyshim.diagnosis.intervals import Interval, both, length, without

_BETWEEN_US = 2.5  # from one kernel of a stream to the next, launched ahead


def saved(
    earlier: Sequence[Interval], full: Sequence[Interval], in_front: Sequence[Interval], end_us: float
) -> Iterable[Interval]:
    """Yield what is won behind each spell of the work in front. All are sets of time of one GPU (intervals.py).

    earlier: how much earlier raised work would begin, up to when it began; full: when any kernel that fills the GPU
    ran, or any work of the streams in front; in_front: when a kernel that fills the GPU ran on a stream that is not
    raised; end_us: of the steps, where no such kernel follows."""
    spells = _spells(in_front)
    if not spells:
        return
    starts = [start for start, _ in earlier]
    next_begins = [*(start for start, _ in spells[1:]), end_us]
    behind = [(end, max(end, begins)) for (_, end), begins in zip(spells, next_begins)]
    free: defaultdict[int, float] = defaultdict(float)
    for number, first, last in both(behind, without([(spells[0][1], inf)], full)):
        free[number] += last - first
    for number, (begin, end) in enumerate(spells):
        moved = length(earlier[bisect_left(starts, begin) : bisect_left(starts, next_begins[number])])
        yield end, end + min(moved, free[number])


def _spells(of: Sequence[Interval]) -> list[Interval]:
    """Return the intervals without the gaps between one kernel and the next."""
    found: list[Interval] = []
    for start, end in of:
        if found and start - found[-1][1] < _BETWEEN_US:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found
