"""Records of a trace in little memory: a trace may have millions.

What differs from record to record is in arrays: when it began and ended, and the number of its call. All else it shares
with many others (its kernel, stream, grid), and is kept once, as a form: a record of times 0.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyshim.profiles.record import Activity, Call, MemoryOperation, NamedRange, Trace, TracedLaunch, Wait, Work

WORKS, CALLS, WAITS, RANGES = range(4)
_NO_EVENT = -1


class Column:
    """Records of one sort, in the order of the file."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.start = array("d")
        self.end = array("d")
        self.correlation = array("q")  # 0: none
        self.form = array("L")
        self.forms: list[Any] = []
        self._number: dict[Any, int] = {}
        self._make = make

    def __len__(self) -> int:
        return len(self.form)

    def number_of(self, form: Any) -> int:
        """Return the number of a form, which it gets when it is seen first."""
        number = self._number.get(form)
        if number is None:
            number = self._number[form] = len(self.forms)
            self.forms.append(form)
        return number

    def add(self, form: int, start_us: float, end_us: float, correlation: int) -> None:
        self.form.append(form)
        self.start.append(start_us)
        self.end.append(end_us)
        self.correlation.append(correlation)

    def process(self, index: int) -> int | None:
        process: int | None = self.forms[self.form[index]].process
        return process

    def record(self, index: int) -> Any:
        return self._make(
            self.forms[self.form[index]], self.start[index], self.end[index], self.correlation[index] or None
        )


class Store:
    """All records of one trace."""

    def __init__(self) -> None:
        self.works = Column(_work)
        self.calls = Column(_call)
        self.waits = Column(_wait)
        self.ranges = Column(_range)
        self.events = array("q")  # of each wait, the call that recorded its event; the stream is in its form
        self.order = bytearray()

    def __len__(self) -> int:
        return len(self.order)

    def add(self, one: Activity) -> None:
        """Add a record; a reader of many takes add_work and add_call."""
        # The order of fields is record.py's. _replace takes four times as long.
        if isinstance(one, TracedLaunch):
            number = self.works.number_of(TracedLaunch(*one[:4], 0.0, 0.0, *one[6:13], None, *one[14:]))
            self.add_work(number, one.start_us, one.end_us, one.correlation or 0)
        elif isinstance(one, Call):
            self.add_call(
                self.calls.number_of(Call(one.name, 0.0, 0.0, 0, one.process)),
                one.start_us,
                one.end_us,
                one.correlation,
            )
        elif isinstance(one, MemoryOperation):
            number = self.works.number_of(MemoryOperation(*one[:2], 0.0, 0.0, one.process, None, one.memory))
            self.add_work(number, one.start_us, one.end_us, one.correlation or 0)
        elif isinstance(one, Wait):
            event = one.event and (one.event[0], 0)
            number = self.waits.number_of(Wait(*one[:3], 0.0, 0.0, 0, event, one.process))
            self.waits.add(number, one.start_us, one.end_us, one.correlation)
            self.events.append(one.event[1] if one.event else _NO_EVENT)
            self.order.append(WAITS)
        else:
            number = self.ranges.number_of(NamedRange(one.name, 0.0, 0.0, one.on_gpu, one.process))
            self.ranges.add(number, one.start_us, one.end_us, 0)
            self.order.append(RANGES)

    def add_work(self, form: int, start_us: float, end_us: float, correlation: int) -> None:
        self.works.add(form, start_us, end_us, correlation)
        self.order.append(WORKS)

    def add_call(self, form: int, start_us: float, end_us: float, correlation: int) -> None:
        self.calls.add(form, start_us, end_us, correlation)
        self.order.append(CALLS)

    def wait(self, index: int) -> Wait:
        made: Wait = self.waits.record(index)
        return made if made.event is None else made._replace(event=(made.event[0], self.events[index]))

    def records(self) -> Iterator[Activity]:
        """Yield all, in the order in which they were added."""
        at = [0, 0, 0, 0]
        get = (self.works.record, self.calls.record, self.wait, self.ranges.record)
        for kind in self.order:
            yield get[kind](at[kind])
            at[kind] += 1


class StoredTrace(Trace):
    """A trace that is read into a store."""

    @abstractmethod
    def read(self, store: Store) -> None:
        """Read the file from its beginning into `store`. Raises OverlapError for another kind."""

    def activity(self) -> Iterator[Activity]:
        store = Store()
        self.read(store)
        yield from store.records()


def taken(column: Column, indices: Iterable[int]) -> list[Any]:
    """Return the records of these numbers."""
    return [column.record(index) for index in indices]


def _work(form: Work, start_us: float, end_us: float, correlation: int | None) -> Work:
    if isinstance(form, TracedLaunch):
        return TracedLaunch._make((*form[:4], start_us, end_us, *form[6:13], correlation, *form[14:]))
    return MemoryOperation._make((*form[:2], start_us, end_us, form[4], correlation, form[6]))


def _call(form: Call, start_us: float, end_us: float, correlation: int | None) -> Call:
    return Call(form[0], start_us, end_us, correlation or 0, form[4])


def _wait(form: Wait, start_us: float, end_us: float, correlation: int | None) -> Wait:
    return Wait(*form[:3], start_us, end_us, correlation or 0, form[6], form[7])


def _range(form: NamedRange, start_us: float, end_us: float, _correlation: int | None) -> NamedRange:
    return NamedRange(form[0], start_us, end_us, form[3], form[4])
