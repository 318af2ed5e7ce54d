"""How much of communication computation hides, on one GPU and step by step.

As in "Communication Computation Overlap" of Holistic Trace Analysis (Meta), intervals of one kind are merged before
they are summed: time counts once however many kernels run in it. The time in which communication and computation both
run is hidden, the rest of communication is exposed. Which kernels communicate is the library's own list of families.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from pyshim.traces.columns import Columns, Kind


@dataclass
class Times:
    """Of one step; microseconds."""

    span: float = 0.0
    communication: float = 0.0
    hidden: float = 0.0


def measure(columns: Columns, bounds: Sequence[float]) -> list[Times]:
    """Measure each step, in one pass with little memory. bounds: as in Steps, at least two."""
    steps = [Times(span=end - start) for start, end in zip(bounds, bounds[1:])]
    running = [0] * len(Kind)
    ends: list[tuple[float, Kind]] = []  # of what runs
    now, step = bounds[0], 0

    def advance(time: float) -> None:
        """Count the time until then, cut where a step ends."""
        nonlocal now, step
        while now < time:
            end = min(time, bounds[step + 1])
            if running[Kind.COMMUNICATION]:
                steps[step].communication += end - now
                steps[step].hidden += (end - now) * (running[Kind.COMPUTATION] > 0)
            now = end
            if end == bounds[step + 1] and step + 2 < len(bounds):
                step += 1

    def until(time: float) -> None:
        while ends and ends[0][0] <= time:
            end, kind = heapq.heappop(ends)
            advance(end)
            running[kind] -= 1
        advance(time)

    for ran in columns.in_order():
        if ran.start_us >= bounds[-1]:
            break
        until(ran.start_us)
        kind = columns.kind(ran)
        heapq.heappush(ends, (ran.end_us, kind))
        running[kind] += 1
    until(bounds[-1])
    return steps
