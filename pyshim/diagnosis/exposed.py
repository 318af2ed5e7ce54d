"""Why communication is exposed: each moment of it has one cause.

Taken in this order, for the exposed time of each collective:

1. Late ranks: before the transfer begins, which takes as long as the shortest of the same collective on any rank
   (ranks.py).
2. The same stream: the computation that follows is on the collective's own stream, so it could not have run beside it.
3. The host is late: up to the return of the call that launched the computation that follows, unless the host waited
   for the collective.
4. One wave, or another kernel: as long as the collective was queued, ready to run, behind a kernel of another stream
   (blocked.py), whose blocks were all resident at once, or not.
5. Too much communication: as long as it was ready behind a collective of its own stream while computation ran; and the
   rest of one that began beside computation, which ended first.
6. Waited for at once: it started only when its result was needed, because no computation ran any more.

Without launch calls in the trace, what is left of 3 to 6 is not known.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyshim.diagnosis.blocked import Blocked
from pyshim.diagnosis.idle import waited_at
from pyshim.diagnosis.intervals import Interval, clipped, length
from pyshim.diagnosis.queues import Queued, Queues
from pyshim.diagnosis.shares import Timeline, exposed_by_kernel
from pyshim.profiles.kernel_names import readable
from pyshim.profiles.record import TracedLaunch

LATE_RANKS, SAME_STREAM, HOST_LATE = "late ranks", "on the computing stream", "the host is late"
ONE_WAVE, BEHIND = "behind one wave", "behind a kernel"
AT_ONCE, TOO_LONG, UNKNOWN = "started only when needed", "too much communication", "not known"
CAUSES = (LATE_RANKS, SAME_STREAM, HOST_LATE, ONE_WAVE, BEHIND, AT_ONCE, TOO_LONG, UNKNOWN)

_COMPUTES = 0.1  # of a GPU's computation: what a stream carries that is said to compute
_AT_ONCE_US = 2.0  # from the start of a collective to the first moment in which nothing computes
_NEXT_US = 20.0  # from the end of a collective to the start of one that stood behind it
# The usual name of a collective, by what is in its name or that of its kernel; the first that fits.
_NAMES = {
    "all_?reduce|cross_device_reduce": "all-reduce",
    "reduce_?scatter": "reduce-scatter",
    "all_?gather": "all-gather",
    "all_?to_?all": "all-to-all",
    "broadcast": "broadcast",
    "barrier": "barrier",
    "send|recv": "send and receive",
    "reduce": "reduce",
    "generic": "collective",
}


@dataclass(frozen=True)
class CollectiveRun:
    """One communication kernel that ran in the steps, as far as it matters who waited for it."""

    name: str
    group: str
    sequence: int | None  # of its group; None: not told
    bytes: int | None
    device: int
    start_us: float
    end_us: float
    exposed: tuple[Interval, ...]
    host_until: tuple[float, ...]  # for each of these, until when the host had not launched what follows
    same_stream: bool
    blocked_us: float
    one_wave: bool  # what it stood behind
    queued_us: float  # behind its predecessor, while computation ran
    computing: bool  # when it began
    told: bool

    @property
    def length_us(self) -> float:
        return self.end_us - self.start_us

    def causes(self, transfer_us: float | None) -> dict[str, float]:
        """Return the exposed time by its causes. transfer_us: how long it takes once all ranks are there, if known."""
        found: defaultdict[str, float] = defaultdict(float)
        begins = self.start_us if transfer_us is None else self.end_us - transfer_us
        left = 0.0
        for (first, last), host_until in zip(self.exposed, self.host_until):
            waited = min(max(begins, first), last)
            found[LATE_RANKS] += waited - first
            if self.same_stream:
                found[SAME_STREAM] += last - waited
                continue
            launched = min(max(host_until, waited), last)
            found[HOST_LATE] += launched - waited
            left += last - launched
        for cause, most in (
            (ONE_WAVE if self.one_wave else BEHIND, self.blocked_us),
            (TOO_LONG, self.queued_us),
            (UNKNOWN if not self.told else TOO_LONG if self.computing else AT_ONCE, left),
        ):
            found[cause] += min(left, most)
            left -= min(left, most)
        return {cause: time for cause, time in found.items() if time > 0}


@dataclass(frozen=True)
class Kind:
    """All collectives of one name. Times and counts are of a step, on average of the GPUs."""

    name: str
    count: float
    us: float
    bytes: float | None  # of one, on average, where all tell it
    exposed_us: float
    causes: Mapping[str, float]


@functools.cache
def collective_name(kernel: str, told: str) -> str:
    """Return the usual name of a collective, from what the trace calls it or from its kernel."""
    for text in (told, kernel):
        for pattern, name in _NAMES.items():
            if re.search(pattern, text, re.IGNORECASE):
                return name
    return readable(kernel).partition("<")[0].rpartition("::")[2]


def collectives(
    timeline: Timeline,
    queued: Sequence[Queued],
    queues: Queues,
    blocked: Mapping[int, Blocked],
    host: Sequence[Interval],
) -> list[CollectiveRun]:
    """Return what one GPU communicated between the times of a timeline. queued: its work in the order of starts."""
    kernels = [one for one in queued if isinstance(one.work, TracedLaunch)]
    own = [one for one in kernels if _communicates(one) and timeline.begin <= one.work.start_us < timeline.end]
    if not own:
        return []
    computing = [one for one in kernels if not _communicates(one)]
    starts = [one.work.start_us for one in computing]
    main = _computing_streams(computing)
    exposed = exposed_by_kernel([_launch(one) for one in own], timeline.exposed)
    before = _predecessors(queues)
    told = any(one.released_us is not None for one in own)
    found = []
    for one, slices in zip(own, exposed):
        work = _launch(one)
        until, same = [], False
        for first, last in slices:
            number = bisect_left(starts, last - 0.001)
            following = computing[number] if number < len(computing) else None
            same = same or (following is not None and following.place == one.place and one.place in main)
            waits = following is None or waited_at(host, min(last, work.end_us))
            until.append(first if waits or following is None else following.launched_us)
        stood = blocked.get(id(one))
        said = work.collective
        found.append(
            CollectiveRun(
                name=collective_name(work.kernel, said.name if said else ""),
                group=said.group if said else "",
                sequence=said.sequence if said else None,
                bytes=said.bytes if said else None,
                device=work.device,
                start_us=work.start_us,
                end_us=work.end_us,
                exposed=tuple(slices),
                host_until=tuple(until),
                same_stream=same,
                blocked_us=stood.length_us if stood else 0.0,
                one_wave=stood is not None and stood.one_wave,
                queued_us=_queued_us(one, before.get(id(one)), timeline),
                computing=not slices or slices[0][0] > work.start_us + _AT_ONCE_US,
                told=told,
            )
        )
    return found


def by_name(found: Iterable[tuple[CollectiveRun, float | None]], steps: int, gpus: int) -> tuple[Kind, ...]:
    """Return collectives by their names, the most exposed first. found: with the time of their transfer, if known."""
    groups: defaultdict[str, list[tuple[CollectiveRun, float | None]]] = defaultdict(list)
    for ran in found:
        groups[ran[0].name].append(ran)
    kinds = []
    for name, own in groups.items():
        causes: defaultdict[str, float] = defaultdict(float)
        for one, transfer in own:
            for cause, time in one.causes(transfer).items():
                causes[cause] += time / (steps * gpus)
        sizes = [one.bytes for one, _ in own if one.bytes is not None]
        kinds.append(
            Kind(
                name,
                len(own) / (steps * gpus),
                sum(one.length_us for one, _ in own) / (steps * gpus),
                sum(sizes) / len(sizes) if len(sizes) == len(own) else None,
                sum(causes.values()),
                dict(sorted(causes.items(), key=lambda item: -item[1])),
            )
        )
    return tuple(sorted(kinds, key=lambda kind: (-kind.exposed_us, -kind.us)))


def _communicates(one: Queued) -> bool:
    return _launch(one).communication


def _launch(one: Queued) -> TracedLaunch:
    assert isinstance(one.work, TracedLaunch)
    return one.work


def _computing_streams(kernels: Iterable[Queued]) -> set[tuple[int, str]]:
    sums: defaultdict[tuple[int, str], float] = defaultdict(float)
    for one in kernels:
        sums[one.place] += one.work.end_us - one.work.start_us
    whole = sum(sums.values())
    return {place for place, time in sums.items() if time >= _COMPUTES * whole}


def _predecessors(queues: Queues) -> dict[int, Queued]:
    """Return, by id, the collective in front of a collective of the same stream."""
    found = {}
    for stream in queues.streams.values():
        for before, one in zip(stream.works, stream.works[1:]):
            if _is_collective(before) and _is_collective(one):
                found[id(one)] = before
    return found


def _is_collective(one: Queued) -> bool:
    return isinstance(one.work, TracedLaunch) and one.work.communication


def _queued_us(one: Queued, before: Queued | None, timeline: Timeline) -> float:
    """Return how long computation ran while a collective stood ready behind its predecessor."""
    if before is None or one.released_us is None or one.work.start_us - before.work.end_us > _NEXT_US:
        return 0.0
    ready = max(one.launched_us, one.event_us)
    # For which event it waited is not known where none is told: then no longer than its predecessor ran.
    since = max(ready, before.work.start_us) if one.at_least or one.event_us == float("-inf") else ready
    return length(clipped(_between(timeline.computation, since, one.work.start_us), since, one.work.start_us))


def _between(of: Sequence[Interval], begin: float, end: float) -> Sequence[Interval]:
    """Return the intervals that may lie between two times."""
    first = max(0, bisect_left(of, (begin, begin)) - 1)
    return of[first : bisect_left(of, (end, end))]
