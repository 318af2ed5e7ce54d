"""How long a mark took in the blocks of a trial, in the colours of its arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyshim.html.processes import name
from pyshim.html.units import time

HEIGHT = 90  # of a picture
_MOST = 8  # processes


@dataclass(frozen=True)
class Point:
    x: float  # percent of the width
    y: float  # from the top
    kind: str  # a class of page.css: the colour of the arm
    title: str


@dataclass(frozen=True)
class Pace:
    """Of one process."""

    label: str
    legend: list[tuple[str, str]]
    points: list[Point]
    ends: tuple[str, str]  # of the time axis


@dataclass(frozen=True)
class Paces:
    every: list[Pace]
    all: int  # processes with a trial
    high: float  # microseconds at the top


def paces(every: Sequence[Mapping[str, Any]]) -> Paces | None:
    """Return the paces of processes with measured blocks, as `--json` has them; None: there are none."""
    found = [(process, made) for process in every for made in [_measured(process["trial"])] if made]
    if not found:
        return None
    values = sorted(pace for _, blocks in found for _, pace, _ in blocks)
    high = 1.05 * min(values[-1], 2 * values[len(values) // 2]) or 1.0
    return Paces([_pace(process, blocks, high) for process, blocks in found[:_MOST]], len(found), high)


def _measured(trial: Mapping[str, Any] | None) -> list[tuple[float, float, int]]:
    """Return (seconds since the trial began, microseconds for a mark, arm) of the blocks whose time is known."""
    if not trial or trial["begun"] is None:
        return []
    return [
        ((begun - trial["begun"]) / 1e9, took / 1e3 / marks, arm)
        for begun, took, arm, marks in trial["blocks"]
        if took and marks
    ]


def _pace(process: Mapping[str, Any], blocks: Sequence[tuple[float, float, int]], high: float) -> Pace:
    arms = [arm["name"] for arm in process["trial"]["arms"]]
    first, last = blocks[0][0], blocks[-1][0]
    points = [
        Point(
            x=round(1 + 98 * (at - first) / ((last - first) or 1.0), 2),
            y=round(HEIGHT * (1 - min(pace / high, 1.0)), 1),
            kind=f"arm{arm}",
            title=f"{arms[arm]}: {time(pace)}",
        )
        for at, pace, arm in blocks
    ]
    legend = [(f"arm{index}", arm) for index, arm in enumerate(arms)]
    return Pace(
        f"{name(process)}: the pace under {len(arms)} arms", legend, points, (f"{first:.3g} s", f"{last:.3g} s")
    )
