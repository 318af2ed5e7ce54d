"""What is looked at of a trace: all of it, the steps that are asked for, or as many of the first as are not too many.

Steps are found in the ranges alone. What belongs to some of them is told by the numbers of calls, which grow in the
order of the program: the host may run far ahead of the GPU. What is impossible is left out (left_out.py). Of a torn
file, only whole steps are looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from pyshim.diagnosis.left_out import clocks_differ, possible, what_matters
from pyshim.diagnosis.steps import Finder, Steps
from pyshim.diagnosis.torn import Recorded, of_host, whole_steps
from pyshim.errors import USAGE, OverlapError
from pyshim.profiles import open_trace
from pyshim.profiles.record import CALL, WAIT, Call, NamedRange, Trace, TracedLaunch, Wait, Work
from pyshim.profiles.store import Column, Store, taken

MOST = 130_000  # records that are looked at: about half a kilobyte and 30 microseconds each
_RANGE = re.compile(r"\s*(\d{1,15})\s*(?:-\s*(\d{1,15})\s*)?")
_NUMBERS = re.compile(r"\d+")
_COPY_AGAIN = "copy it again; if the original is torn, too, record it again"


@dataclass
class Records:
    """Those of one process."""

    works: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    ranges: list[NamedRange] = field(default_factory=list)
    clocks_differ: bool = False  # of host and GPU: it has no calls then
    unread: str = ""  # a clause about what could not be read, where that could change the answer
    steps: Steps | None = None  # those that were chosen; None: all of it is looked at


class Loaded(NamedTuple):
    """A trace, and by process what is looked at of it."""

    trace: Trace
    processes: dict[int | None, Records]


class _Step(NamedTuple):
    number: int
    start_us: float
    end_us: float  # where the next one begins, or this one ends


def load(path: str, steps: str | None = None) -> Loaded:
    """Read a trace. steps: "3-5" or "4". Raises OverlapError."""
    asked = _asked(steps)
    trace, store = open_trace(path), Store()
    trace.read(store)
    if len({form.process for form in store.calls.forms}) > 1:
        from pyshim.profiles.ranks import take_apart

        take_apart(trace, store)
    loaded = Loaded(trace, {})
    processes = list(dict.fromkeys(form.process for form in store.works.forms)) or [None]
    for process in processes:
        part = _Part(store, process, alone=len(processes) == 1)
        records = part.records(trace, asked, MOST // len(processes))
        if records:
            loaded.processes[process] = records
    if not loaded.processes:
        raise OverlapError(f"{path}: {trace.ending}, and no whole step is in what is there", _COPY_AGAIN, USAGE)
    if not any(isinstance(form, TracedLaunch) for form in store.works.forms):
        trace.warnings += trace.missing
    for records in loaded.processes.values():
        _drop_impossible(trace, store, records)
    works = [work for records in loaded.processes.values() for work in records.works]
    if works:
        trace.extent_us = min(work.start_us for work in works), max(work.end_us for work in works)
    if len(loaded.processes) > 1:
        trace.pid = None
    return loaded


def _asked(steps: str | None) -> tuple[int, int] | None:
    if steps is None:
        return None
    found = _RANGE.fullmatch(steps)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise OverlapError(f"--steps {steps} is no range of steps", "--steps 3-5, or --steps 4", USAGE)
    return first, last


class _Part:
    """One process of a trace."""

    def __init__(self, store: Store, process: int | None, alone: bool) -> None:
        self._store = store
        self._process = process
        self._alone = alone  # all is of this process, whatever it says
        found = taken(store.ranges, self._indices(store.ranges))
        # The only process that has ranges has them for all.
        one_has_all = len({form.process for form in store.ranges.forms}) == 1
        self._ranges = taken(store.ranges, range(len(store.ranges))) if one_has_all else found
        self._works = self._indices(store.works)
        self._calls = self._indices(store.calls)
        self._waits = self._indices(store.waits)

    def _indices(self, column: Column) -> Sequence[int]:
        if self._alone:
            return range(len(column))
        own = [form.process == self._process for form in column.forms]
        return [index for index, form in enumerate(column.form) if own[form]]

    def __len__(self) -> int:
        return len(self._works) + len(self._calls) + len(self._waits)

    def records(self, trace: Trace, asked: tuple[int, int] | None, most: int) -> Records | None:
        """Return the records of the steps that are asked for; else all, or the first if they are more than `most`.

        Of a torn file, those of whole steps; None: there are none."""
        if trace.torn:
            return self._of_torn(trace, asked, most)
        if asked is None and len(self) <= most:
            return self._whole(self._works, self._calls, range(len(self._waits)), self._ranges)
        steps = self._steps()
        if asked:
            return self._of_asked(trace, steps, asked)
        many = f"{trace.path} holds {len(self):,} records"
        first = self._first(steps, most) if steps else []
        if steps and first:
            trace.warnings.append(
                f"{many}: this is about {_named(first)} of {len(steps)} alone; --steps chooses others"
            )
            return self._of_steps(steps, first)
        number = sorted(self._store.works.correlation[index] for index in self._works)[: max(1, most // 3)][-1]
        records = self._up_to(number)
        until = max((work.end_us for work in records.works), default=0.0)
        begun = min((work.start_us for work in records.works), default=0.0)
        trace.warnings.append(f"{many}: this is about the first {(until - begun) / 1000:,.0f} ms alone")
        return records

    def _of_asked(self, trace: Trace, steps: Sequence[_Step], asked: tuple[int, int]) -> Records:
        """Return the records of the steps that are asked for. The last one of the trace ends at a time not known."""
        chosen = self._chosen(trace, steps, asked)
        if chosen[-1] is steps[-1]:
            last = f"{trace.path}: step {steps[-1].number} is the last one"
            last += ", and when the next would have begun is not known"
            alone = len(chosen) == 1
            trace.warnings.append(f"{last}: {'it ends here with its last work' if alone else 'it is left out'}")
            chosen = chosen if alone else chosen[:-1]
        return self._of_steps(steps, chosen)

    def _of_torn(self, trace: Trace, asked: tuple[int, int] | None, most: int) -> Records | None:
        self._ranges = of_host(self._ranges)
        steps = self._steps()
        if not steps:
            return None
        calls, works, waits = self._store.calls, self._store.works, self._store.waits
        recorded = Recorded(
            [works.correlation[index] for index in self._works],
            [(calls.correlation[index], calls.forms[calls.form[index]].name) for index in self._calls],
            [(waits.correlation[index], waits.forms[waits.form[index]].host) for index in self._waits],
        )
        column, indices = (works, self._works) if self._found.on_gpu else (calls, self._calls)
        numbered = ((column.start[index], column.correlation[index]) for index in indices)
        first, end = whole_steps(recorded, numbered, self._found.bounds)
        whole = steps[first:end]
        ended = whole[:-1]  # where a step ends, the next begins, of which nothing may be missing
        if not ended:
            return None
        chosen = self._chosen(trace, ended, asked) if asked else self._first(ended, most) or ended[:1]
        trace.warnings.append(
            f"{trace.path}: {trace.ending}: this is about {_named(chosen)} of {len(steps)} alone, which the end leaves "
            "whole; copy it again"
        )
        return self._of_steps(whole, chosen)

    def _whole(
        self, works: Iterable[int], calls: Iterable[int], waits: Iterable[int], ranges: list[NamedRange]
    ) -> Records:
        store = self._store
        found = [store.wait(self._waits[index]) for index in waits]
        return Records(taken(store.works, works), taken(store.calls, calls), found, ranges)

    def _steps(self) -> list[_Step]:
        finder = Finder()
        for one in self._ranges:
            finder.add(one)
        steps = finder.find()
        if steps is None:
            return []
        self._found: Steps = steps
        names: dict[str, float] = {}
        unnamed: list[float] = []
        for one in filter(self._is_step, self._ranges):
            if _NUMBERS.search(one.name):
                names[one.name] = min(names.get(one.name, inf), one.start_us)
            else:
                unnamed.append(one.start_us)
        ordered = sorted(names, key=lambda name: names[name])
        numbers = [int(_NUMBERS.findall(name)[-1][-15:]) for name in ordered]
        if len(numbers) != len(steps.bounds) - 1 or sorted(set(numbers)) != numbers:
            numbers = list(range(1, len(steps.bounds)))
        return [_Step(*one) for one in zip(numbers, steps.bounds, steps.bounds[1:])]

    def _is_step(self, one: NamedRange) -> bool:
        name = _NUMBERS.sub("#", one.name).replace("##", "#")
        return name == self._found.source and one.on_gpu == self._found.on_gpu

    def _chosen(self, trace: Trace, steps: Sequence[_Step], asked: tuple[int, int]) -> Sequence[_Step]:
        if not steps:
            raise OverlapError(
                f"{trace.path} has no steps to choose from: no range in it comes again and again",
                "name them: torch.profiler's schedule and step(), or nvtx.range_push(f'step {number}')",
                USAGE,
            )
        found = [step for step in steps if asked[0] <= step.number <= asked[1]]
        first, last = steps[0].number, steps[-1].number
        if not found:
            which = f"its ranges {self._found.source} are {_named(steps)}"
            if trace.torn:
                which = f"{trace.ending}, and its whole {'step is' if first == last else 'steps are'} {_named(steps)}"
            raise OverlapError(f"{trace.path} has no such steps: {which}", f"--steps {first}-{last}", USAGE)
        if asked[0] < first or asked[1] > last:
            trace.warnings.append(f"--steps {asked[0]}-{asked[1]} goes beyond {trace.path}, which has {_named(steps)}")
        return found

    def _first(self, steps: Sequence[_Step], most: int) -> Sequence[_Step]:
        """Return as many of the first steps as have no more records than `most`."""
        column, indices = (self._store.works, self._works) if self._found.on_gpu else (self._store.calls, self._calls)
        starts = sorted(column.start[index] for index in indices)
        each = len(self) / (len(starts) or 1)
        before = bisect_left(starts, steps[0].start_us)
        count = 0
        for step in steps:
            if (bisect_left(starts, step.end_us) - before) * each > most:
                break
            count += 1
        return steps[:count]

    def _of_steps(self, steps: Sequence[_Step], chosen: Sequence[_Step]) -> Records:
        """Return the records of steps one after the other, and a mark of where the next one begins."""
        store, begin, end = self._store, chosen[0].start_us, chosen[-1].end_us
        least, greatest = self._numbers(begin, end)
        numbers, starts = store.works.correlation, store.works.start
        following = [step for step in steps if step.start_us >= end][:1]
        mark = 0  # the number of what begins the next step
        if following:
            first, last = self._numbers(following[0].start_us, following[0].end_us)
            of_next = [index for index in self._works if first <= numbers[index] <= last]
            of_next = [index for index in of_next if self._is_kernel(index)] or of_next
            mark = numbers[min(of_next, key=lambda index: starts[index])] if of_next else 0
        kept = {step.start_us for step in chosen}
        # A numbered range may be on several streams, and begin later there; those of one name are told by their times.
        of_steps = {one.name for one in self._ranges if one.start_us in kept and _NUMBERS.search(one.name)}
        ranges = [
            one
            for one in self._ranges
            if begin <= one.start_us < end or (self._is_step(one) and (one.name in of_steps or one.start_us in kept))
        ]
        works = [
            index
            for index in self._works
            if least <= numbers[index] <= greatest
            or (numbers[index] == mark if numbers[index] else begin <= starts[index] < end)
        ]
        until = max(greatest, mark)  # the host may wait behind its last launch
        numbers = store.calls.correlation
        calls = [index for index in self._calls if least <= numbers[index] <= until]
        numbers = store.waits.correlation
        waits = [place for place, index in enumerate(self._waits) if least <= numbers[index] <= until]
        records = self._whole(works, calls, waits, ranges)
        closed = bool(mark or (following and self._found.on_gpu))
        ends = [step.end_us for step in (following if closed else chosen)[-1:]]
        bounds = (*(step.start_us for step in (*chosen, *(following if closed else ()))), *ends)
        records.steps = Steps(self._found.source, self._found.on_gpu, bounds, closed)
        return records

    def _is_kernel(self, index: int) -> bool:
        return isinstance(self._store.works.forms[self._store.works.form[index]], TracedLaunch)

    def _numbers(self, begin: float, end: float) -> tuple[int, int]:
        """Return the least and the greatest number of what the host called, or the GPU did, in this time."""
        store = self._store
        column, indices = (store.works, self._works) if self._found.on_gpu else (store.calls, self._calls)
        starts, numbers = column.start, column.correlation
        inside = [numbers[index] for index in indices if begin <= starts[index] < end and numbers[index]]
        return (min(inside), max(inside)) if inside else (1, 0)

    def _up_to(self, number: int) -> Records:
        store = self._store
        works = [index for index in self._works if store.works.correlation[index] <= number]
        if len(works) > MOST:  # no numbers in it
            works = sorted(works, key=lambda index: store.works.start[index])[:MOST]
        calls = [index for index in self._calls if store.calls.correlation[index] <= number]
        waits = [place for place, index in enumerate(self._waits) if store.waits.correlation[index] <= number]
        return self._whole(works, calls, waits, self._ranges)


def _named(steps: Sequence[_Step]) -> str:
    first, last = steps[0].number, steps[-1].number
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _drop_impossible(trace: Trace, store: Store, records: Records) -> None:
    """Leave out what cannot have run as the trace says. Where the clocks differ, the calls go."""
    part = len(records.works) / (len(store.works) or 1)
    steps = len(records.steps.bounds) - 1 if records.steps and part < 1 else 0
    gone: Counter[tuple[str, str]] = Counter()
    if clocks_differ(trace, records.works, records.calls):
        records.calls, records.clocks_differ = [], True
    else:
        records.works, gone = possible(trace, records.works, records.calls)
    have = {CALL: len(store.calls), WAIT: len(store.waits)}
    records.unread = what_matters(trace, records.works, gone, part, steps, have)
