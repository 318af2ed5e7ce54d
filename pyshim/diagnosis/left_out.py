"""What is left out of a trace, and whether it could change the answer.

Readers leave out records without a usable time, and count them by sort and name. Their lengths are taken to be those of
the others of their name. Where there are no others, or where they would take a tenth of the time of all work, nothing
is known.

Left out here are kernels and copies that cannot have run as the trace says:

- They began more than a second before the call that launched them.
- They still ran when later work of their stream ran, as work of one stream never does. Two exceptions: kernels of a
  graph, and one kernel that begins before the end of the kernel in front (programmatic dependent launch).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from pyshim.counts import counted
from pyshim.profiles.record import CALL, COPY, KERNEL, WAIT, Call, Trace, TracedLaunch, Work

_FEW = 0.1  # of the work's time, of the calls, of the waits: so much need not be known
_IMPOSSIBLE_US = 1e6  # before its launch, or beside the next work of its stream
_BESIDE_THIRD_US = 100.0  # beside the work behind the next one
_BY_QUEUE = "rocprofv3"  # its rows may be queues of the hardware, which several streams share

Sort = tuple[str, str]  # KERNEL or COPY, and the kernel's name


# ---- what cannot have run so ----


def clocks_differ(trace: Trace, works: Sequence[Work], calls: Sequence[Call]) -> bool:
    """Return whether most of the work began long before its launch, and note it."""
    early = _early(works, calls)
    if len(early) <= len(works) / 2:
        return False
    trace.warnings.append(
        f"{trace.path}: {len(early):,} of {len(works):,} kernels and copies began up to "
        f"{max(early.values()) / 1e6:,.1f} s before their launch: the clocks of host and GPU differ, and when work was "
        "launched is not known"
    )
    return True


def possible(trace: Trace, works: Sequence[Work], calls: Sequence[Call]) -> tuple[list[Work], Counter[Sort]]:
    """Return the work that can have run as the trace says, and how much of what else cannot; note the latter."""
    early = set(_early(works, calls))
    if early:
        one = "1 kernel or copy began more than a second before it was launched: an impossible record, left out"
        more = f"{len(early):,} kernels and copies began more than a second before they were launched: "
        said = one if len(early) == 1 else f"{more}impossible records, left out"
        trace.warnings.append(f"{trace.path}: {said}")
    beside = set() if trace.kind == _BY_QUEUE else _too_long(works, set(_beside_their_own_stream(works)))
    if beside:
        longest = max(works[index].end_us - works[index].start_us for index in beside)
        said = counted(len(beside), "kernel or copy runs", "kernels and copies run")
        record = "an impossible record" if len(beside) == 1 else "impossible records"
        trace.warnings.append(
            f"{trace.path}: {said} for up to {_time(longest)} beside later work of the same stream: {record}, left out"
        )
    gone = early | beside
    return (
        [work for index, work in enumerate(works) if index not in gone],
        Counter(_name(works[index]) for index in gone),
    )


def _early(works: Sequence[Work], calls: Sequence[Call]) -> dict[int, float]:
    """Return the work that began long before the call that launched it, and how long."""
    called = {call.correlation: call.start_us for call in calls}
    ahead = (called.get(work.correlation or 0, -inf) - work.start_us for work in works)
    return {index: time for index, time in enumerate(ahead) if time > _IMPOSSIBLE_US}


def _beside_their_own_stream(works: Sequence[Work]) -> Iterator[int]:
    launched = Counter(work.correlation for work in works)  # several of one number are of a graph
    of_stream: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for index, work in enumerate(works):
        if work.correlation and launched[work.correlation] == 1 and not getattr(work, "graph", False):
            of_stream[work.device, work.stream].append(index)
    for own in of_stream.values():
        own.sort(key=lambda index: works[index].start_us)
        starts = [*(works[index].start_us for index in own), inf, inf]
        for place, index in enumerate(own):
            end = works[index].end_us
            if end > starts[place + 1] + _IMPOSSIBLE_US or end > starts[place + 2] + _BESIDE_THIRD_US:
                yield index


def _too_long(works: Sequence[Work], found: set[int]) -> set[int]:
    """Return what was found, and what is as long as those of its name: the last of a stream runs beside nothing."""
    least: dict[Sort, float] = {}
    for index in found:
        name, length = _name(works[index]), works[index].end_us - works[index].start_us
        least[name] = min(least.get(name, inf), length)
    if not least:
        return found
    lengths = ((index, _name(work), work.end_us - work.start_us) for index, work in enumerate(works))
    return found | {index for index, name, length in lengths if length >= least.get(name, inf)}


def _time(microseconds: float) -> str:
    return f"{microseconds / 1e6:,.1f} s" if microseconds >= 1e5 else f"{microseconds / 1e3:,.1f} ms"


# ---- whether it matters ----


def what_matters(
    trace: Trace, works: Sequence[Work], gone: Mapping[Sort, int], part: float, steps: int, have: Mapping[str, int]
) -> str:
    """Return a clause about what could change the answer, "" where nothing could.

    works: what is looked at, `part` of what was read, and so many steps, 0 if it is all; gone: what was left out of it
    as impossible; have: how many calls and waits were read. Nobody knows in which steps a record without a time was: of
    some steps it counts by their part, and kernels of a name that has none there only if each second step has one."""
    unread: Counter[str] = Counter()
    for (sort, _), number in trace.left_out.items():
        unread[sort] += number
    for sort, words in ((CALL, "calls of the host"), (WAIT, "waits of streams and of the host")):
        whole = unread[sort] + have[sort]
        if unread[sort] > _FEW * whole:
            return f"{unread[sort]:,} of {whole:,} {words} have no usable time"
    missing = Counter(dict(gone))
    there = {_name(work) for work in works}
    for (sort, name), number in trace.left_out.items():
        if sort in (KERNEL, COPY):
            own = sort, name if sort == KERNEL else ""
            expected = number * part if steps else float(number)
            missing[own] += round(expected) if own in there or expected >= steps / 2 else 0
    missing = +missing
    if not missing or not _is_much(works, missing):
        return ""
    number = sum(missing.values())
    whole = number + len(works)
    return f"{number:,} of {whole:,} kernels and copies have no usable time"


def _is_much(works: Sequence[Work], missing: Mapping[Sort, int]) -> bool:
    """Whether what is missing takes much of the time, by the work of its name that is there."""
    times: defaultdict[Sort, list[float]] = defaultdict(list)
    for work in works:
        times[_name(work)].append(work.end_us - work.start_us)
    if not all(times.get(name) for name in missing):
        return True
    time = sum(number * sum(times[name]) / len(times[name]) for name, number in missing.items())
    return time > _FEW * (time + sum(map(sum, times.values())))


def _name(work: Work) -> Sort:
    return (KERNEL, work.kernel) if isinstance(work, TracedLaunch) else (COPY, "")
