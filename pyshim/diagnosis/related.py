"""Tell which traces are of ranks of one run.

Not of one are the same recording twice, one process or rank that was recorded twice, and other programs.

Ranks of one run share collectives or run about the same kernels. A trace may say of which rank it is, and Kineto's have
the process ID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyshim.diagnosis.result import ProcessResult
from pyshim.profiles.record import Trace

_SHARED = 0.5  # of the kernels of the one that has fewer: programs that share so many are one


def without_copies(processes: Sequence[ProcessResult], notes: list[str]) -> list[ProcessResult]:
    """Leave out what is in several files, and note it."""
    kept: dict[object, ProcessResult] = {}
    for one in processes:
        # Times are of a clock that runs on: two recordings have never all of them in common.
        recording = one.rank, one.process, one.pictured, one.span_us, one.kernels
        first = kept.setdefault(recording, one)
        if first is not one:
            notes.append(f"{one.path} is the same recording as {first.path}, and is left out")
    return list(kept.values())


def recordings(processes: Sequence[ProcessResult], traces: Mapping[str, Trace], why: list[str]) -> list[int]:
    """Return of each process how many recordings of the same process or rank are before it: 0 where it has one alone.

    Only those with equal numbers can be ranks of one run. why: gets a clause for those that are not."""
    numbers = [0] * len(processes)
    same: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, one in enumerate(processes):
        trace = traces[one.path]
        if one.rank is not None:
            same["rank", one.rank, one.process].append(number)
        elif trace.pid is not None:
            same["process", trace.pid, trace.host].append(number)
    for (what, name, _), members in same.items():
        members.sort(key=lambda number: traces[processes[number].path].extent_us)
        extents = [traces[processes[number].path].extent_us for number in members]
        apart = all(before[1] <= after[0] for before, after in zip(extents, extents[1:]))
        if len(members) < 2 or (what == "process" and not apart):  # process IDs repeat in containers
            continue
        for place, number in enumerate(members):
            numbers[number] = place
        why.append(f"{what} {name} is in {len(members)} of them")
    return numbers


def programs(processes: Sequence[ProcessResult], shared: Sequence[set[int]]) -> list[int]:
    """Return of each process the number of its program. shared: those that share collectives."""
    found: list[int] = []
    names: list[set[str]] = []  # of the kernels of each program
    for one in processes:
        own = {kernel.kernel for kernel in one.kernels if not kernel.communication}
        number = next((number for number, known in enumerate(names) if _is_one(known, own)), len(names))
        if number == len(names):
            names.append(own)
        found.append(number)
    for members in shared:
        joined = {found[member] for member in members}
        found = [min(joined) if number in joined else number for number in found]
    return found


def _is_one(known: set[str], own: set[str]) -> bool:
    return len(known & own) >= _SHARED * min(len(known), len(own))


def at_other_times(
    processes: Sequence[ProcessResult], traces: Mapping[str, Trace], worst: int, shared: Sequence[set[int]]
) -> set[int]:
    """Return those that were recorded before or after the worst one, and so are not ranks of its run.

    Of traces with ranks or shared collectives, times say nothing, because clocks may differ by anything; and those of
    Kineto alone are the time of day."""
    begin, end = traces[processes[worst].path].extent_us
    found = set()
    for number, one in enumerate(processes):
        first, last = traces[one.path].extent_us
        is_known = one.rank is not None or traces[one.path].pid is None
        if not is_known and not (first < end and begin < last) and not any({number, worst} <= of for of in shared):
            found.add(number)
    return found


def run_of(
    processes: Sequence[ProcessResult],
    traces: Mapping[str, Trace],
    worst: int,
    shared: Sequence[set[int]],
    numbers: Sequence[int],
    why: list[str],
) -> list[int]:
    """Return those that can be ranks of the run of the worst one; `why` gets a clause for the others."""
    of = programs(processes, shared)
    others = {number for number, program in enumerate(of) if program != of[worst]}
    apart = at_other_times(processes, traces, worst, shared) - others
    if others:
        verb = "shares" if len(others) == 1 else "share"
        why.insert(0, f"{len(others)} {verb} neither kernels nor collectives with it")
    if apart:
        verb = "was" if len(apart) == 1 else "were"
        why.append(f"{len(apart)} {verb} recorded at another time")
    left_out = others | apart | {number for number, place in enumerate(numbers) if place != numbers[worst]}
    return [number for number in range(len(processes)) if number not in left_out]
