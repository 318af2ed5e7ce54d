"""Read a trace, and find in it where the time of a step goes and what waited.

The records of each process are taken apart here; the other files of this folder look at one thing each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf

from pyshim.diagnosis import idle, setting
from pyshim.diagnosis.blocked import DeviceQueues, Resident, resident_on
from pyshim.diagnosis.chosen import Records, load
from pyshim.diagnosis.copies import exposed_copies
from pyshim.diagnosis.exposed import by_name, collectives
from pyshim.diagnosis.intervals import Interval, clipped, length, median, merged
from pyshim.diagnosis.inversions import Inversions
from pyshim.diagnosis.priorities import Priorities
from pyshim.diagnosis.queues import Place, Queues, walk
from pyshim.diagnosis.result import CLOCKS, COPY, NO_CALLS, Bar, KernelSummary, ProcessResult, TraceResult, Waited
from pyshim.diagnosis.shares import Timeline, mean
from pyshim.diagnosis.steps import Finder, Steps, in_time_of_gpu, main_part, of_process
from pyshim.profiles.record import LEGACY, Trace, TracedGpu, TracedLaunch, Work

COMPUTES, COMMUNICATES, COPIES, WAITS, IDLE = "computation", "communication", "copy", "wait", "idle"
_FEW = 0.1  # of its waits, or its work, need not be known
_MOST_OF = 0.8  # of a step: ranges that last longer say nothing about where in it the host was
_RANGE_US = 100.0  # shorter ranges of the host explain no gap


def find(
    path: str, resident_on: Callable[[TracedGpu], Resident] = resident_on, steps: str | None = None
) -> TraceResult:
    """Find what held a program up in a trace. steps: to look at alone, such as 3-5. Raises OverlapError."""
    trace, processes = load(path, steps)
    limits = {device: resident_on(gpu) for device, gpu in trace.gpus.items()}
    of_kernels = {process: own for process, own in processes.items() if any(map(_is_kernel, own.works))}
    if not of_kernels:  # copies alone are an answer, too
        of_kernels = {process: own for process, own in processes.items() if own.works}
    found = [
        _Process(trace, process, own, limits).result(number)
        for number, (process, own) in enumerate(sorted(of_kernels.items(), key=lambda item: item[0] or 0))
    ]
    untold = dict.fromkeys(sentence for one in found for sentence in one.untold)
    return TraceResult(trace, tuple(found), tuple(untold))


def _steps(own: Records, process: int | None, ran: Iterable[tuple[float, float, float]]) -> Steps | None:
    finder = Finder()
    for one in own.ranges:
        finder.add(one)
    return of_process({None: finder}, process, ran)


def _is_kernel(work: Work) -> bool:
    return isinstance(work, TracedLaunch)


class _Process:
    """One process of a trace."""

    def __init__(self, trace: Trace, process: int | None, own: Records, limits: dict[int, Resident]) -> None:
        self.trace, self.process, self.records = trace, process, own
        self.kernels = [work for work in own.works if isinstance(work, TracedLaunch)]
        self.queues = walk(own.works, own.calls, own.waits)
        called = {call.correlation: call.start_us for call in own.calls}
        ran = (  # one at a time: there may be very many
            (called[one.correlation], one.start_us, one.end_us)
            for one in self.kernels or own.works
            if one.correlation in called
        )
        self.steps = in_time_of_gpu(own.steps, ran) if own.steps else _steps(own, process, ran)
        whole = min(work.start_us for work in own.works), max(work.end_us for work in own.works)
        main = whole if self.steps else main_part(self.kernels, *whole)
        self.setup_us, self.teardown_us = main[0] - whole[0], whole[1] - main[1]
        self.bounds = self.steps.whole if self.steps else main
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
        ranges = [one for one in self.records.ranges if not one.on_gpu and one.end_us - one.start_us >= _RANGE_US]
        own = {device: [one.work for one in self.gpus[device].queued] for device in self.devices}
        lines = {device: Timeline(works, self.bounds[0], self.bounds[-1]) for device, works in own.items()}
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
            teardown_us=self.teardown_us,
            span_us=span,
            told=told,
            untold=tuple(_untold(self.queues) if told else (CLOCKS if self.records.clocks_differ else NO_CALLS,)),
            waits=bool(self.records.waits),
            events_untold=bool(self.queues.stream_waits_untold or self.queues.host_waits_untold),
            unread=self.records.unread,
            shares=mean(list(shares.values())),
            gpus=shares,
            copies=mean([exposed_copies(own[device], line.copies, self.count) for device, line in lines.items()]),
            idle=idle.summary(list(pieces.values()), self.count, ranges, _MOST_OF * span),
            streams=sum(1 for stream in self.queues.streams.values() if stream.works),
            main_stream=self._main_stream(),
            beside_us=self._beside(),
            kernel_us=median(lengths),
            kinds=by_name(((one, None) for one in found), self.count, len(self.devices)),
            collectives=tuple(found),
            kernels=tuple(_kernels(self.kernels)),
            setting=self._setting(),
            pictured=(self.bounds[step], self.bounds[step + 1]),
            picture=tuple(self._picture(step, inversions, pieces)),
        )

    def _is_default(self, place: Place) -> bool | None:
        """Whether it is a default stream; None: it may be one.

        torch.profiler does not say. A context's default stream has its smallest number: 7 for the first context."""
        if self.trace.is_default_stream(self.process, *place):
            return True
        own = [stream for device, stream in self.queues.streams if device == place[0] and stream.isdigit()]
        is_first = place[0] > 0 and LEGACY not in own and place[1] == min(own, key=int, default="")
        return None if is_first and self.trace.kind == "pytorch" else False

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

    def _beside(self) -> float:
        """Return the time of a step in which several streams of a GPU work, the mean of the GPUs."""
        time = 0.0
        for device in self.devices:
            streams = [[one.work for one in stream.works] for stream in self.gpus[device].streams.values()]
            busy = (merged(sorted((work.start_us, work.end_us) for work in own)) for own in streams)
            until = -inf
            at_once: list[Interval] = []
            for start, end in sorted(interval for own in busy for interval in own):
                if start < until:
                    at_once.append((start, min(until, end)))
                until = max(until, end)
            time += length(clipped(merged(at_once), self.bounds[0], self.bounds[-1]))
        return time / self.count / len(self.devices)

    def _setting(self) -> frozenset[str]:
        ranges = {one.name for one in self.records.ranges}
        words = setting.told(ranges, {kernel.kernel for kernel in self.kernels})
        if self.trace.python:
            words.add(setting.TORCH)
        if self.trace.hip or any(gpu.name.startswith("AMD ") for gpu in self.trace.gpus.values()):
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

    def _picture(self, step: int, inversions: Inversions, pieces: dict[int, list[idle.Piece]]) -> Iterable[Bar]:
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
