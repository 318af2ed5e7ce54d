"""How often each process launched communication, in the course of the run.

A process keeps (communication launches so far, host time) of every 2^n-th launch. Times of two hosts are not compared:
each process begins at its own first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, quantiles
from typing import Any, NamedTuple

from pyshim.html import draw
from pyshim.html.processes import name
from pyshim.html.table import PICTURE, WORDS, Cell, table
from pyshim.html.tree import Child, element
from pyshim.html.units import time
from pyshim.report import many

_BINS = 120
_ENOUGH = 0.2  # of the usual number of samples
_ROWS = 10  # of the slowest of many
_FEWEST = 3  # samples that make a line


class Course(NamedTuple):
    process: Mapping[str, Any]
    points: list[tuple[float, float]]  # (seconds since the first, microseconds between two launches)

    @property
    def middle(self) -> float:
        return median(value for _, value in self.points)


def courses(every: Sequence[Mapping[str, Any]]) -> list[Course]:
    return [Course(process, points) for process in every if len(points := _points(process["cadence"])) >= _FEWEST - 1]


def _points(samples: Sequence[Sequence[int]]) -> list[tuple[float, float]]:
    return [
        ((end - samples[0][1]) / 1e9, (end - begin) / 1e3 / (later - count))
        for (count, begin), (later, end) in zip(samples, samples[1:])
        if later > count and end >= begin
    ]


def cadence(every: Sequence[Mapping[str, Any]]) -> Child:
    found = courses(every)
    if not found:
        return None
    longest = max(course.points[-1][0] for course in found)
    # The slowest few would press everything else to the ground.
    values = sorted(value for course in found for _, value in course.points)
    usual = values[int(len(values) * 0.99)]
    high = 1.05 * min(values[-1], 1.5 * usual)
    scales = (0.0, longest), (0.0, high)
    about = (
        "Time between two launches of communication, by the clock of the host, at the launch and not on the GPU. Each "
        f"process begins at its own first launch. Height: 0 to {time(high)}; what is higher is cut."
    )
    few = len(found) <= many.FEW
    shown = found if few else sorted(found, key=lambda course: -course.middle)[:_ROWS]
    return [
        element("h2", "Cadence of communication"),
        element("p", about, class_="quiet"),
        None if few else _band(found, scales),
        None if few else element("h3", f"The slowest {_ROWS} of {len(found):,}"),
        table(
            ("process", f"0 to {longest:.3g} s", "median", "10 %", "90 %", "samples"),
            [_row(course, scales) for course in shown],
            {"process": WORDS, f"0 to {longest:.3g} s": PICTURE},
        ),
    ]


def _row(course: Course, scales: tuple[tuple[float, float], tuple[float, float]]) -> Sequence[Any]:
    values = [value for _, value in course.points]
    low, *_, high = quantiles(values, n=10, method="inclusive") if len(values) > 1 else (values[0], values[0])
    label = f"{name(course.process)}: median {time(course.middle)}"
    drawn = draw.lines([(course.points, "")], *scales, 44, label)
    numbers = (Cell(time(value), value) for value in (course.middle, low, high))
    return element("code", name(course.process)), Cell(drawn, course.middle), *numbers, len(values)


def _band(found: Sequence[Course], scales: tuple[tuple[float, float], tuple[float, float]]) -> Child:
    """Where the middle nine tenths of all processes are, and their median."""
    longest = scales[0][1] or 1.0
    bins: list[list[float]] = [[] for _ in range(_BINS)]
    for course in found:
        for at, value in course.points:
            bins[min(_BINS - 1, int(_BINS * at / longest))].append(value)
    # Where but a few still run, the middle of these says nothing of all.
    enough = _ENOUGH * median(len(values) for values in bins if values)
    filled = [((at + 0.5) * longest / _BINS, sorted(values)) for at, values in enumerate(bins) if len(values) > enough]

    def edge(share: float) -> list[tuple[float, float]]:
        return [(at, values[min(len(values) - 1, int(share * len(values)))]) for at, values in filled]

    label = f"all {len(found):,} processes over {longest:.3g} s"
    drawn = draw.lines([(edge(0.5), "")], *scales, 120, label, (edge(0.05), edge(0.95)))
    ends = element("p", element("span", "0 s"), element("span", f"{longest:.3g} s"), class_="scale")
    words = element(
        "p", f"Of all {len(found):,} processes the median, and from one twentieth to nineteen.", class_="quiet"
    )
    return [drawn, ends, words]
