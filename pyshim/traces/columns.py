"""What ran on one GPU, 24 bytes each, and put in the order of time: traces are in none, and too long for objects."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    COMPUTATION = 0
    COMMUNICATION = 1
    MEMORY = 2


class Shape(NamedTuple):
    """What makes two launches comparable: the same kernel over the same grid."""

    kernel: str
    kind: Kind
    blocks: int | None


class Ran(NamedTuple):
    start_us: float
    end_us: float
    shape: int
    stream: int


_RUN = 1 << 16  # are sorted at a time


class Columns:
    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self.streams: list[str] = []
        self._numbers: dict[Shape | str, int] = {}
        self._start, self._end = array("d"), array("d")
        self._shape, self._stream = array("i"), array("i")
        self._sorted = 0  # as many were there when they were sorted

    def __len__(self) -> int:
        return len(self._start)

    def add(self, shape: Shape, stream: str, start_us: float, end_us: float) -> None:
        self._shape.append(self._number(shape, self.shapes))
        self._stream.append(self._number(stream, self.streams))
        self._start.append(start_us)
        self._end.append(end_us)

    def _number(self, value: Shape | str, known: list[Shape] | list[str]) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(known)
            known.append(value)  # type: ignore[arg-type] # shapes are never equal to streams
        return number

    def kind(self, ran: Ran) -> Kind:
        return self.shapes[ran.shape].kind

    def span(self) -> tuple[float, float]:
        """Return the first start and the last end; the columns must not be empty."""
        return min(self._start), max(self._end)

    def in_order(self) -> Iterator[Ran]:
        """Yield what ran, by start, in the memory of two runs' objects, whatever the trace's size."""
        self._sort_runs()
        runs = [self._run(begin) for begin in range(0, len(self), _RUN)]
        return iter(heapq.merge(*runs))

    def _run(self, begin: int) -> Iterator[Ran]:
        for index in range(begin, min(begin + _RUN, len(self))):
            yield Ran(self._start[index], self._end[index], self._shape[index], self._stream[index])

    def _sort_runs(self) -> None:
        if self._sorted == len(self):
            return
        self._sorted = len(self)
        for begin in range(0, len(self), _RUN):
            run = list(self._run(begin))
            ordered = sorted(run)
            if ordered != run:
                part = slice(begin, begin + len(run))
                self._start[part] = array("d", (ran.start_us for ran in ordered))
                self._end[part] = array("d", (ran.end_us for ran in ordered))
                self._shape[part] = array("i", (ran.shape for ran in ordered))
                self._stream[part] = array("i", (ran.stream for ran in ordered))
