"""Read a trace, and find in it where the time of a step goes and what waited.

The records of each process are taken apart here; the other files of this folder look at one thing each.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyshim.diagnosis import idle, setting
from pyshim.diagnosis.blocked import DeviceQueues, Resident, resident_on
from pyshim.diagnosis.exposed import by_name, collectives
from pyshim.diagnosis.inversions import Inversions
from pyshim.diagnosis.parts import plural
from pyshim.diagnosis.priorities import Priorities
from pyshim.diagnosis.queues import LEGACY, Place, Queues, walk
from pyshim.diagnosis.result import COPY, NO_CALLS, Bar, KernelSummary, ProcessResult, TraceResult, Waited
from pyshim.diagnosis.shares import Timeline, mean
from pyshim.diagnosis.steps import Finder, Steps, after_setup, of_process
from pyshim.errors import OverlapError
from pyshim.profiles import open_trace
from pyshim.profiles.record import Call, NamedRange, Trace, TracedGpu, TracedLaunch, Wait, Work

COMPUTES, COMMUNICATES, COPIES, WAITS, IDLE = "computation", "communication", "copy", "wait", "idle"
MOST = 3_000_000  # records of a trace: a kilobyte of memory each
_FEW = 0.1  # of its waits, or its work, need not be known
_EARLY_US = 100_000.0  # work that begins so long before its launch call does is no record of what happened
_MOST_OF = 0.8  # of a step: ranges that last longer say nothing about where in it the host was
_RANGE_US, _RANGES = 100.0, 100_000  # ranges of the host that are kept: at least so long, at most so many


@dataclass
class _Records:
    """Those of one process."""

    works: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    ranges: list[NamedRange] = field(default_factory=list)  # of the host, the long ones
    setting: set[str] = field(default_factory=set)


def find(path: str, resident_on: Callable[[TracedGpu], Resident] = resident_on) -> TraceResult:
    """Find what held a program up in a trace. Raises OverlapError."""
    trace = open_trace(path)
    records: defaultdict[int | None, _Records] = defaultdict(_Records)
    finders: defaultdict[int | None, Finder] = defaultdict(Finder)
    for number, one in enumerate(trace.activity()):
        if number >= MOST:
            raise OverlapError(f"{path} has more than {MOST:,} records", "a trace of about ten steps is enough")
        own = records[one.process]
        if isinstance(one, NamedRange):
            finders[one.process].add(one)
            own.setting |= setting.of_range(one.name)
            if not one.on_gpu and one.end_us - one.start_us >= _RANGE_US and len(own.ranges) < _RANGES:
                own.ranges.append(one)
        elif isinstance(one, Call):
            own.calls.append(one)
        elif isinstance(one, Wait):
            own.waits.append(one)
        else:
            own.works.append(one)
    limits = {device: resident_on(gpu) for device, gpu in trace.gpus.items()}
    found = []
    of_kernels = {process: own for process, own in records.items() if any(map(_is_kernel, own.works))}
    if not of_kernels:  # copies alone are an answer, too
        of_kernels = {process: own for process, own in records.items() if own.works}
    for number, (process, own) in enumerate(sorted(of_kernels.items(), key=lambda item: item[0] or 0)):
        trace.warnings.extend(_leave_out_impossible(path, own))
        if own.works:
            found.append(_Process(trace, process, own, finders, limits).result(number))
    untold = dict.fromkeys(sentence for one in found for sentence in one.untold)
    return TraceResult(trace, tuple(found), tuple(untold))


def _is_kernel(work: Work) -> bool:
    return isinstance(work, TracedLaunch)


def _leave_out_impossible(path: str, own: _Records) -> Iterator[str]:
    """Drop work that began long before it was launched; yield what is to be said of it.

    Where that is most of the work, it is the clocks of host and GPU that differ: then the calls say nothing of when."""
    called = {call.correlation: call.start_us for call in own.calls}
    launched = [work for work in own.works if work.correlation in called]
    early = {id(work) for work in launched if work.start_us < called[work.correlation or 0] - _EARLY_US}
    if not early:
        return
    if 2 * len(early) > len(launched):
        own.calls, own.waits = [], []
        yield f"{path}: the clocks of host and GPU differ: its calls of the host were left out"
        return
    own.works = [work for work in own.works if id(work) not in early]
    words = plural(len(early), "kernel or copy begins", "kernels and copies begin")
    yield f"{path}: {words} more than {_EARLY_US / 1e6:.1f} s before the call that launched it, and {_was(len(early))} left out"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


class _Process:
    """One process of a trace."""

    def __init__(
        self,
        trace: Trace,
        process: int | None,
        own: _Records,
        finders: dict[int | None, Finder],
        limits: dict[int, Resident],
    ) -> None:
        self.trace, self.process, self.records = trace, process, own
        self.kernels = [work for work in own.works if isinstance(work, TracedLaunch)]
        self.queues = walk(own.works, own.calls, own.waits)
        called = {call.correlation: call.start_us for call in own.calls}
        ran = [(called[one.correlation], one.start_us, one.end_us) for one in own.works if one.correlation in called]
        self.steps: Steps | None = of_process(finders, process, ran)
        whole = min(work.start_us for work in own.works), max(work.end_us for work in own.works)
        self.setup_us = 0.0 if self.steps else max(0.0, after_setup(self.kernels, whole[1]) - whole[0])
        self.bounds = self.steps.whole if self.steps else (whole[0] + self.setup_us, whole[1])
        self.count = len(self.bounds) - 1
        devices = {work.device for work in self.kernels} or {work.device for work in own.works}
        self.devices = tuple(sorted(devices))
        self.gpus = {
            device: DeviceQueues(self.queues, device, limits.get(device))
            for device in sorted({work.device for work in own.works})
        }
        self.priorities = Priorities(self.kernels, trace, process, own.calls)

    def result(self, number: int) -> ProcessResult:
        """Return all that is found. number: of the process in its trace."""
        inversions = Inversions(self.queues, self.gpus, self.bounds, self.priorities, self._is_default)
        waited = inversions.result()
        host = idle.host_waits(self.records.calls)
        lines = {
            device: Timeline((one.work for one in self.gpus[device].queued), self.bounds[0], self.bounds[-1])
            for device in self.devices
        }
        pieces = {
            device: list(idle.pieces(line.idle, self.gpus[device].queued, host)) for device, line in lines.items()
        }
        shares = {device: line.shares(self.count) for device, line in lines.items()}
        found = [
            one
            for device, line in lines.items()
            for one in collectives(line, self.gpus[device].queued, self.queues, inversions.blocked, host)
        ]
        span = (self.bounds[-1] - self.bounds[0]) / self.count
        told = self.queues.without_call < len(self.records.works)
        step = self._pictured(waited, inversions, lines)
        lengths = [one.end_us - one.start_us for one in self.kernels if not one.communication]
        return ProcessResult(
            **vars(waited),
            path=self.trace.path,
            rank=self.trace.rank,
            process=number,
            devices=self.devices,
            steps=self.steps.source if self.steps else None,
            count=self.count,
            setup_us=self.setup_us,
            span_us=span,
            told=told,
            untold=tuple(_untold(self.queues) if told else (NO_CALLS,)),
            shares=mean(list(shares.values())),
            gpus=shares,
            idle=idle.summary(list(pieces.values()), self.count, self.records.ranges, _MOST_OF * span),
            streams=sum(1 for stream in self.queues.streams.values() if stream.works),
            main_stream=self._main_stream(),
            kernel_us=statistics.median(lengths) if lengths else 0.0,
            kinds=by_name(((one, None) for one in found), self.count, len(self.devices)),
            collectives=tuple(found),
            kernels=tuple(_kernels(self.kernels)),
            setting=self._setting(),
            pictured=(self.bounds[step], self.bounds[step + 1]),
            picture=tuple(self._picture(step, inversions, pieces)),
        )

    def _is_default(self, place: Place) -> bool:
        known = getattr(self.trace, "is_default_stream", None)
        return bool(known(self.process, *place)) if known else place[1] == LEGACY

    def _main_stream(self) -> tuple[str, float]:
        """Return the stream that works most on the GPU that works most, and its part of that GPU's work."""
        sums: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for work in self.records.works:
            if self.bounds[0] <= work.start_us < self.bounds[-1]:
                sums[work.device][work.stream] += work.end_us - work.start_us
        if not sums:
            return "", 0.0
        most = max(sums.values(), key=lambda of: sum(of.values()))
        stream = max(most, key=lambda name: most[name])
        return stream, most[stream] / (sum(most.values()) or 1.0)

    def _setting(self) -> frozenset[str]:
        words = set(self.records.setting)
        for name in {kernel.kernel for kernel in self.kernels}:
            words |= setting.of_kernel(name)
        if self.trace.python:
            words.add(setting.TORCH)
        if any(gpu.name.startswith("AMD ") for gpu in self.trace.gpus.values()) or any(
            call.name.startswith("hip") for call in self.records.calls[:1000]
        ):
            words.add(setting.AMD)
        return frozenset(words)

    def _pictured(self, waited: Waited, inversions: Inversions, lines: dict[int, Timeline]) -> int:
        """Return the number of the step that is nearest to the mean: in what waits, else in its length."""
        if waited.waited_us > 0:
            of_step = [sum(wait.length_us for wait in inversions.of_step(step)) for step in range(self.count)]
        else:
            of_step = [end - start for start, end in zip(self.bounds, self.bounds[1:])]
        average = sum(of_step) / self.count
        return min(range(self.count), key=lambda step: abs(of_step[step] - average))

    def _picture(
        self, step: int, inversions: Inversions, pieces: dict[int, list[idle.Piece]]
    ) -> Iterable[Bar]:
        begin, end = self.bounds[step : step + 2]
        for work in self.records.works:
            if work.end_us > begin and work.start_us < end:
                kernel = work if isinstance(work, TracedLaunch) else None
                kind = COPIES if kernel is None else COMMUNICATES if kernel.communication else COMPUTES
                what = kernel.kernel if kernel else COPY
                yield Bar((work.device, work.stream), work.start_us, work.end_us, kind, what)
        for wait in inversions.of_step(step):
            yield Bar(wait.queued.place, wait.start_us, wait.until_us, WAITS, wait.behind.kernel)
        for device, found in pieces.items():
            for piece in found:
                if piece.end_us > begin and piece.start_us < end:
                    yield Bar((device, ""), piece.start_us, piece.end_us, IDLE, piece.cause)


