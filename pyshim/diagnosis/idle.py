"""Why a GPU is idle: by the work whose start ends each gap.

- The host is late: it launched that work when the gap had begun. The whole gap counts, with the time in which the work
  begins, unless the work then waits for an event. Of this, `after_wait_us` is in gaps that began while the host waited
  for the GPU, in a synchronization or a blocking copy: it had launched nothing ahead.
- Launch latency: short gaps before work that was launched ahead, as between kernels that depend on each other.
- An event: the work's stream waited for one, as for another GPU's work, or for what the trace does not say.
- Not known: no launch call is in the trace, or the work was launched and nothing says why it did not begin.

HolisticTraceAnalysis ("Idle Time Breakdown") divides in the same way into host wait, kernel wait and other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshim.diagnosis.intervals import Interval, merged
from pyshim.diagnosis.queues import Cause, Queued
from pyshim.profiles.record import Call, NamedRange

START_US = 15.0  # ready work begins within this time on an idle GPU
_WAITS = re.compile(r"(cuda|cu|hip)(\w*Synchronize|Memcpy\w*|Memset)(_\w+)?")
_BLOCKED_US = 10.0  # a shorter call has waited for nothing


HOST, AFTER_WAIT, START, EVENT, UNKNOWN = (
    "the host is late",
    "the host is late, after it waited",
    "launch latency",
    "waits for an event",
    "not known",
)


@dataclass(frozen=True)
class Idle:
    """Microseconds of a step, on average."""

    host_us: float = 0.0  # after_wait_us is a part of it
    after_wait_us: float = 0.0
    start_us: float = 0.0
    event_us: float = 0.0
    unknown_us: float = 0.0
    gaps: float = 0.0  # longer than START_US, in a step
    longest_us: float = 0.0  # of all steps
    longest_in: str = ""  # the range of the host, if it has a name
    longest_by_host: bool = False  # the host was late


class Piece(NamedTuple):
    """A gap, or a part of one, of one cause."""

    start_us: float
    end_us: float
    cause: str


def host_waits(calls: Iterable[Call]) -> list[Interval]:
    """Return when the host waited for a GPU."""
    waits = [
        (call.start_us, call.end_us)
        for call in calls
        if call.end_us - call.start_us >= _BLOCKED_US and _WAITS.fullmatch(call.name)
    ]
    return merged(sorted(waits))


def waited_at(waits: Sequence[Interval], time_us: float) -> bool:
    """Whether the host waited for a GPU at some time."""
    number = bisect_right(waits, (time_us, float("inf"))) - 1
    return number >= 0 and waits[number][1] >= time_us


def pieces(gaps: Sequence[Interval], queued: Sequence[Queued], waits: Sequence[Interval]) -> Iterator[Piece]:
    """Yield the causes of the gaps of a GPU. queued: all its work, in the order of starts; waits: of the host."""
    at = 0
    for first, last in gaps:
        while at < len(queued) and queued[at].work.start_us < last:
            at += 1
        following = queued[at] if at < len(queued) else None
        if following is None or following.released_us is None:
            yield Piece(first, last, UNKNOWN)
            continue
        launched = min(max(first, following.launched_us), last)
        if launched > first and following.cause is Cause.LAUNCH and not following.at_least:
            launched = last
        if launched > first:
            yield Piece(first, launched, AFTER_WAIT if waited_at(waits, first) else HOST)
        if launched == last:
            continue
        if last - launched <= START_US:
            yield Piece(launched, last, START)
        elif following.cause is Cause.EVENT or following.event_us >= first or following.at_least:
            yield Piece(launched, last, EVENT)
        else:
            yield Piece(launched, last, UNKNOWN)


def summary(of_gpus: Sequence[Sequence[Piece]], steps: int, ranges: Sequence[NamedRange], longest_us: float) -> Idle:
    """Return the mean of the GPUs. ranges: of the host; those longer than longest_us say nothing."""
    sums: defaultdict[str, float] = defaultdict(float)
    count, longest = 0, Piece(0.0, 0.0, UNKNOWN)
    for one in of_gpus:
        for piece in one:
            sums[piece.cause] += piece.end_us - piece.start_us
            count += piece.end_us - piece.start_us > START_US
            longest = max(longest, piece, key=lambda piece: piece.end_us - piece.start_us)
    parts = steps * len(of_gpus)
    short = [one for one in ranges if one.end_us - one.start_us < longest_us]
    return Idle(
        host_us=(sums[HOST] + sums[AFTER_WAIT]) / parts,
        after_wait_us=sums[AFTER_WAIT] / parts,
        start_us=sums[START] / parts,
        event_us=sums[EVENT] / parts,
        unknown_us=sums[UNKNOWN] / parts,
        gaps=count / parts,
        longest_us=longest.end_us - longest.start_us,
        longest_in=_innermost(longest, short) if longest.cause in (HOST, AFTER_WAIT) else "",
        longest_by_host=longest.cause in (HOST, AFTER_WAIT),
    )


def _innermost(piece: Piece, ranges: Iterable[NamedRange]) -> str:
    """Return the shortest range that covers most of a piece, "" if none does."""
    half = (piece.end_us - piece.start_us) / 2
    covers = [
        (one.end_us - one.start_us, one.name)
        for one in ranges
        if min(one.end_us, piece.end_us) - max(one.start_us, piece.start_us) > half
    ]
    return min(covers)[1] if covers else ""
