"""Shapes for templates/draw.html. Places along the width are in percent, so that only lines stretch, not text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BINS = 160  # places of a strip; dots in one place are one
_THINNEST = 0.4  # percent: the least width of a part of a bar
_SPAN = 1000  # units across a picture of lines

Line = Sequence[tuple[float, float]]  # (x, y), by x
Scale = tuple[float, float]  # the values at its two ends


@dataclass(frozen=True)
class Box:
    x: float
    width: float
    kind: str  # a class of page.css: its colour
    title: str


@dataclass(frozen=True)
class Dot:
    x: float
    title: str
    far: bool = False
    height: float = 0


@dataclass(frozen=True)
class Forest:
    """An interval and its middle on a scale with zero in the middle; a middle beyond the scale is a ring at its end."""

    value: float  # of the middle
    low: float
    middle: float
    width: float
    kind: str
    label: str


def bar(parts: Iterable[tuple[float, str, str]], whole: float) -> list[Box]:
    """Return (value, kind, title) side by side. whole: the value that the full width stands for."""
    made, at = [], 0.0
    for value, kind, title in parts:
        if value > 0:
            width = max(100 * value / whole, _THINNEST)
            made.append(Box(at, width, kind, title))
            at += width
    return made


def strip(dots: Sequence[tuple[float, str, bool]]) -> list[Dot]:
    """Place (value, title, far) between the least and the most.

    Near values in one place make one dot, the taller the more they are; far values each have a dot above the others."""
    low, high = min(value for value, _, _ in dots), max(value for value, _, _ in dots)
    places: dict[float, list[str]] = {}
    far = []
    for value, title, is_far in dots:
        share = (value - low) / (high - low) if high > low else 0.5
        place = 2 + 95 * round(share * _BINS) / _BINS  # away from the edges
        if is_far:
            far.append(Dot(place, title, True))
        else:
            places.setdefault(place, []).append(title)
    most = max(map(len, places.values()), default=1)
    made = []
    for place, titles in sorted(places.items()):
        title = titles[0] if len(titles) == 1 else f"{len(titles):,} processes, {titles[0]} among them"
        made.append(Dot(place, title, height=6 + 14 * (len(titles) - 1) / max(most - 1, 1)))
    return made + far


def path(line: Line, x: Scale, y: Scale, height: int) -> str:
    def at(point: tuple[float, float]) -> str:
        across = _SPAN * (point[0] - x[0]) / max(x[1] - x[0], 1e-12)
        up = height * (1 - (point[1] - y[0]) / max(y[1] - y[0], 1e-12))
        return f"{across:.1f} {min(max(up, 0), height):.1f}"

    return "L".join(map(at, line))


def forest(low: float, middle: float, high: float, reach: float, sure: bool, label: str) -> Forest:
    """Place an interval and its middle on a scale from -reach to +reach."""

    def at(value: float) -> float:
        return 50 + 47 * min(max(value / reach, -1.0), 1.0)

    kind = f"interval{' sure' if sure else ''}{' beyond' if abs(middle) > reach else ''}"
    return Forest(middle, at(low), at(middle), max(at(high) - at(low), 0.3), kind, label)
