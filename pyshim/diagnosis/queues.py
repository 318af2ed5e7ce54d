"""When each piece of work on the GPUs of one process was ready, and which work its streams and the host waited for.

Calls of one process are numbered in their order (CUPTI's correlation IDs), and so are the launches, waits and records
of events that they enqueue. One walk in this order keeps, for each stream, when all that was enqueued on it so far had
ended. Work is ready once that has ended, the events that its stream waits for included, and its launch call has
returned. A wait delays the waiter (another stream, the host) by its slack: the time from when the waiter had nothing
else to wait for until the wait was over. A stream waits from when its next work was launched, or the host waits for it.

Where a trace does not say what a stream waited for, its next work counts as ready only after the last work of any
stream, launched earlier, that had ended when it began: an event is complete when work ends. What is said to have
waited then waited at least so long.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import NamedTuple

from pyshim.profiles.record import LEGACY, Call, MemoryOperation, TracedLaunch, Wait, Work

Place = tuple[int, str]  # device, stream
LEAST_US = 5.0  # shorter waits are noise: of launches, of clocks and of the profiler's own records
LEGACY_US = 10.0  # from the end of work that a copy waited for to its start, at most
HOST, COMMUNICATION = "the host", "communication"
STREAM_WAIT = re.compile(r"(cuda|cu|hip)StreamWaitEvent(_\w+)?")
HOST_WAIT = re.compile(r"(cuda|cu|hip)(Stream|Event)(Synchronize|Query)(_\w+)?")
_BLOCKING = re.compile(r"(cuda|cu|hip)Memcpy(?!\w*Async)\w*")
_ALL_WAIT = re.compile(r"(cuda|cu|hip)(Device|Ctx)Synchronize(_\w+)?")
_FUNCTION = re.compile(r"(cuda|cu|hip)(LaunchHostFunc|StreamAddCallback)(_\w+)?")  # behind a stream, no row says which
_QUERY = re.compile(r"(cuda|cu|hip)(Stream|Event)Query(_\w+)?")
_POLLS = 3  # queries without another call between them: allocators ask once
_ANY_WAIT = re.compile(r"Synchronize|Query|WaitEvent|WaitValue|^(cuda|cu|hip)Memcpy(?!\w*Async)")
_MANY = 100  # streams that are looked at, so that a trace of thousands takes no longer
_PENDING = 64  # waits of a stream, the latest: so many streams may be joined
_FAR = 1000  # ends that are looked at for one that can have released a stream


class Cause(IntEnum):
    """What work became ready by, last."""

    LAUNCH = 0
    STREAM = 1
    EVENT = 2


class Queued:
    """Work on a stream. released_us: when it was ready; None where its launch call is not in the trace."""

    __slots__ = ("at_least", "cause", "event_us", "launched_us", "place", "released_us", "work")

    def __init__(
        self, work: Work, place: Place, released_us: float | None, launched_us: float, cause: Cause, at_least: bool
    ) -> None:
        self.work = work
        self.place = place
        self.released_us = released_us
        self.launched_us = launched_us  # when its launch call returned; -inf where that is not in the trace
        self.event_us = -inf  # when the last event came for which it is known to have waited
        self.cause = cause
        self.at_least = at_least  # what it waited is no less


class Delay(NamedTuple):
    """A waiter waited for the work [first, end) of a stream, for at most slack_us longer than without it."""

    waiter: str
    place: tuple[int, str]
    first: int
    end: int
    slack_us: float


class _Pending(NamedTuple):
    """A wait of a stream, kept until its next work is launched, or somebody waits for the stream."""

    since_us: float  # the work in front of it had ended
    until_us: float


class _Ended(NamedTuple):
    """All that was enqueued on a stream up to some call."""

    time_us: float
    at_least: bool  # or later
    place: tuple[int, str]
    works: int
    work_us: float  # the last work
    event_us: float  # the last event for which it waits behind that
    pending: dict[int, _Pending]


@dataclass
class StreamQueue:
    place: tuple[int, str]
    works: list[Queued] = field(default_factory=list)
    time_us: float = -inf
    at_least: bool = True  # what it did before the trace began is not known
    by_event: bool = False
    event_us: float = -inf  # the last event that what follows waits for
    last: int = 0  # correlation
    work_us: float = -inf  # the last work had ended
    pending: dict[int, _Pending] = field(default_factory=dict)  # by the number of the delay

    def ended(self) -> _Ended:
        works, pending = len(self.works), dict(self.pending)
        return _Ended(self.time_us, self.at_least, self.place, works, self.work_us, self.event_us, pending)


@dataclass
class Queues:
    """streams: of one process, their work in the order of its calls."""

    streams: dict[tuple[int, str], StreamQueue]
    delays: list[Delay]
    without_call: int  # pieces of work
    stream_waits: int
    stream_waits_untold: int  # of these, for what is not said
    host_waits_untold: int
    any_wait: bool  # a wait or a call that waits, of any kind


def walk(works: Sequence[Work], calls: Iterable[Call], waits: Sequence[Wait]) -> Queues:
    """Return the queues of one process."""
    return _Walk(works, {call.correlation: call for call in calls}, waits).run()


def _branched(works: Iterable[Work]) -> set[int]:
    """Return the correlations of graphs whose nodes have an order that no row says.

    They ran on several streams, or beside each other. The others ran one after the other, like launches on a stream."""
    latest: dict[int, Work] = {}
    found = set()
    for work in sorted(works, key=lambda work: work.start_us):
        if work.correlation is None:
            continue
        before = latest.setdefault(work.correlation, work)
        if before is not work and (
            (before.device, before.stream) != (work.device, work.stream) or work.start_us < before.end_us
        ):
            found.add(work.correlation)
        latest[work.correlation] = work
    return found


def _untold_waits(calls: Iterable[Call], told: Collection[int]) -> Iterable[Call]:
    """Yield the calls by which the host waits for streams that no row names; polling is one call from first to last."""
    run: list[Call] = []
    for call in sorted(calls, key=lambda call: call.correlation):
        if _QUERY.fullmatch(call.name) and call.correlation not in told:
            run.append(call)
            continue
        if len(run) >= _POLLS:
            yield run[0]._replace(end_us=run[-1].end_us)
        run.clear()
        if _ALL_WAIT.fullmatch(call.name) or _FUNCTION.fullmatch(call.name):
            yield call
    if len(run) >= _POLLS:
        yield run[0]._replace(end_us=run[-1].end_us)


def _size(communication: TracedLaunch) -> tuple[object, ...]:
    """Return what communication has in common that takes the same time."""
    moved = communication.collective.bytes if communication.collective else None
    return communication.kernel, communication.blocks, communication.threads, moved


def _losses(works: Sequence[Queued], delays: Iterable[Delay]) -> Iterable[tuple[int, float]]:
    """Yield of each communication of a stream the number behind it, and the longest that anybody lost by waiting."""
    kernels = [(end, one.work) for end, one in enumerate(works, 1) if isinstance(one.work, TracedLaunch)]
    found = [(end, kernel, kernel.end_us - kernel.start_us) for end, kernel in kernels if kernel.communication]
    lengths: defaultdict[object, list[float]] = defaultdict(list)
    for _, kernel, length in found:
        lengths[kernel.kernel].append(length)
        lengths[_size(kernel)].append(length)
    least = {key: min(own) for key, own in lengths.items()}
    coming = sorted(delays, key=lambda delay: delay.first, reverse=True)
    waiting: list[tuple[float, int]] = []  # those for the work in front of this one or behind it, the longest first
    for number, (end, kernel, _) in enumerate(found):
        while coming and coming[-1].first < end:
            delay = coming.pop()
            heappush(waiting, (-delay.slack_us, delay.end))
        while waiting and waiting[0][1] < end:
            heappop(waiting)
        own = [-waiting[0][0]] if waiting else []
        behind = works[end] if end < len(works) else None
        if behind and max(behind.launched_us, behind.event_us) < kernel.end_us:
            own.append(kernel.end_us - max(behind.launched_us, behind.event_us))
        if own and number + 1 < len(found):
            _, further, length = found[number + 1]
            is_known = len(lengths[_size(further)]) > 1
            own.append(length - least[_size(further) if is_known else further.kernel])
        yield end, max(own, default=inf)


class _Walk:
    def __init__(self, works: Sequence[Work], calls: dict[int, Call], waits: Sequence[Wait]) -> None:
        self.works, self.calls, self.waits = works, calls, waits
        self.streams: dict[tuple[int, str], StreamQueue] = {}
        self.delays: list[Delay] = []
        self.devices: defaultdict[str, set[int]] = defaultdict(set)
        self.recorded: dict[tuple[int, str], _Ended] = {}  # by the event's record: correlation and stream
        self.polled: dict[tuple[tuple[int, str], int], tuple[float, _Ended]] = {}  # since when the host waits for what
        self.seen: dict[tuple[str, tuple[int, str]], int] = {}  # by waiter and stream: work that it waited for before
        self.pending: dict[Place, StreamQueue] = {}  # the streams that have pending waits
        self.branched = _branched(works)
        told = any(not wait.host for wait in waits)
        self.vague = [] if told else sorted(c for c, call in calls.items() if STREAM_WAIT.fullmatch(call.name))
        self.untold = len(self.vague)

    def run(self) -> Queues:
        for work in self.works:
            self.devices[work.stream].add(work.device)
        worked = set(self.devices)
        for wait in self.waits:
            if not wait.host and wait.stream is not None and wait.stream not in worked:  # it may hand waits on
                self.devices[wait.stream].add(wait.device)
                self._stream((wait.device, wait.stream)).at_least = False
        records = {wait.event[1]: wait.event[0] for wait in self.waits if wait.event}
        told = {wait.correlation for wait in self.waits}
        rare: list[tuple[int, Wait | Call | str]] = [
            *records.items(),
            *((wait.correlation, wait) for wait in self.waits),
            *((call.correlation, call) for call in _untold_waits(self.calls.values(), told)),
        ]
        rare.sort(key=lambda step: step[0])
        # Nodes of a graph in the order of time: sorting keeps the order of equals.
        ordered = sorted(self.works, key=lambda work: work.start_us)
        ordered.sort(key=lambda work: work.correlation or 0)
        at = 0
        for work in ordered:
            while at < len(rare) and rare[at][0] <= (work.correlation or 0):
                self._rare(*rare[at])
                at += 1
            self._work(work)
        for correlation, step in rare[at:]:
            self._rare(correlation, step)
        self._host_delays()
        self._communication()
        self._bound_the_vague()
        queued = [one for stream in self.streams.values() for one in stream.works]
        hosts = sum(1 for wait in self.waits if wait.host and wait.stream is None and wait.event is None)
        if not any(wait.host for wait in self.waits):
            hosts = sum(1 for call in self.calls.values() if HOST_WAIT.fullmatch(call.name))
        return Queues(
            streams=self.streams,
            delays=self.delays,
            without_call=sum(1 for one in queued if one.released_us is None),
            stream_waits=len(self.vague) or sum(1 for wait in self.waits if not wait.host),
            stream_waits_untold=self.untold,
            host_waits_untold=hosts,
            any_wait=bool(self.waits) or any(_ANY_WAIT.search(name) for name in {c.name for c in self.calls.values()}),
        )

    def _stream(self, place: tuple[int, str]) -> StreamQueue:
        stream = self.streams.get(place)
        if stream is None:
            stream = self.streams[place] = StreamQueue(place)
        return stream

    def _place(self, stream: str, device: int) -> tuple[int, str]:
        """Streams have numbers of their own in a process, but for the default ones."""
        devices = self.devices[stream]
        return (next(iter(devices)) if len(devices) == 1 else device), stream

    # ---- one step each ----

    def _rare(self, correlation: int, step: Wait | Call | str) -> None:
        if isinstance(step, str):
            self._record(correlation, step)
        elif isinstance(step, Call):
            self._untold_wait(step)
        else:
            self._wait(step)

    def _work(self, work: Work) -> None:
        stream = self._stream((work.device, work.stream))
        correlation = work.correlation or 0
        call = self.calls.get(correlation)
        branched = work.correlation is None or work.correlation in self.branched
        waits_between = bisect_left(self.vague, correlation) > bisect_right(self.vague, stream.last)
        at_least = stream.at_least or branched or waits_between
        released, launched, cause = None, -inf, Cause.EVENT if stream.by_event else Cause.STREAM
        if call is not None:
            launched = min(call.end_us, work.start_us)
            released = min(max(stream.time_us, launched), work.start_us)
            cause = Cause.LAUNCH if launched >= stream.time_us else cause
        self._waited(stream.pending, launched)
        stream.pending.clear()
        stream.work_us = max(stream.work_us, work.end_us)
        queued = Queued(work, stream.place, released, launched, cause, at_least)
        queued.event_us, stream.event_us = stream.event_us, -inf
        stream.works.append(queued)
        stream.time_us, stream.at_least = max(stream.time_us, work.end_us), branched
        stream.by_event, stream.last = False, correlation
        if call is not None and isinstance(work, MemoryOperation) and call.end_us >= work.end_us:  # it blocks
            self._host_waits(call.start_us, stream.ended())
            if work.stream == LEGACY and _BLOCKING.fullmatch(call.name):
                self._legacy_waits(call, work)

    def _legacy_waits(self, call: Call, copy: MemoryOperation) -> None:
        """Let the host wait for blocking streams, as a copy on the legacy one does: those that ended just before it."""
        for other in islice(self.streams.values(), _MANY):
            device, name = other.place
            ended_just_before = other.time_us <= copy.start_us <= other.time_us + LEGACY_US
            if device == copy.device and name != LEGACY and call.start_us < other.time_us and ended_just_before:
                self._host_waits(call.start_us, other.ended())

    def _waited(self, pending: dict[int, _Pending], there_us: float) -> None:
        """Count what is lost by a waiter that had nothing else to wait for from there_us on."""
        for number, one in pending.items():
            slack_us = one.until_us - max(one.since_us, there_us)
            if slack_us > self.delays[number].slack_us:
                self.delays[number] = self.delays[number]._replace(slack_us=slack_us)

    def _record(self, correlation: int, name: str) -> None:
        for device in self.devices[name]:
            stream = self.streams.get((device, name))
            if stream is not None and (stream.works or stream.time_us > -inf):
                self.recorded[correlation, name] = stream.ended()

    def _wait(self, wait: Wait) -> None:
        stream, correlation = wait.event or ("", 0)
        ended = self.recorded.get((correlation, stream))
        if not wait.host:
            self._stream_waits(self._stream((wait.device, str(wait.stream))), ended, wait.start_us)
        elif wait.stream is not None:
            place = self._place(wait.stream, wait.device)
            if place in self.streams:
                self._host_waits(wait.start_us, self.streams[place].ended())
        elif ended is not None:
            self._host_waits(wait.start_us, ended)

    def _stream_waits(self, stream: StreamQueue, ended: _Ended | None, called_us: float) -> None:
        if ended is None:
            stream.at_least = True
            self.untold += 1
            return
        pending = ended.pending
        if self._delay(f"stream {stream.place[1]}", ended, 0.0):
            pending = {**pending, len(self.delays) - 1: _Pending(ended.event_us, ended.work_us)}
        self._keep_pending(stream, pending, called_us)
        stream.event_us = max(stream.event_us, ended.time_us)
        if ended.time_us > stream.time_us:
            stream.time_us, stream.by_event = ended.time_us, True
        stream.at_least = stream.at_least or ended.at_least

    def _untold_wait(self, call: Call) -> None:
        """Let the host wait for all streams that were waiting for what was over when the call returned."""
        by_us = inf if _FUNCTION.fullmatch(call.name) else call.end_us + LEAST_US
        for place, stream in list(islice(self.pending.items(), _MANY)):
            over = {number: one for number, one in stream.pending.items() if one.until_us <= by_us}
            self._waited(over, call.start_us)
            for number in over:  # a waiter that comes later loses no more
                del stream.pending[number]
            if not stream.pending:
                del self.pending[place]

    def _keep_pending(self, stream: StreamQueue, pending: dict[int, _Pending], called_us: float) -> None:
        """Keep the waits by which work behind them, launched after called_us, can lose time."""
        over = [number for number, one in stream.pending.items() if one.until_us <= called_us]
        for number in over:
            del stream.pending[number]
        for number, one in pending.items():
            since_us = max(one.since_us, stream.time_us)
            if one.until_us > max(since_us, called_us):
                stream.pending.setdefault(number, _Pending(since_us, one.until_us))
        for number in list(islice(stream.pending, max(0, len(stream.pending) - _PENDING))):
            del stream.pending[number]
        if stream.pending:
            self.pending[stream.place] = stream

    def _host_waits(self, since_us: float, ended: _Ended) -> None:
        """Once, however often the host asks."""
        self._waited(ended.pending, since_us)
        begun, _ = self.polled.get((ended.place, ended.works), (inf, ended))
        self.polled[ended.place, ended.works] = min(begun, max(since_us, ended.event_us)), ended

    def _delay(self, waiter: str, ended: _Ended, slack_us: float) -> bool:
        first = self.seen.get((waiter, ended.place), 0)
        self.seen[waiter, ended.place] = ended.works
        if first < ended.works:
            self.delays.append(Delay(waiter, ended.place, first, ended.works, slack_us))
        return first < ended.works

    # ---- when all is known ----

    def _host_delays(self) -> None:
        for begun, ended in sorted(self.polled.values(), key=lambda one: (one[1].works, one[0])):
            self._delay(HOST, ended, ended.work_us - begun)

    def _communication(self) -> None:
        """Let another rank wait for communication, which the work in front of it delays.

        What that costs comes back: who waits for it on this rank waits longer, or the next one of the stream takes
        longer than it must, because the other rank is late in its turn. Where nobody here is known to wait, nothing is
        known.
        """
        waits = sum(1 for wait in self.waits if not wait.host)
        is_told = bool(self.waits) and (2 * self.untold < waits or not self.untold)
        lost: defaultdict[Place, list[Delay]] = defaultdict(list)
        for delay in self.delays:
            lost[delay.place].append(delay)
        for place, stream in self.streams.items():
            first = 0
            for end, slack_us in _losses(stream.works, lost[place]):
                self.delays.append(Delay(COMMUNICATION, place, first, end, slack_us if is_told else inf))
                first = end

    def _bound_the_vague(self) -> None:
        ends = sorted((work.end_us, work.correlation or 0) for work in self.works)
        times = [end for end, _ in ends]
        for stream in self.streams.values():
            for one in stream.works:
                if one.at_least and one.released_us is not None:
                    one.released_us = max(one.released_us, self._released_before(one.work, ends, times))

    def _released_before(self, work: Work, ends: Sequence[tuple[float, int]], times: Sequence[float]) -> float:
        last = bisect_right(times, work.start_us) - 1
        for index in range(last, max(-1, last - _FAR), -1):
            if ends[index][1] <= (work.correlation or 0):
                return ends[index][0]
        return times[last - _FAR] if last >= _FAR else -inf
