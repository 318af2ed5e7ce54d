"""One step as bars in lanes, few enough for a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyshim.traces.columns import Columns, Kind
from pyshim.traces.names import plain_name
from pyshim.traces.overlap import overlapping

MOST = 2000  # bars of a step


class Bar(NamedTuple):
    """Microseconds since the step began. name: of the kernel; of several merged ones how many they are."""

    start_us: float
    end_us: float
    kind: Kind
    name: str
    kernels: int = 1


def draw(columns: Columns, begin: float, end: float) -> list[dict[str, Any]]:
    """Of each stream that something ran on: {"stream", "bars": [[start_us, end_us, kind, name], ...]}, bars in order.

    Where there are too many, neighbours of one kind become one bar: the shortest with the shortest gaps first.
    """
    lanes: defaultdict[int, list[Bar]] = defaultdict(list)
    for ran in overlapping(columns, begin, end):
        shape = columns.shapes[ran.shape]
        name = "copy or memset" if shape.kind is Kind.MEMORY else plain_name(shape.kernel)
        lanes[ran.stream].append(Bar(max(ran.start_us, begin) - begin, min(ran.end_us, end) - begin, shape.kind, name))
        if sum(map(len, lanes.values())) > 4 * MOST:
            _thin(lanes, end - begin)
    _thin(lanes, end - begin)
    return [
        {"stream": columns.streams[stream], "bars": [_written(bar) for bar in bars]}
        for stream, bars in sorted(lanes.items(), key=lambda lane: lane[1][0].start_us)
    ]


def _thin(lanes: dict[int, list[Bar]], length: float) -> None:
    """To MOST bars, or as few as alternating kinds allow."""
    quantum = length / 1e5
    while sum(map(len, lanes.values())) > MOST and quantum < length:
        for stream, bars in lanes.items():
            lanes[stream] = _merged(bars, quantum)
        quantum *= 2


def _merged(bars: Sequence[Bar], quantum: float) -> list[Bar]:
    made: list[Bar] = []
    for bar in bars:
        last = made[-1] if made else None
        if last and last.kind == bar.kind and max(bar.end_us, last.end_us) - last.start_us < quantum:
            count = last.kernels + bar.kernels
            made[-1] = Bar(last.start_us, max(last.end_us, bar.end_us), bar.kind, f"{count} kernels", count)
        else:
            made.append(bar)
    return made


def _written(bar: Bar) -> list[object]:
    return [round(bar.start_us, 3), round(bar.end_us, 3), bar.kind.name.lower(), bar.name]