def _untold(queues: Queues) -> Iterator[str]:
    """Yield what a trace does not say of a process."""
    works = sum(len(stream.works) for stream in queues.streams.values())
    if not queues.any_wait:
        yield "the trace records no wait of any kind"
    if queues.stream_waits_untold > _FEW * queues.stream_waits:
        yield (
            f"{queues.stream_waits_untold:,} of {queues.stream_waits:,} waits of streams for events do not say for "
            "which work: what follows them waited at least as long as is said"
        )
    if queues.host_waits_untold:
        yield f"{queues.host_waits_untold:,} waits of the host do not say for which stream"
    if queues.without_call > _FEW * works:
        yield f"{queues.without_call:,} of {works:,} kernels and copies have no launch call in the trace"


def _kernels(launches: Sequence[TracedLaunch]) -> list[KernelSummary]:
    groups: defaultdict[tuple[str, bool, int | None, int | None, int | None], list[float]] = defaultdict(list)
    for one in launches:
        static, dynamic = one.static_shared_memory, one.dynamic_shared_memory
        shared = one.shared_memory if static is None or dynamic is None else static + dynamic
        key = (one.kernel, one.communication, one.threads, one.registers, shared)
        groups[key].append(max(0.0, one.end_us - one.start_us))
    found = [KernelSummary(key[0], key[1], len(times), sum(times), *key[2:]) for key, times in groups.items()]
    return sorted(found, key=lambda one: (-one.us, one.kernel))
