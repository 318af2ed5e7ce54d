"""One step before and after: a lane for each stream, on one scale, and below them when communication ran alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyshim.html import draw
from pyshim.html.tree import Child, Element, element
from pyshim.html.units import time

Span = tuple[float, float]
_LEGEND = (
    ("computation", "computation"),
    ("communication", "communication"),
    ("memory", "copies"),
    ("exposed", "communication with no computation beside it: exposed"),
)
_TICKS = 4
_ZOOMS = (1, 4, 16)
_NAMED = 0.05  # of the width, at least, for a bar that has its name in it
_HEIGHT, _LOW = 22, 9  # of a lane, and of copies in it
_THINNEST, _EDGED = 0.04, 0.4  # percent: the least of a bar; those wider have an edge, to be told from neighbours
_LABEL = 8  # characters of a stream's name


def timelines(pictures: Mapping[str, Any], stepwise: bool) -> Child:
    """pictures: as Compared.timeline() of pyshim.traces has them; each may be None. stepwise: each shows a step."""
    shown = {side: picture for side, picture in pictures.items() if picture and picture["lanes"]}
    if not shown:
        return None
    length = max(picture["length_us"] for picture in shown.values()) or 1.0
    zooms = [
        [
            element("input", type="radio", name="zoom", id=f"zoom{zoom}", class_="zoom", checked=zoom == 1),
            element("label", f"{zoom} x", for_=f"zoom{zoom}"),
        ]
        for zoom in _ZOOMS
    ]
    lanes = [_side(side, picture, length, stepwise) for side, picture in shown.items()]
    inner = element("div", lanes, class_="inner")
    box = element("div", inner, class_="box timeline", tabindex="0", role="region", aria_label="timelines")
    return [element("h2", "One step" if stepwise else "Timeline"), _textures(), draw.legend(_LEGEND), zooms, box]


def _side(side: str, picture: Mapping[str, Any], length: float, stepwise: bool) -> Child:
    step = f", step {picture['step']}" if stepwise else ""
    title = element("h3", f"{side}: {picture['name']}{step}, {time(picture['length_us'])}")
    every = [_lane(lane["stream"], lane["bars"], length) for lane in picture["lanes"]]
    alone = list(exposed(picture["lanes"]))
    words = f"{time(sum(end - start for start, end in alone))} exposed"
    bars = [
        draw.box(100 * start / length, 3, _wide(start, end, length), 16, "exposed", time(end - start))
        for start, end in alone
    ]
    every.append(_row("exposed", bars, words))
    ticks = [element("span", "0" if not tick else time(length * tick / _TICKS)) for tick in range(_TICKS + 1)]
    return [
        title,
        every,
        element("div", element("span", class_="stream"), element("p", ticks, class_="scale"), class_="lane"),
    ]


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


def _lane(stream: str, bars: Sequence[Sequence[Any]], length: float) -> Child:
    drawn: list[Child] = []
    for start, end, kind, name in bars:
        at, wide = 100 * start / length, _wide(start, end, length)
        top, high = (_HEIGHT - _LOW, _LOW) if kind == "memory" else (0, _HEIGHT)
        edged = f"{kind} edged" if wide > _EDGED else kind
        drawn.append(draw.box(at, top, wide, high, edged, f"{name}, {time(end - start)}"))
        if (end - start) / length > _NAMED and kind != "memory":
            inside = element("text", name, x="4", y="15", class_=f"inside on-{kind}")
            drawn.append(element("svg", inside, x=f"{at:.3f}%", width=f"{wide:.3f}%", height=_HEIGHT))
    short = stream if len(stream) <= _LABEL else f"..{stream[2 - _LABEL :]}"
    return _row(f"stream {short}", drawn, f"stream {stream}: {len(bars):,} bars")


def _wide(start: float, end: float, length: float) -> float:
    return max(100 * (end - start) / length, _THINNEST)


def _row(name: str, drawn: Child, label: str) -> Element:
    return element(
        "div",
        element("span", name, class_="stream", title=label),
        draw.picture(_HEIGHT, label, drawn, "run"),
        class_="lane",
    )


def _textures() -> Element:
    """Hatching and dots, so that colour is not all there is to tell kinds apart."""
    hatch = element("path", d="M0 0V6", stroke_width="2.5", class_="texture")
    dot = element("circle", cx="2", cy="2", r="0.9", class_="texture dotted")
    units = {"patternUnits": "userSpaceOnUse"}
    patterns = [
        element(
            "pattern",
            element("rect", width="6", height="6", class_="ground-communication"),
            hatch,
            id="hatch",
            width="6",
            height="6",
            patternTransform="rotate(45)",
            **units,
        ),
        element(
            "pattern",
            element("rect", width="4", height="4", class_="ground-memory"),
            dot,
            id="dots",
            width="4",
            height="4",
            **units,
        ),
    ]
    return element("svg", element("defs", patterns), width="0", height="0", class_="defs", aria_hidden="true")
