"""One step before and after: a lane for each stream, on one scale, and below them when communication ran alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyshim.html.draw import Box
from pyshim.html.units import time

Span = tuple[float, float]
_TICKS = 4
_NAMED = 0.05  # of the width, at least, for a bar that has its name in it
_HEIGHT, _LOW = 22, 9  # of a lane, and of copies in it
_THINNEST, _EDGED = 0.04, 0.4  # percent: the least of a bar; those wider have an edge, to be told from neighbours
_LABEL = 8  # characters of a stream's name


@dataclass(frozen=True)
class Bar:
    box: Box
    y: float
    height: float
    kind: str
    name: str = ""  # in the bar


@dataclass(frozen=True)
class Lane:
    name: str
    label: str
    bars: list[Bar]


@dataclass(frozen=True)
class Timeline:
    title: str
    lanes: list[Lane]
    ticks: list[str]


def timelines(pictures: Mapping[str, Any], stepwise: bool) -> list[Timeline]:
    """pictures: as Compared.timeline() of pyshim.traces has them; each may be None. stepwise: each shows a step."""
    shown = {side: picture for side, picture in pictures.items() if picture and picture["lanes"]}
    length = max((picture["length_us"] for picture in shown.values()), default=0.0) or 1.0
    return [_timeline(side, picture, length, stepwise) for side, picture in shown.items()]


def _timeline(side: str, picture: Mapping[str, Any], length: float, stepwise: bool) -> Timeline:
    step = f", step {picture['step']}" if stepwise else ""
    alone = list(exposed(picture["lanes"]))
    words = f"{time(sum(end - start for start, end in alone))} exposed"
    bars = [Bar(_box(start, end, length, "exposed", time(end - start)), 3, 16, "exposed") for start, end in alone]
    lanes = [_lane(lane["stream"], lane["bars"], length) for lane in picture["lanes"]]
    ticks = ["0", *(time(length * tick / _TICKS) for tick in range(1, _TICKS + 1))]
    title = f"{side}: {picture['name']}{step}, {time(picture['length_us'])}"
    return Timeline(title, [*lanes, Lane("exposed", words, bars)], ticks)


def exposed(lanes: Iterable[Mapping[str, Any]]) -> Iterator[Span]:
    """When communication runs and no computation does, by start; microseconds."""
    bars = [bar for lane in lanes for bar in lane["bars"]]
    computation = merged((start, end) for start, end, kind, _ in bars if kind == "computation")
    at = 0
    for start, end in merged((start, end) for start, end, kind, _ in bars if kind == "communication"):
        while at < len(computation) and computation[at][1] <= start:
            at += 1
        beside = at
        while beside < len(computation) and computation[beside][0] < end:
            if computation[beside][0] > start:
                yield start, computation[beside][0]
            start = max(start, computation[beside][1])
            beside += 1
        if start < end:
            yield start, end


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, and none that touch."""
    made: list[Span] = []
    for start, end in sorted(spans):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], end)
        else:
            made.append((start, end))
    return made


def _lane(stream: str, bars: Sequence[Sequence[Any]], length: float) -> Lane:
    made = []
    for start, end, kind, name in bars:
        box = _box(start, end, length, kind, f"{name}, {time(end - start)}")
        top, high = (_HEIGHT - _LOW, _LOW) if kind == "memory" else (0, _HEIGHT)
        inside = name if (end - start) / length > _NAMED and kind != "memory" else ""
        made.append(Bar(box, top, high, kind, inside))
    short = stream if len(stream) <= _LABEL else f"..{stream[2 - _LABEL :]}"
    return Lane(f"stream {short}", f"stream {stream}: {len(bars):,} bars", made)


def _box(start: float, end: float, length: float, kind: str, title: str) -> Box:
    width = max(100 * (end - start) / length, _THINNEST)
    edged = " edged" if width > _EDGED and kind != "exposed" else ""
    return Box(100 * start / length, width, kind + edged, title)
