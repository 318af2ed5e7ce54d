"""What was ready on a GPU and stood behind blocks of another stream's kernel.

- It waited: it began later than it was ready (queues.py), and later than such work usually begins in this trace where
  nothing else runs.
- Behind a kernel of another stream: one that computes, ran when it began, and had begun before.
- Nothing refutes it: had the whole GPU been idle for a while meanwhile, the work would have begun then. So it was not
  ready, whatever the trace leaves out.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple

from pyshim import _native
from pyshim.diagnosis.idle import START_US
from pyshim.diagnosis.intervals import Interval, median, merged
from pyshim.diagnosis.queues import LEAST_US, Cause, Place, Queued, Queues
from pyshim.profiles.record import MemoryOperation, TracedGpu, TracedLaunch, Work

_AT_ONCE = 256  # a GPU runs at most 128 grids (CUDA C++ programming guide, compute capabilities), and some copies
_LONGEST_LAUNCH_US = 10.0  # a copy's, on an engine of its own

Resident = Callable[[TracedLaunch], "int | None"]  # blocks of such a kernel on the whole GPU; None: not known


def resident_on(gpu: TracedGpu) -> Resident:
    """Return how many blocks of a kernel a GPU holds, by its name, or by its architecture if it is not in gpu.def."""
    known = {_native.text(one.name): one for one in _native.gpus()}
    alike = {_native.text(one.architecture): one for one in known.values()}
    limits = known.get(gpu.name) or alike.get(gpu.architecture)
    multiprocessors = gpu.multiprocessors or (limits.multiprocessors if limits and gpu.name in known else 0)

    @functools.cache
    def blocks(*block: int) -> int | None:
        footprint = _native.ffi.new("struct overlap_footprint *", block)
        found = _native.library().overlap_occupancy_of(limits, footprint).blocks
        return int(found) * multiprocessors or None  # 0: it cannot have been launched

    def resident(launch: TracedLaunch) -> int | None:
        static, dynamic = launch.static_shared_memory, launch.dynamic_shared_memory
        if static is None or dynamic is None:
            static, dynamic = 0, launch.shared_memory
        block = launch.threads, launch.registers, static, dynamic
        numbers = [one for one in block if one is not None and 0 <= one < 1 << 32]  # a file may say anything
        return blocks(*numbers) if limits and len(numbers) == len(block) else None

    return resident


class Blocked(NamedTuple):
    """Work that could have begun at `start_us`."""

    queued: Queued
    start_us: float
    behind: TracedLaunch
    one_wave: bool

    @property
    def until_us(self) -> float:
        return self.queued.work.start_us

    @property
    def length_us(self) -> float:
        return self.until_us - self.start_us

    @property
    def behind_place(self) -> Place:
        return self.behind.device, self.behind.stream


class DeviceQueues:
    """What stood behind what on one GPU."""

    def __init__(self, queues: Queues, device: int, resident: Resident | None) -> None:
        self.streams = {stream.place[1]: stream for stream in queues.streams.values() if stream.place[0] == device}
        self.device = device
        self.resident = resident
        self.refuted: list[Blocked] = []
        self.queued = sorted(
            (one for stream in self.streams.values() for one in stream.works), key=lambda one: one.work.start_us
        )

    def blocked(self) -> Iterable[Blocked]:
        """Yield what waited. What the trace refutes is in `refuted` afterwards."""
        candidates = list(self._candidates())
        gaps = self._gaps()
        self.refuted = []
        takes = _usual(candidates)
        for one, behind, _ in candidates:
            if behind is None or one.released_us is None:
                continue
            start = max(one.released_us + takes.get(_kind(one), 0.0), behind.start_us)
            least = _LONGEST_LAUNCH_US if isinstance(one.work, MemoryOperation) else LEAST_US
            if one.work.start_us - start < least:
                continue
            found = Blocked(one, start, behind, self._is_one_wave(behind))
            if _is_refuted(one, gaps, takes.get(_kind(one), 0.0)):
                self.refuted.append(found)
            else:
                yield found

    def _gaps(self) -> list[Interval]:
        """Return when the whole GPU was idle for longer than ready work takes to begin."""
        busy = merged((one.work.start_us, one.work.end_us) for one in self.queued)
        return [(end, start) for (_, end), (start, _) in zip(busy, busy[1:]) if start - end > START_US]

    def _candidates(self) -> Iterable[tuple[Queued, TracedLaunch | None, bool]]:
        """Yield work with a launch call, another stream's kernel at its start, and whether only it ran since ready."""
        running: list[Work] = []
        latest = ("", -inf), ("", -inf)  # ends of two streams
        for one in self.queued:
            work = one.work
            running = [other for other in running[-_AT_ONCE:] if other.end_us > work.start_us]
            if one.released_us is not None:
                others = [other for other in running if other.stream != work.stream]
                end = next(end for stream, end in latest if stream != work.stream)
                yield one, self._in_front(work, others), end <= one.released_us
            running.append(work)
            if work.stream == latest[0][0]:
                latest = (work.stream, max(latest[0][1], work.end_us)), latest[1]
            elif work.end_us > latest[0][1]:
                latest = (work.stream, work.end_us), latest[0]
            elif work.end_us > latest[1][1]:
                latest = latest[0], (work.stream, work.end_us)

    def _in_front(self, work: Work, others: Sequence[Work]) -> TracedLaunch | None:
        """Return the first that computes, with waiting blocks if any; copies may have waited for their engine."""
        if isinstance(work, MemoryOperation) and any(isinstance(other, MemoryOperation) for other in others):
            return None
        computing = [other for other in others if isinstance(other, TracedLaunch) and not other.communication]
        return min(computing, key=lambda other: (self._is_one_wave(other), other.start_us), default=None)

    def waves(self, kernel: TracedLaunch) -> float | None:
        """Return its blocks by those that the GPU holds at once; None: not known."""
        blocks = self.resident(kernel) if self.resident else None
        return None if blocks is None or kernel.blocks is None else kernel.blocks / blocks

    def _is_one_wave(self, kernel: TracedLaunch) -> bool:
        waves = self.waves(kernel)
        return waves is not None and waves <= 1

    def wave_us(self, kernel: TracedLaunch) -> float:
        """Return how long a block takes, of a kernel of more than one wave; 0 if that is not known."""
        blocks = self.resident(kernel) if self.resident else None
        return (kernel.end_us - kernel.start_us) * blocks / kernel.blocks if blocks and kernel.blocks else 0.0


