"""Priority inversions: work that was ready and stood behind blocks of another stream's kernel, while it was waited for.

What counts:

- It waited: it began later than it was ready (queues.py), and later than such work usually begins in this trace where
  nothing else runs.
- Behind a kernel of another stream: one that computes, ran when it began, and had begun before. Behind a kernel whose
  blocks were all resident at once nothing can be gained: a priority takes effect when a block ends.
- It was waited for: by the host, by another stream through an event, or by communication on its own stream.
- On a minor stream: one with at most a quarter of the GPU's computation, by blocks times threads. A stream that has
  most of the work may lose by being raised.

The most that raising can save in a step is the time in which any of it waited, on all GPUs of the process, counted
once; no more than its waiters waited for it; and no more than the time in which the stream in front of it did nothing,
because that stream's work remains. The last is of all steps together, because work crosses from one to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from statistics import mean, median
from typing import NamedTuple

from pyshim.traces.opened import open_trace
from pyshim.traces.queues import LEAST_US, Cause, Delay, Queued, Queues, walk
from pyshim.traces.record import Call, MemoryOperation, Span, TracedLaunch, Wait, Work
from pyshim.traces.steps import Finder, Steps, of_process

MINOR = 0.25  # of the GPU's computation: a policy's default share
_LONGEST_LAUNCH_US = 10.0  # a copy's, on an engine of its own
_FEW = 0.1  # of its waits, or its work, need not be known
MOST = 500_000  # pieces of work and calls of a trace: 300 bytes of memory each

Resident = Callable[[TracedLaunch], "int | None"]  # blocks of such a kernel on the whole GPU; None: not known


@dataclass(frozen=True)
class Inversion:
    """Work of one kernel behind one other kernel; count and time are of a step, on average."""

    device: int
    kernel: str  # or COPY
    streams: tuple[str, ...]
    behind: str
    behind_streams: tuple[str, ...]
    waiters: tuple[str, ...]
    count: float
    waited_us: float
    at_least: bool


@dataclass(frozen=True)
class Major:
    """A stream whose work waited, too, but which has too much of the computation to gain by being raised."""

    device: int
    stream: str
    share: float
    waited_us: float


@dataclass(frozen=True)
class Waiting:
    """The GPUs of one process. Times are of a step, on average; of the whole trace where steps is None."""

    path: str
    process: int  # which of those in the file
    devices: tuple[int, ...]
    steps: str | None  # the ranges' name
    count: int  # of steps
    span_us: float
    inversions: tuple[Inversion, ...]  # the longest first
    waited_us: float  # time in which any of these waited
    busy_us: float  # what the stream in front of them works; the busiest, where there are several
    most_us: float  # that raising can save
    major: tuple[Major, ...]
    one_wave_us: float  # what was waited behind kernels of one wave
    unclaimed_us: float  # what was waited that nothing is known to have waited for
    idle_us: float  # in which the GPU with the most work had nothing to do


@dataclass(frozen=True)
class Found:
    """What a trace says. untold: sentences about what it does not say."""

    processes: tuple[Waiting, ...]
    untold: tuple[str, ...]


COPY = "copy or memset"


def find(path: str, resident: Resident) -> Found:
    """Find what waited in a trace. Raises OverlapError."""
    trace = open_trace(path)
    works: defaultdict[int | None, list[Work]] = defaultdict(list)
    calls: defaultdict[int | None, list[Call]] = defaultdict(list)
    waits: defaultdict[int | None, list[Wait]] = defaultdict(list)
    finders: defaultdict[int | None, Finder] = defaultdict(Finder)
    kept = 0
    for one in trace.activity(host=True):
        kept += not isinstance(one, Span)
        if kept > MOST:
            return Found((), (f"the trace has more than {MOST:,} records; a trace of a few steps is enough",))
        if isinstance(one, Span):
            finders[one.process].add(one)
        elif isinstance(one, Call):
            calls[one.process].append(one)
        elif isinstance(one, Wait):
            waits[one.process].append(one)
        else:
            works[one.process].append(one)
    found: list[Waiting] = []
    untold: dict[str, None] = {}
    for number, (process, own) in enumerate(sorted(works.items(), key=lambda item: item[0] or 0)):
        queues = walk(own, calls[process], waits[process])
        if queues.without_call == len(own):
            untold["the trace has no calls of the host that launched its kernels"] = None
            continue
        untold.update(dict.fromkeys(_untold(queues)))
        steps = of_process(trace, finders, process)
        in_gpu_time = steps if steps and steps.on_gpu else None
        found.append(_Process(queues, in_gpu_time, resident).waiting(path, number))
    return Found(tuple(found), tuple(untold))


def _untold(queues: Queues) -> Iterable[str]:
    if queues.stream_waits_untold > _FEW * queues.stream_waits:
        yield (
            f"{queues.stream_waits_untold:,} of {queues.stream_waits:,} waits of streams for events do not say for "
            "which work: what follows them waited at least as long as is said"
        )
    if queues.host_waits_untold:
        yield f"{queues.host_waits_untold:,} waits of the host do not say for which stream"
    works = sum(len(stream.works) for stream in queues.streams.values())
    if queues.without_call > _FEW * works:
        yield f"{queues.without_call:,} of {works:,} kernels and copies have no launch call in the trace"


class _Wait(NamedTuple):
    """From `start_us` until the work began."""

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
    def behind_place(self) -> tuple[int, str]:
        return self.behind.device, self.behind.stream


class _Gpu:
    """What waited behind what on one GPU."""

    def __init__(self, queues: Queues, device: int, resident: Resident) -> None:
        self.streams = {stream.place[1]: stream for stream in queues.streams.values() if stream.place[0] == device}
        self.device = device
        self.resident = resident
        self.queued = sorted(
            (one for stream in self.streams.values() for one in stream.works), key=lambda one: one.work.start_us
        )

    def waits(self) -> Iterable[_Wait]:
        candidates = list(self._candidates())
        takes = _usual(candidates)
        for one, behind, _ in candidates:
            if behind is None or one.released_us is None:
                continue
            start = max(one.released_us + takes.get(_kind(one), 0.0), behind.start_us)
            least = _LONGEST_LAUNCH_US if isinstance(one.work, MemoryOperation) else LEAST_US
            if one.work.start_us - start >= least:
                yield _Wait(one, start, behind, self._is_one_wave(behind))

    def _candidates(self) -> Iterable[tuple[Queued, TracedLaunch | None, bool]]:
        """Yield work with a launch call, another stream's kernel at its start, and whether only it ran since ready."""
        running: list[Work] = []
        latest = ("", -inf), ("", -inf)  # ends of two streams
        for one in self.queued:
            work = one.work
            running = [other for other in running if other.end_us > work.start_us]
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

    def _is_one_wave(self, kernel: TracedLaunch) -> bool:
        blocks = self.resident(kernel)
        return blocks is not None and kernel.blocks is not None and kernel.blocks <= blocks


