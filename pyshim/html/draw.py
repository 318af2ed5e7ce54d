"""Pictures that fit every width: what lies along the width is in percent, so that only lines stretch and text does not.

Each picture has a label for those who cannot see it; what one part of it stands for is its <title>.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyshim.html.tree import Child, Element, element

_BINS = 160  # places of a strip; dots in one place are one
_THINNEST = 0.4  # percent: what is there is seen
_SPAN = 1000  # units across a picture of lines


class Part(NamedTuple):
    value: float
    kind: str  # a class of page.css: its colour
    title: str


class Dot(NamedTuple):
    value: float
    title: str
    far: bool = False


Line = Sequence[tuple[float, float]]  # (x, y), by x


def bar(parts: Iterable[Part], whole: float, label: str) -> Element:
    """Parts side by side; whole: what the full width stands for."""
    drawn, at = [], 0.0
    for part in parts:
        if part.value > 0:
            width = max(100 * part.value / whole, _THINNEST)
            drawn.append(box(at, 0, width, 14, part.kind, part.title))
            at += width
    return picture(14, label, drawn, "bar")


def strip(dots: Sequence[Dot], label: str) -> Element:
    """A dot for each process between the least and the most; where many have one place the dot is taller."""
    low, high = min(dot.value for dot in dots), max(dot.value for dot in dots)
    places = Counter(_place(dot.value, low, high) for dot in dots if not dot.far)
    titles: dict[float, str] = {}
    for dot in dots:
        titles.setdefault(_place(dot.value, low, high), dot.title)
    most = max(places.values(), default=1)
    drawn: list[Child] = [element("line", x1="0", x2="100%", y1="12", y2="12", class_="axis")]
    for place, count in sorted(places.items()):
        height = 6 + 14 * (count - 1) / max(most - 1, 1)
        title = titles[place] if count == 1 else f"{count:,} processes, {titles[place]} among them"
        drawn.append(
            element(
                "rect",
                element("title", title),
                x=f"{place:.2f}%",
                y=12 - height / 2,
                width="4",
                height=height,
                class_="dot",
            )
        )
    drawn += [
        element(
            "circle",
            element("title", dot.title),
            cx=f"{_place(dot.value, low, high):.2f}%",
            cy="12",
            r="4.5",
            class_="far",
        )
        for dot in dots
        if dot.far
    ]
    return picture(24, label, drawn, "strip")


def _place(value: float, low: float, high: float) -> float:
    """In percent, away from the edges, rounded to the places that there are."""
    share = (value - low) / (high - low) if high > low else 0.5
    return 2 + 95 * round(share * _BINS) / _BINS


def lines(
    every: Sequence[tuple[Line, str]],
    x: tuple[float, float],
    y: tuple[float, float],
    height: int,
    label: str,
    band: tuple[Line, Line] | None = None,
) -> Element:
    """Each (line, kind); x and y: the ends of the scales. band: its lower and its upper edge."""

    def at(point: tuple[float, float]) -> str:
        across = _SPAN * (point[0] - x[0]) / max(x[1] - x[0], 1e-12)
        up = height * (1 - (point[1] - y[0]) / max(y[1] - y[0], 1e-12))
        return f"{across:.1f} {min(max(up, 0), height):.1f}"

    drawn = []
    if band:
        edge = [*band[0], *reversed(band[1])]
        drawn.append(element("path", d="M" + "L".join(map(at, edge)) + "Z", class_="band"))
    drawn += [element("path", d="M" + "L".join(map(at, line)), class_=f"line {kind}") for line, kind in every if line]
    stretched = element(
        "svg", *drawn, width="100%", height=height, viewBox=f"0 0 {_SPAN} {height}", preserveAspectRatio="none"
    )
    grid = [
        element("line", x1="0", x2="100%", y1=place, y2=place, class_="grid") for place in (height / 2, height - 0.5)
    ]
    return picture(height, label, [grid, stretched], "lines")


def forest(low: float, middle: float, high: float, reach: float, sure: bool, label: str) -> Element:
    """An interval and its middle on a scale from -reach to +reach, with zero in the middle; what lies beyond is a ring
    at its end."""

    def at(value: float) -> float:
        return 50 + 47 * min(max(value / reach, -1.0), 1.0)

    kind = f"interval{' sure' if sure else ''}{' beyond' if abs(middle) > reach else ''}"
    drawn = [
        element("line", x1="50%", x2="50%", y1="0", y2="20", class_="axis"),
        box(at(low), 8.5, max(at(high) - at(low), 0.3), 3, kind, None),
        element("circle", element("title", label), cx=f"{at(middle):.2f}%", cy="10", r="4.5", class_=kind),
    ]
    return picture(20, label, drawn, "forest")


def box(x: float, y: float, width: float, height: float, kind: str, title: str | None) -> Element:
    said = element("title", title) if title else None
    return element("rect", said, x=f"{x:.3f}%", y=y, width=f"{width:.3f}%", height=height, class_=kind)


def picture(height: float, label: str, drawn: Child, kind: str) -> Element:
    return element("svg", drawn, role="img", aria_label=label, class_=f"picture {kind}", width="100%", height=height)


def legend(kinds: Iterable[tuple[str, str]]) -> Element:
    """(class, words) each."""
    keys = [
        element(
            "span",
            element(
                "svg",
                element("rect", width="12", height="12", class_=kind),
                width="12",
                height="12",
                aria_hidden="true",
            ),
            f" {words}",
            class_="key",
        )
        for kind, words in kinds
    ]
    return element("p", keys, class_="legend")
