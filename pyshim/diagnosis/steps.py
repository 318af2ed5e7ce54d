"""Where one step of the program ends and the next begins: found in the ranges that a trace has names for.

Taken are, the first that there are: ProfilerStep of torch.profiler; ranges called step, iteration, iter or batch that
take up half of the time or more; ranges of any name that come again and leave next to nothing out. Names are the same
but for their numbers. Ranges on the GPU go before those of the host, which may run far ahead of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from pyshim.diagnosis.intervals import Interval
from pyshim.profiles.record import NamedRange, TracedLaunch

_NUMBERS = re.compile(r"\d+")
_WORD = re.compile(r"(?<![a-z])(step|iteration|iter|batch)s?(?![a-z])", re.IGNORECASE)
_PROFILER = "ProfilerStep#"
_SETUP = 0.05  # of the kernels' time: so much may run before set-up ends
_PAUSE = 0.1  # of the trace: so long are the pauses of set-up together, or longer
_PAUSES = 16  # so many such pauses at most make up that time: each is as long as that
_PAUSE_US = 1000.0  # or longer
_INSIDE = ("Optimizer.", "nccl:")  # PyTorch's own ranges inside a step: Optimizer.step#SGD.step, nccl:all_reduce


@dataclass(frozen=True)
class Steps:
    """bounds: the start of each step, and the end of the last; each lasts until the next begins."""

    source: str  # the ranges' name, # for its numbers
    on_gpu: bool
    bounds: tuple[float, ...]
    closed: bool = False  # the last one only marks where the step before it ends

    @property
    def whole(self) -> tuple[float, ...]:
        """Return the bounds without the last of three or more steps: when the next would have begun is not known."""
        return self.bounds[:-1] if len(self.bounds) > (2 if self.closed else 3) else self.bounds


class Finder:
    """Takes the spans of one process as they come."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[str, bool], dict[object, tuple[float, float]]] = defaultdict(dict)

    def add(self, span: NamedRange) -> None:
        name = _NUMBERS.sub("#", span.name)
        group = self._groups[name, span.on_gpu]
        # A numbered range that is on several streams of the GPU is one range, from first to last.
        key = span.name if name != span.name else len(group)
        first, last = group.get(key, (span.start_us, span.end_us))
        group[key] = min(first, span.start_us), max(last, span.end_us)

    def find(self) -> Steps | None:
        candidates = []
        for (name, on_gpu), group in self._groups.items():
            ranges = sorted(group.values())
            rank = _rank(name, ranges)
            if rank is not None:
                covered = ranges[-1][1] - ranges[0][0]
                candidates.append((rank, not on_gpu, -covered, len(ranges), name, ranges))
        if not candidates:
            return None
        _, on_host, _, _, name, ranges = min(candidates)
        last = max(end for _, end in ranges)
        return Steps(name.replace("##", "#"), not on_host, (*(start for start, _ in ranges), last))


def of_process(
    finders: Mapping[int | None, Finder], process: int | None, ran: Iterable[tuple[float, float, float]]
) -> Steps | None:
    """Return the steps of a process in the GPU's time; None if there are none, or only in the host's.

    finders: by process; the only one that there is serves every process. ran: of each kernel the time of its launch
    call, its start and its end."""
    finder = finders.get(process) or (next(iter(finders.values())) if len(finders) == 1 else None)
    steps = finder.find() if finder else None
    return steps and in_time_of_gpu(steps, ran)


def in_time_of_gpu(steps: Steps, ran: Iterable[tuple[float, float, float]]) -> Steps | None:
    """Return steps in the GPU's time; None where no kernel tells it. ran: as in of_process()."""
    if steps.on_gpu:
        return steps
    bounds = _on_gpu(steps.bounds, ran)
    return Steps(steps.source, True, tuple(bounds), steps.closed) if bounds else None


def main_part(kernels: Iterable[TracedLaunch], begin_us: float, end_us: float) -> Interval:
    """Return the time between set-up and tear-down: long pauses with next to no kernel in front, or behind."""
    times = [(one.start_us, one.end_us) for one in kernels]
    long = _PAUSE * (end_us - begin_us)
    first = _after_pauses(sorted(times), long)
    last = -_after_pauses(sorted((-end, -start) for start, end in times), long)
    return (max(begin_us, first), min(end_us, last)) if first < last else (begin_us, end_us)


def _after_pauses(ordered: Sequence[Interval], long_us: float) -> float:
    """Return where the last of the pauses ends in front of which next to no kernel ran; -inf if they are short.

    Shorter pauses are how the program works, and no set-up."""
    left = _SETUP * sum(end - start for start, end in ordered)
    least = max(long_us / _PAUSES, _PAUSE_US)
    paused, begins, until = 0.0, -inf, -inf
    for (start, end), (following, _) in zip(ordered, ordered[1:]):
        left -= end - start
        if left < 0:
            break
        until = max(until, end)
        if following - until > least:
            paused += following - until
            begins = following
    return begins if paused > long_us else -inf


def _on_gpu(bounds: Sequence[float], ran: Iterable[tuple[float, float, float]]) -> list[float] | None:
    """Return the GPU's first start after each of the host's times, and the last end."""
    starts, last = [inf] * (len(bounds) - 1), -inf
    for called, start, end in ran:
        step = bisect_right(bounds, called) - 1
        if 0 <= step < len(starts):
            starts[step] = min(starts[step], start)
            last = max(last, end)
    begun = [start for start in starts if start < inf]
    return [*begun, last] if begun == sorted(begun) and begun else None


def _rank(name: str, ranges: Sequence[tuple[float, float]]) -> int | None:
    """How good these are as steps; smaller is better, None: none at all."""
    if name.startswith(_PROFILER):
        return 0
    apart = all(before[1] <= after[0] for before, after in zip(ranges, ranges[1:]))
    if len(ranges) < 2 or not apart or name.startswith(_INSIDE):
        return None
    covered = sum(end - start for start, end in ranges) / ((ranges[-1][1] - ranges[0][0]) or 1)
    if _WORD.search(name) and covered >= 0.5:
        return 1
    return 2 if len(ranges) > 2 and covered >= 0.9 else None
