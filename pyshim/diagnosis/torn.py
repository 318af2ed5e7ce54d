"""Tell which steps of a torn file are whole: those of which the end of the file leaves nothing out.

Profilers write records of several sorts: kernels, calls, waits; each sort is in about the order of the program. A sort
may come long before another one, and Kineto writes the waits of streams last. So where a file is torn, records of any
step can be missing. They are found by their numbers: each call that launches has work of its number, each piece of
work has a call, and waits are recorded up to the last call that waits.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from pyshim.diagnosis.queues import HOST_WAIT, STREAM_WAIT
from pyshim.profiles.record import NamedRange

# Calls that add to a graph launch nothing.
_LAUNCHES = re.compile(r"(cuda|cu|hip)(?!Graph(?!Launch))\w*(Launch(?!HostFunc)|Memcpy|Memset)\w*")
_NUMBERS = re.compile(r"\d+")


class Recorded(NamedTuple):
    """What a torn file holds of one process, by the numbers of calls."""

    works: Sequence[int]  # 0: none
    calls: Sequence[tuple[int, str]]  # with their names
    waits: Sequence[tuple[int, bool]]  # whether the host waits


def whole_steps(recorded: Recorded, numbered: Iterable[tuple[float, int]], bounds: Sequence[float]) -> tuple[int, int]:
    """Return the first of the whole steps and the one behind the last, which follow each other; equal: none is whole.

    numbered: of each call, or of each piece of work if the steps are those of the GPU, its start and its number.
    bounds: the start of each step, and the end of the last."""
    called = {number for number, _ in recorded.calls}
    launched = called.intersection(recorded.works)
    if not launched:
        return 0, 0
    missing = _first_missing(recorded, called)
    last = max(launched)
    greatest = [-inf] * (len(bounds) - 1)
    for start, number in numbered:
        step = bisect_right(bounds, start) - 1
        if 0 <= step < len(greatest) and number:
            greatest[step] = max(greatest[step], number)
    # Work from before the first call: the profiler began there, or the calls of another thread are missing.
    first = int(any(0 < number < min(called) for number in recorded.works))
    end = first
    while end < len(greatest) and 0 < greatest[end] < min(missing, last):
        end += 1
    return first, end


def _first_missing(recorded: Recorded, called: set[int]) -> float:
    """Return the first number of which a record is missing."""
    ran, begin = set(recorded.works), min(called)
    missing = [number for number in ran - called if number > begin]
    missing += [number for number, name in recorded.calls if number not in ran and _LAUNCHES.fullmatch(name)]
    if recorded.waits:
        for is_host, waits in ((False, STREAM_WAIT), (True, HOST_WAIT)):
            last = max((number for number, host in recorded.waits if host is is_host), default=0)
            missing += [number for number, name in recorded.calls if number > last and waits.fullmatch(name)]
    return min(missing, default=inf)


def of_host(ranges: Sequence[NamedRange]) -> list[NamedRange]:
    """Return the ranges without those on the GPU that the host has, too: they come last, and some may be missing."""
    on_host = {_NUMBERS.sub("#", one.name) for one in ranges if not one.on_gpu}
    return [one for one in ranges if not one.on_gpu or _NUMBERS.sub("#", one.name) not in on_host]