class _Process:
    """What of it was waited for, by step."""

    def __init__(self, queues: Queues, steps: Steps | None, resident: Resident) -> None:
        self.queues = queues
        self.steps = steps
        works = [one.work for stream in queues.streams.values() for one in stream.works]
        self.devices = tuple(sorted({work.device for work in works}))
        whole = min(work.start_us for work in works), max(work.end_us for work in works)
        self.bounds = steps.whole if steps else whole
        gpus = [_Gpu(queues, device, resident) for device in self.devices]
        self.waits = {id(wait.queued): wait for gpu in gpus for wait in gpu.waits()}
        self.shares = self._shares(
            [work for work in works if isinstance(work, TracedLaunch) and not work.communication]
        )
        for delay in queues.delays:
            self._spread(delay)

    def _shares(self, kernels: Sequence[TracedLaunch]) -> dict[tuple[int, tuple[int, str]], float]:
        """Return a stream's share of its GPU's computation by step, as roles may swap: blocks x threads, or time."""
        sized = all(kernel.blocks and kernel.threads for kernel in kernels)
        sums: defaultdict[tuple[int, tuple[int, str]], float] = defaultdict(float)
        whole: defaultdict[tuple[int, int], float] = defaultdict(float)
        for kernel in kernels:
            step = self._step(kernel)
            size = (kernel.blocks or 0) * (kernel.threads or 0) if sized else kernel.end_us - kernel.start_us
            sums[step, (kernel.device, kernel.stream)] += size
            whole[step, kernel.device] += size
        return {(step, place): size / (whole[step, place[0]] or 1.0) for (step, place), size in sums.items()}

    def _step(self, work: Work) -> int:
        """-1, or their number: outside of all."""
        return bisect_right(self.bounds, work.start_us) - 1

    def _spread(self, delay: Delay) -> None:
        """Of what the waiter lost, each piece of work in front of it has what it waited, the last one first."""
        works = self.queues.streams[delay.place].works
        left = delay.slack_us
        for queued in reversed(works[delay.first : delay.end]):
            wait = self.waits.get(id(queued))
            if wait is None:
                continue
            if left < LEAST_US:
                return
            saved = min(wait.length_us, left)
            queued.saved_us = max(queued.saved_us, saved)
            queued.waiters.add(delay.waiter)
            left -= saved

    def waiting(self, path: str, process: int) -> Waiting:
        count = len(self.bounds) - 1
        by_step: defaultdict[int, list[_Wait]] = defaultdict(list)
        major: defaultdict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
        one_wave = unclaimed = 0.0
        for wait in self.waits.values():
            queued, step = wait.queued, self._step(wait.queued.work)
            share = self.shares.get((step, queued.place), 0.0)
            if not 0 <= step < count:
                continue
            if not queued.waiters:
                unclaimed += wait.length_us
            elif wait.one_wave:
                one_wave += wait.length_us
            elif share > MINOR:
                major[queued.place].append((share, wait.length_us))
            else:
                by_step[step].append(wait)
        waited = saved = 0.0
        for step, waits in by_step.items():
            waited += _union((wait.start_us, wait.until_us) for wait in waits)
            if any(wait.queued.at_least for wait in waits):
                saved += self.bounds[step + 1] - self.bounds[step]
            else:
                saved += _union((wait.until_us - wait.queued.saved_us, wait.until_us) for wait in waits)
        span = self.bounds[-1] - self.bounds[0]
        busy = max(
            (self._busy(place) for place in {w.behind_place for ws in by_step.values() for w in ws}), default=0.0
        )
        return Waiting(
            path=path,
            process=process,
            devices=self.devices,
            steps=self.steps.source if self.steps else None,
            count=count,
            span_us=span / count,
            inversions=tuple(_grouped([wait for waits in by_step.values() for wait in waits], count)),
            waited_us=waited / count,
            busy_us=busy / count,
            most_us=max(0.0, min(saved, span - busy)) / count,
            major=tuple(
                Major(*place, mean(share for share, _ in found), sum(time for _, time in found) / count)
                for place, found in sorted(major.items())
            ),
            one_wave_us=one_wave / count,
            unclaimed_us=unclaimed / count,
            idle_us=(span - max(map(self._worked, self.devices))) / count,
        )

    def _busy(self, place: tuple[int, str]) -> float:
        return self._within(self.queues.streams[place].works)

    def _worked(self, device: int) -> float:
        streams = (stream for (number, _), stream in self.queues.streams.items() if number == device)
        return self._within(chain.from_iterable(stream.works for stream in streams))

    def _within(self, works: Iterable[Queued]) -> float:
        begin, end = self.bounds[0], self.bounds[-1]
        return _union((max(begin, one.work.start_us), min(end, one.work.end_us)) for one in works)


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


def _union(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the time in any of the intervals."""
    length, until = 0.0, -inf
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, until))
        until = max(until, end)
    return length


def _grouped(waits: Sequence[_Wait], count: int) -> list[Inversion]:
    groups: defaultdict[tuple[int, str, str], list[_Wait]] = defaultdict(list)
    for wait in waits:
        work = wait.queued.work
        kernel = work.kernel if isinstance(work, TracedLaunch) else COPY
        groups[work.device, kernel, wait.behind.kernel].append(wait)
    found = [
        Inversion(
            device=device,
            kernel=kernel,
            streams=tuple(sorted({wait.queued.work.stream for wait in own})),
            behind=behind,
            behind_streams=tuple(sorted({wait.behind.stream for wait in own})),
            waiters=tuple(sorted({waiter for wait in own for waiter in wait.queued.waiters})),
            count=len(own) / count,
            waited_us=sum(wait.length_us for wait in own) / count,
            at_least=any(wait.queued.at_least for wait in own),
        )
        for (device, kernel, behind), own in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.waited_us, one.device))