def _is_refuted(one: Queued, gaps: Sequence[Interval], takes_us: float) -> bool:
    """Whether the GPU was idle for a while after work was ready. gaps: sorted; takes_us: of a launch on an idle GPU."""
    ready, start = one.released_us or 0.0, one.work.start_us
    number = max(0, bisect_right(gaps, (ready, inf)) - 1)
    for first, last in gaps[number : number + 2]:
        # A GPU that was idle before the launch needs a while to begin with it.
        since = max(first, ready) if first >= one.launched_us else max(ready, one.launched_us) + takes_us
        if min(start, last) - since > START_US:
            return True
    return False


def _usual(candidates: Iterable[tuple[Queued, TracedLaunch | None, bool]]) -> dict[tuple[Cause, bool], float]:
    """Return how long ready work takes to begin on an idle GPU: that of its kind, else of any, else the least."""
    alone: defaultdict[tuple[Cause | None, bool], list[float]] = defaultdict(list)
    least: defaultdict[tuple[Cause, bool], float] = defaultdict(lambda: _LONGEST_LAUNCH_US)
    for one, _, idle in candidates:
        gap, kind = one.work.start_us - (one.released_us or 0.0), _kind(one)
        least[kind] = min(least[kind], gap)
        if idle and not one.at_least:
            alone[kind].append(gap)
            alone[None, kind[1]].append(gap)
    return {kind: median(alone.get(kind) or alone.get((None, kind[1])) or [gap]) for kind, gap in least.items()}


def _kind(queued: Queued) -> tuple[Cause, bool]:
    return queued.cause, isinstance(queued.work, MemoryOperation)
