"""How much of communication computation hides, on one GPU and step by step.

The definitions are those of Holistic Trace Analysis (HTA, Meta), where it has them:

- Intervals of one kind are merged before they are summed (hta.utils.utils.merge_kernel_intervals), so time counts
  once however many kernels run in it.
- Computation, idle: "Temporal Breakdown" (hta.analyzers.breakdown_analysis.BreakdownAnalysis.get_temporal_breakdown):
  computation is the merged time of kernels that are neither communication nor memory operations; idle is when nothing
  runs, copies included.
- Overlap share: "Communication Computation Overlap" (hta.analyzers.communication_analysis.CommunicationAnalysis.
  get_comm_comp_overlap): time in which communication and computation run, divided by the time of communication. The
  time in both is what we call hidden, the rest of communication exposed.

Ours differ where HTA has nothing, or what would mislead here: which kernels communicate is the library's own list of
families, not a name that begins with nccl; and every number is of a step and then averaged over the steps, where HTA
takes all from the first kernel to the last. The last step is left out, as HTA does it. (A test has what HTA 0.5.0 says
of traces without steps, where the two are to be equal.)

The slowdown of computation is ours: how long a kernel takes where communication runs beside it for at least half of its
time, against the same kernel over the same grid in the same step where none does; weighted by the time that these
would take. 1.0 is no slowdown.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyshim.traces.columns import Columns, Kind, Ran


@dataclass
class Times:
    """Of one step; microseconds."""

    span: float = 0.0
    computation: float = 0.0
    communication: float = 0.0
    hidden: float = 0.0
    idle: float = 0.0
    slowdown: float | None = None  # a factor; None where no kernel ran in both ways

    @property
    def exposed(self) -> float:
        return self.communication - self.hidden

    @property
    def share(self) -> float | None:
        """0 to 1; None without communication."""
        return self.hidden / self.communication if self.communication > 0 else None


@dataclass(frozen=True)
class Segment:
    """A time in which the same kinds run, inside one step."""

    step: int
    length: float
    running: tuple[bool, bool, bool]  # by Kind


@dataclass(frozen=True)
class Alone:
    """One kernel of computation, at its end: how long of its time communication ran beside it."""

    step: int
    shape: int
    length: float
    beside: float


def measure(columns: Columns, bounds: Sequence[float]) -> list[Times]:
    """Measure each step. bounds: as in Steps, at least two."""
    steps = [Times(span=end - start) for start, end in zip(bounds, bounds[1:])]
    slowdown = _Slowdown()
    for found in sweep(columns, bounds):
        if isinstance(found, Alone):
            slowdown.add(found)
            continue
        times, (computation, communication, memory) = steps[found.step], found.running
        times.computation += found.length * computation
        times.communication += found.length * communication
        times.hidden += found.length * (computation and communication)
        times.idle += found.length * (not (computation or communication or memory))
    for number, times in enumerate(steps):
        times.slowdown = slowdown.of(number)
    return steps


def sweep(columns: Columns, bounds: Sequence[float]) -> Iterator[Segment | Alone]:
    """Yield the time between first and last bound, and the computation inside it, in one pass with little memory."""
    return _Sweep(columns, bounds).run()


class _Sweep:
    def __init__(self, columns: Columns, bounds: Sequence[float]) -> None:
        self.columns = columns
        self.bounds = bounds
        self.now = bounds[0]
        self.step = 0
        self.running = [0, 0, 0]
        self.communicated = 0.0  # since the beginning
        self.open: list[tuple[float, float, int, float]] = []  # end, start, shape, communicated at the start

    def run(self) -> Iterator[Segment | Alone]:
        for ran in self.columns.in_order():
            if ran.start_us >= self.bounds[-1]:
                break
            yield from self._until(ran.start_us)
            heapq.heappush(self.open, (ran.end_us, ran.start_us, ran.shape, self.communicated))
            self.running[self.columns.kind(ran)] += 1
        yield from self._until(self.bounds[-1])

    def _until(self, time: float) -> Iterator[Segment | Alone]:
        while self.open and self.open[0][0] <= time:
            end, start, shape, communicated = heapq.heappop(self.open)
            yield from self._pass(end)
            kind = self.columns.shapes[shape].kind
            self.running[kind] -= 1
            if kind is Kind.COMPUTATION and self.bounds[0] <= start and end > start:
                step = bisect_right(self.bounds, start) - 1
                yield Alone(step, shape, end - start, self.communicated - communicated)
        yield from self._pass(time)

    def _pass(self, time: float) -> Iterator[Segment]:
        """Up to this time, cut where a step ends."""
        running = tuple(count > 0 for count in self.running)
        while self.now < time:
            end = min(time, self.bounds[self.step + 1])
            yield Segment(self.step, end - self.now, (running[0], running[1], running[2]))
            self.communicated += (end - self.now) * running[Kind.COMMUNICATION]
            self.now = end
            if end == self.bounds[self.step + 1] and self.step + 2 < len(self.bounds):
                self.step += 1


class _Slowdown:
    """Lengths and counts of a shape in one step, alone and beside communication: intervals over steps need both."""

    def __init__(self) -> None:
        self.steps: defaultdict[int, dict[int, list[float]]] = defaultdict(dict)

    def add(self, kernel: Alone) -> None:
        if 0 < kernel.beside < kernel.length / 2:
            return
        sums = self.steps[kernel.step].setdefault(kernel.shape, [0.0, 0, 0.0, 0])
        beside = 2 * (kernel.beside > 0)
        sums[beside] += kernel.length
        sums[beside + 1] += 1

    def of(self, step: int) -> float | None:
        took = would_take = 0.0
        for alone, alone_count, beside, beside_count in self.steps[step].values():
            if alone_count:
                took += beside
                would_take += beside_count * alone / alone_count
        return took / would_take if would_take > 0 else None


def overlapping(columns: Columns, begin: float, end: float) -> Iterator[Ran]:
    """Yield what ran, at least in part, between these times."""
    for ran in columns.in_order():
        if ran.start_us >= end:
            return
        if ran.end_us > begin:
            yield ran
