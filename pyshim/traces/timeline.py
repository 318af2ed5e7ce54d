"""One step as bars in lanes, few enough for a picture."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import Any, NamedTuple

from pyshim.traces.columns import Columns, Kind, Shape
from pyshim.traces.names import plain_name
from pyshim.traces.overlap import overlapping

MOST = 2000  # bars of a step that are drawn one by one; of more, what is shorter than a pixel goes together
_PIXELS = 600


class Bar(NamedTuple):
    """Microseconds since the step began."""

    start_us: float
    end_us: float
    shape: int
    kernels: int = 1  # copies count as well


def draw(columns: Columns, begin: float, end: float) -> list[dict[str, Any]]:
    """Of each stream that something ran on: {"stream", "bars": [[start_us, end_us, kind, name], ...]}, bars in order.

    Of what is drawn together the name is how many they are.
    """
    few = len(list(islice(overlapping(columns, begin, end), MOST + 1))) <= MOST
    pixel = 0.0 if few else (end - begin) / _PIXELS
    lanes: defaultdict[int, list[Bar]] = defaultdict(list)
    open_at: dict[tuple[int, Kind], int] = {}  # the lane's last bar of its kind that is shorter than a pixel
    for ran in overlapping(columns, begin, end):
        bar = Bar(max(ran.start_us, begin) - begin, min(ran.end_us, end) - begin, ran.shape)
        lane, key = lanes[ran.stream], (ran.stream, columns.kind(ran))
        last = lane[open_at[key]] if key in open_at else None
        if last and bar.end_us - last.start_us < pixel:
            end_us = max(last.end_us, bar.end_us)
            lane[open_at[key]] = Bar(last.start_us, end_us, last.shape, last.kernels + 1)
            continue
        if bar.end_us - bar.start_us < pixel:
            open_at[key] = len(lane)
        lane.append(bar)
    return [
        {"stream": columns.streams[stream], "bars": [_written(bar, columns.shapes[bar.shape]) for bar in bars]}
        for stream, bars in sorted(lanes.items(), key=lambda lane: lane[1][0].start_us)
    ]


def _written(bar: Bar, shape: Shape) -> list[object]:
    copies = shape.kind is Kind.MEMORY
    if bar.kernels > 1:
        name = f"{bar.kernels} {'copies' if copies else 'kernels'}"
    else:
        name = "copy or memset" if copies else plain_name(shape.kernel)
    return [round(bar.start_us, 3), round(bar.end_us, 3), shape.kind.name.lower(), name]
