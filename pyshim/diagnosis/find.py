"""Priority inversions: work that was ready and stood behind blocks of another stream's kernel, while it was waited for.

What counts:

- It was ready and stood behind a kernel (blocked.py). Behind one whose blocks were all resident at once nothing can be
  gained: a priority takes effect when a block ends. Nor can it where the work has the greater priority already.
- It was waited for: by the host, by another stream through an event, or by communication on its own stream.
- On a minor stream: one with at most half of the GPU's computation, by blocks times threads, as in the default policy.
  A stream that has most of the work may lose by being raised.

What raising may save in a step is estimated as the time in which any of it waited, on all GPUs of the process, counted
once; no more than its waiters waited for it; without what it would still wait until blocks end (chains.py); and no more
than the time in which the stream in front of it did nothing, because that stream's work remains. The last is of all
steps together, because work crosses from one to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from pyshim.diagnosis.blocked import Blocked, DeviceQueues, Resident, resident_on
from pyshim.diagnosis.chains import Chain, follow
from pyshim.diagnosis.chosen import load
from pyshim.diagnosis.priorities import Priorities, faults
from pyshim.diagnosis.queues import HOST, LEAST_US, Delay, Queues, walk
from pyshim.diagnosis.result import (
    COMMUNICATES,
    COMPUTES,
    COPIES,
    COPY,
    NEXT_TO_NOTHING,
    NO_CALLS,
    WAITS,
    Bar,
    Inversion,
    KernelSummary,
    Place,
    ProcessResult,
    Share,
    TraceResult,
    raised,
)
from pyshim.diagnosis.steps import Finder, Steps, after_setup, of_process
from pyshim.profiles.record import Trace, TracedGpu, TracedLaunch, Work

MINOR = 0.5  # of the GPU's computation: the default policy's share
_FEW = 0.1  # of its waits, or its work, need not be known


def find(
    path: str, resident_on: Callable[[TracedGpu], Resident] = resident_on, steps: str | None = None
) -> TraceResult:
    """Find what waited in a trace. steps: those to look at (chosen.py). Raises OverlapError."""
    trace, records = load(path, steps)
    finders: defaultdict[int | None, Finder] = defaultdict(Finder)
    for process, own in records.items():
        for one in own.ranges:
            finders[process].add(one)
    limits = {device: resident_on(gpu) for device, gpu in trace.gpus.items()}
    found: list[ProcessResult] = []
    untold: dict[str, None] = {}
    of_kernels = {process: own for process, own in records.items() if any(map(_is_kernel, own.works))}
    for number, (process, own) in enumerate(sorted(of_kernels.items(), key=lambda item: item[0] or 0)):
        queues = walk(own.works, own.calls, own.waits)
        told = queues.without_call < len(own.works)
        if told:
            untold.update(dict.fromkeys(_untold(queues)))
        else:
            untold[NO_CALLS] = None
        called = {call.correlation: call.start_us for call in own.calls}
        launches = [work for work in own.works if isinstance(work, TracedLaunch)]
        ran = [(called[one.correlation], one.start_us, one.end_us) for one in launches if one.correlation in called]
        priorities = Priorities(launches, trace, process, own.calls)
        one_process = _Process(queues, of_process(finders, process, ran), limits, priorities)
        found.append(one_process.result(trace, number, told))
    return TraceResult(trace, tuple(found), tuple(untold))


def _is_kernel(work: Work) -> bool:
    return isinstance(work, TracedLaunch)


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


@dataclass
class _Claim:
    """Who waited for work that had waited, and how that wait would end."""

    waiters: set[str] = field(default_factory=set)
    saved_us: float = 0.0  # what raising would save the waiters
    still_us: float = 0.0  # what they would wait all the same


@dataclass
class _Sorted:
    """The waits of one process by what can be done about them, and the times of all steps together."""

    by_step: defaultdict[int, list[Blocked]] = field(default_factory=lambda: defaultdict(list))  # on minor streams
    minor: defaultdict[Place, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    major: defaultdict[Place, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    one_wave_us: float = 0.0
    raised_us: float = 0.0
    unclaimed_us: float = 0.0


class _Process:
    """What of it was waited for, by step."""

    def __init__(
        self, queues: Queues, steps: Steps | None, limits: dict[int, Resident], priorities: Priorities
    ) -> None:
        self.queues = queues
        self.steps = steps
        self.priorities = priorities
        self.works = [one.work for stream in queues.streams.values() for one in stream.works]
        self.kernels = [work for work in self.works if isinstance(work, TracedLaunch)]
        self.devices = tuple(sorted({work.device for work in self.works}))
        whole = min(work.start_us for work in self.works), max(work.end_us for work in self.works)
        self.setup_us = 0.0 if steps else max(0.0, after_setup(self.kernels, whole[1]) - whole[0])
        self.bounds = steps.whole if steps else (whole[0] + self.setup_us, whole[1])
        gpus = {device: DeviceQueues(queues, device, limits.get(device)) for device in self.devices}
        self.waits = {id(wait.queued): wait for gpu in gpus.values() for wait in gpu.blocked()}
        self.shares = self._shares([kernel for kernel in self.kernels if not kernel.communication])
        self.chains = self._chains(gpus)
        self.claims: defaultdict[int, _Claim] = defaultdict(_Claim)  # by the work's id
        self.spent: defaultdict[tuple[str, int], float] = defaultdict(float)  # of chains, by waiter
        for delay in queues.delays:
            self._spread(delay)

    def _shares(self, kernels: Sequence[TracedLaunch]) -> dict[tuple[int, Place], float]:
        """Return a stream's share of its GPU's computation by step, as roles may swap: blocks x threads, or time."""
        sized = all(kernel.blocks and kernel.threads for kernel in kernels)
        sums: defaultdict[tuple[int, Place], float] = defaultdict(float)
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

    def _chains(self, gpus: dict[int, DeviceQueues]) -> dict[int, Chain]:
        """Return for each wait the chain of what waited with it, one behind the other, behind the same kernel."""
        chains: dict[int, Chain] = {}
        asked: defaultdict[Place, set[int]] = defaultdict(set)
        for delay in self.queues.delays:
            if delay.waiter == HOST:
                asked[delay.place].add(delay.end)
        for place, stream in self.queues.streams.items():
            waits = [self.waits.get(id(one)) for one in stream.works]
            ready = [wait.start_us if wait else one.work.start_us for wait, one in zip(waits, stream.works)]
            of_front: dict[int, Chain] = {}
            for number, wait in enumerate(waits):
                if wait is None:
                    continue
                front = wait.behind
                if id(front) not in of_front or number >= of_front[id(front)].end:
                    wave = gpus[place[0]].wave_us(front)
                    of_front[id(front)] = follow(stream.works, number, ready, front, wave, asked[place])
                chains[id(wait.queued)] = of_front[id(front)]
        return chains

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
            claim = self.claims[id(queued)]
            claim.waiters.add(delay.waiter)
            chain = self.chains[id(queued)]
            spent = delay.waiter, id(chain)
            wanted = min(wait.length_us, left)
            gain = chain.gain_us(delay.end, delay.waiter == HOST) - self.spent[spent]
            saved = max(0.0, min(wanted, gain))
            self.spent[spent] += saved
            claim.saved_us = max(claim.saved_us, saved)
            claim.still_us = max(claim.still_us, wanted - saved)
            left -= wanted

    def _sorted(self) -> _Sorted:
        """Return the waits of all steps by what can be done about them."""
        found = _Sorted()
        for wait in self.waits.values():
            queued, step = wait.queued, self._step(wait.queued.work)
            if not 0 <= step < len(self.bounds) - 1:
                continue
            share = self.shares.get((step, queued.place), 0.0)
            if not self.claims[id(queued)].waiters:
                found.unclaimed_us += wait.length_us
            elif wait.one_wave:
                found.one_wave_us += wait.length_us
            elif self.priorities.is_greater(queued.place, wait.behind_place):
                found.raised_us += wait.length_us
            elif share > MINOR:
                found.major[queued.place].append((share, wait.length_us))
            else:
                found.by_step[step].append(wait)
                found.minor[queued.place].append((share, wait.length_us))
        return found

    def _inversions(self, waits: Sequence[Blocked], count: int) -> list[Inversion]:
        """Return the waits by kernel and kernel in front, the longest first."""
        groups: defaultdict[tuple[int, str, str], list[Blocked]] = defaultdict(list)
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
                waiters=tuple(sorted({waiter for wait in own for waiter in self.claims[id(wait.queued)].waiters})),
                count=len(own) / count,
                waited_us=sum(wait.length_us for wait in own) / count,
                at_least=any(wait.queued.at_least for wait in own),
            )
            for (device, kernel, behind), own in groups.items()
        ]
        return sorted(found, key=lambda one: (-one.waited_us, one.device))

    def result(self, trace: Trace, process: int, told: bool) -> ProcessResult:
        """Return what the trace says of this process. told: it says when work was ready."""
        count = len(self.bounds) - 1
        waits = self._sorted()
        small = _streams(waits.minor, count)
        to_raise = {(one.device, one.stream) for one in raised(small)}
        waited = saved = still = 0.0
        longest = 0.0, count // 2
        for step, of_this in waits.by_step.items():
            of_step = _union((wait.start_us, wait.until_us) for wait in of_this)
            longest = max(longest, (of_step, step))
            waited += of_step
            claims = [(wait, self.claims[id(wait.queued)]) for wait in of_this if wait.queued.place in to_raise]
            saved += _union((wait.until_us - claim.saved_us, wait.until_us) for wait, claim in claims)
            still += sum(claim.still_us for _, claim in claims)
        span = self.bounds[-1] - self.bounds[0]
        inverted = [wait for of_this in waits.by_step.values() for wait in of_this]
        pairs = {(wait.queued.place, wait.behind_place) for wait in inverted}
        busy = max((self._busy(place) for _, place in pairs), default=0.0)
        saves = max(0.0, min(saved, span - busy))
        communication, hidden = self._hidden()
        return ProcessResult(
            path=trace.path,
            rank=trace.rank,
            process=process,
            devices=self.devices,
            steps=self.steps.source if self.steps else None,
            count=count,
            setup_us=self.setup_us,
            span_us=span / count,
            told=told,
            inversions=tuple(self._inversions(inverted, count)),
            waited_us=waited / count,
            busy_us=busy / count,
            saves_us=saves / count,
            still_us=still / count,
            minor=small,
            major=_streams(waits.major, count),
            one_wave_us=waits.one_wave_us / count,
            raised_us=waits.raised_us / count,
            unclaimed_us=waits.unclaimed_us / count,
            idle_us=(span - max(map(self._worked, self.devices))) / count,
            communication_us=communication / count,
            hidden_us=hidden / count,
            faults=tuple(faults(self.priorities, pairs if saves > NEXT_TO_NOTHING * span else ())),
            has_priorities=self.priorities.differ,
            kernels=tuple(_kernels(self.kernels)),
            pictured=(self.bounds[longest[1]], self.bounds[longest[1] + 1]),
            picture=tuple(self._picture(longest[1], waits.by_step[longest[1]])),
        )

    def _hidden(self) -> tuple[float, float]:
        """Return the time of communication, and that of it in which computation ran as well: mean of the GPUs."""
        communication, hidden = [0.0], [0.0]
        for device in {kernel.device for kernel in self.kernels}:
            own = [kernel for kernel in self.kernels if kernel.device == device]
            computes, communicates = (
                self._within(kernel for kernel in own if kernel.communication is kind) for kind in (False, True)
            )
            communication.append(communicates)
            hidden.append(computes + communicates - self._within(own))
        return sum(communication) / (len(communication) - 1 or 1), sum(hidden) / (len(hidden) - 1 or 1)

    def _picture(self, step: int, waits: Sequence[Blocked]) -> Iterable[Bar]:
        begin, end = self.bounds[step : step + 2]
        for work in self.works:
            if work.end_us > begin and work.start_us < end:
                kernel = work if isinstance(work, TracedLaunch) else None
                kind = COPIES if kernel is None else COMMUNICATES if kernel.communication else COMPUTES
                yield Bar(
                    (work.device, work.stream), work.start_us, work.end_us, kind, kernel.kernel if kernel else COPY
                )
        for wait in waits:
            yield Bar(wait.queued.place, wait.start_us, wait.until_us, WAITS, wait.behind.kernel)

    def _busy(self, place: Place) -> float:
        return self._within(one.work for one in self.queues.streams[place].works)

    def _worked(self, device: int) -> float:
        return self._within(work for work in self.works if work.device == device)

    def _within(self, works: Iterable[Work]) -> float:
        """Return the time in which any of it ran in the steps."""
        begin, end = self.bounds[0], self.bounds[-1]
        return _union((max(begin, work.start_us), min(end, work.end_us)) for work in works)


def _union(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the time in any of the intervals."""
    length, until = 0.0, -inf
    for start, end in sorted(intervals):
        length += max(0.0, end - max(start, until))
        until = max(until, end)
    return length


def _streams(waited: dict[Place, list[tuple[float, float]]], count: int) -> tuple[Share, ...]:
    """Return the streams of shares and times that waited."""
    return tuple(
        Share(*place, sum(share for share, _ in found) / len(found), sum(time for _, time in found) / count)
        for place, found in sorted(waited.items())
    )


def _kernels(launches: Iterable[TracedLaunch]) -> list[KernelSummary]:
    groups: defaultdict[tuple[str, bool, int | None, int | None, int | None], list[float]] = defaultdict(list)
    for one in launches:
        static, dynamic = one.static_shared_memory, one.dynamic_shared_memory
        shared = one.shared_memory if static is None or dynamic is None else static + dynamic
        key = (one.kernel, one.communication, one.threads, one.registers, shared)
        groups[key].append(max(0.0, one.end_us - one.start_us))
    found = [KernelSummary(key[0], key[1], len(times), sum(times), *key[2:]) for key, times in groups.items()]
    return sorted(found, key=lambda one: (-one.us, one.kernel))
