"""How often each process launched communication, in the course of the run.

A process keeps (communication launches so far, host time) of every 2^n-th launch. Times of two hosts are not compared:
each process begins at its own first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median, quantiles
from typing import Any

from pyshim.html import draw
from pyshim.html.processes import name
from pyshim.report import many

_BINS = 120
_ENOUGH = 0.2  # of the usual number of samples
_ROWS = 10  # of the slowest of many
_FEWEST = 3  # samples that make a line


@dataclass(frozen=True)
class Course:
    name: str
    points: list[tuple[float, float]]  # (seconds since the first, microseconds between two launches)

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points]

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def ends(self) -> tuple[float, float]:
        """Return the lowest and the highest tenth."""
        low, *_, high = quantiles(self.values, n=10, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Cadence:
    every: list[Course]

    @property
    def are_few(self) -> bool:
        return len(self.every) <= many.FEW

    @property
    def shown(self) -> list[Course]:
        return self.every if self.are_few else sorted(self.every, key=lambda course: -course.middle)[:_ROWS]

    @cached_property
    def longest(self) -> float:
        return max(course.points[-1][0] for course in self.every)

    @cached_property
    def high(self) -> float:
        """Return the top of the scale: the slowest few would flatten all other lines."""
        values = sorted(value for course in self.every for value in course.values)
        return 1.05 * min(values[-1], 1.5 * values[int(len(values) * 0.99)])

    def path(self, line: draw.Line, height: int) -> str:
        return draw.path(line, (0.0, self.longest), (0.0, self.high), height)

    def band(self, height: int) -> tuple[str, str]:
        """Return the paths of the median of all processes, and around their middle nine tenths."""
        longest = self.longest or 1.0
        bins: list[list[float]] = [[] for _ in range(_BINS)]
        for course in self.every:
            for at, value in course.points:
                bins[min(_BINS - 1, int(_BINS * at / longest))].append(value)
        # Where but a few still run, their median is not that of all.
        enough = _ENOUGH * median(len(values) for values in bins if values)
        filled = [((at + 0.5) * longest / _BINS, sorted(one)) for at, one in enumerate(bins) if len(one) > enough]

        def edge(share: float) -> list[tuple[float, float]]:
            return [(at, values[min(len(values) - 1, int(share * len(values)))]) for at, values in filled]

        around = [*edge(0.05), *reversed(edge(0.95))]
        return self.path(edge(0.5), height), self.path(around, height)


def cadence(every: Sequence[Mapping[str, Any]]) -> Cadence | None:
    made = (Course(name(process), _points(process["cadence"])) for process in every)
    found = [course for course in made if len(course.points) >= _FEWEST - 1]
    return Cadence(found) if found else None


def _points(samples: Sequence[Sequence[int]]) -> list[tuple[float, float]]:
    return [
        ((end - samples[0][1]) / 1e9, (end - begin) / 1e3 / (later - count))
        for (count, begin), (later, end) in zip(samples, samples[1:])
        if later > count and end >= begin
    ]
