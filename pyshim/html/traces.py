"""The page of a comparison: what was before, what came after, how sure the difference is, and one step of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyshim.html import draw, units
from pyshim.html.page import page
from pyshim.html.timeline import timelines
from pyshim.html.units import time
from pyshim.traces.compared import FACTOR, QUANTITIES, SHARE, TIME, Quantity

Data = Mapping[str, Any]
_BY_RANK = ("step_time", "exposed", "overlap_share")


@dataclass(frozen=True)
class Cell:
    shown: str
    sort: float | None  # None: the cell is empty


@dataclass(frozen=True)
class Row:
    title: str
    is_part: bool  # of the quantity above it
    cells: list[Cell]
    forest: draw.Forest | None


@dataclass(frozen=True)
class Table:
    what: str  # head of the first column
    plot: str  # head of the pictures
    rows: list[Row]
    title: str = ""


def compare(data: Data, pictures: Mapping[str, Any]) -> str:
    """Return the page. data, pictures: as_json() and timeline() of Compared in pyshim.traces."""
    return page(
        "traces.html",
        paths=[data[side]["path"] for side in ("before", "after")],
        data=data,
        verdict=verdict(data),
        kind={"less": "good", "more": "warn"}.get(data["total"]["step_time"]["verdict"], "neither"),
        total=_total(data),
        ranks=[_rank(data["ranks"], quantity) for quantity in QUANTITIES if quantity.name in _BY_RANK],
        timelines=timelines(pictures, _stepwise(data)),
        stepwise=_stepwise(data),
    )


def verdict(data: Data) -> str:
    step, simulated = data["total"]["step_time"], "simulated " if data["simulated"] else ""
    if step["difference"] is None:
        return "Nothing can be compared."
    what = f"A {simulated}step" if _stepwise(data) else f"The whole {simulated}trace"
    times = f"{what} takes {time(step['before'])} before and {time(step['after'])} after"
    percent = 100 * step["difference"] / step["before"] if step["before"] else 0.0
    if step["interval"] is None:
        unsure = "There are too few steps, or they are too much alike, to say how sure that is."
        return f"{times}: {units.change(percent)} %. {unsure}"
    low, high = (100 * end / step["before"] for end in step["interval"])
    sure = f"{100 * data['confidence']:.0f} % interval of the difference: {units.change(low)} to {units.change(high)} %"
    if step["verdict"] is None:
        return f"{times}: {units.change(percent)} % ({sure}), and no verdict, because the GPU is simulated."
    said = f"{abs(percent):.1f} % " if step["verdict"] in ("less", "more") else ""
    return f"{times}: {said}{step['verdict']} ({sure})."


def _stepwise(data: Data) -> bool:
    return all(data[side]["steps"] is not None for side in ("before", "after"))


def _total(data: Data) -> Table:
    changes = data["total"]
    # What is idle may be next to nothing before, and then any change of it is a large one.
    reach = _reach(change for name, change in changes.items() if name != "idle")
    unit, size = units.unit(changes["step_time"]["before"] or changes["step_time"]["after"] or 0.0)
    rows = [
        _row(quantity.title.strip(), quantity, changes[quantity.name], reach, size, quantity.title.startswith(" "))
        for quantity in QUANTITIES
    ]
    return Table(f"{unit} a step" if _stepwise(data) else unit, _scale(reach), rows)


def _rank(every: list[Data], quantity: Quantity) -> Table:
    changes = [rank["changes"][quantity.name] for rank in every]
    reach = _reach(changes)
    unit, size = units.unit(max((change["before"] or 0.0 for change in changes), default=0.0))
    rows = [_row(rank["name"], quantity, change, reach, size) for rank, change in zip(every, changes)]
    title = quantity.title.strip() + (f", {unit}" if quantity.unit == TIME else "")
    return Table("rank", _scale(reach), rows, title)


def _row(title: str, quantity: Quantity, change: Data, reach: float, size: float, is_part: bool = False) -> Row:
    """size: microseconds in the unit of times."""
    cells = [
        _number(quantity, change["before"], size),
        _number(quantity, change["after"], size),
        _difference(quantity, change, size),
        _interval(quantity, change, size),
    ]
    return Row(title, is_part, cells, _forest(change, reach, quantity.title.strip()))


def _number(quantity: Quantity, value: float | None, size: float) -> Cell:
    if value is None:
        return Cell("", None)
    if quantity.unit == SHARE:
        return Cell(f"{100 * value:.1f} %", value)
    return Cell(f"{value:.3f} x" if quantity.unit == FACTOR else f"{value / size:,.3f}", value)


def _difference(quantity: Quantity, change: Data, size: float) -> Cell:
    """In percent of before, in points of a share, in the unit itself where before is next to nothing."""
    before, value = change["before"], change["difference"]
    if value is None:
        return Cell("", None)
    if quantity.unit == SHARE:
        return Cell(f"{units.change(100 * value)} points", value)
    return Cell(f"{units.change(100 * value / before)} %" if change["relative"] else f"{value / size:+,.3f}", value)


def _interval(quantity: Quantity, change: Data, size: float) -> Cell:
    """Of the difference, as that is told."""
    if not change["interval"]:
        return Cell("", None)
    if quantity.unit != SHARE and not change["relative"]:
        low, high = (end / size for end in change["interval"])
        return Cell(f"{low:+,.3f} to {high:+,.3f}", low)
    whole = 1.0 if quantity.unit == SHARE else change["before"]
    low, high = (100 * end / whole for end in change["interval"])
    return Cell(f"{units.change(low)} to {units.change(high)}", low)


def _relative(change: Data) -> tuple[float, float, float] | None:
    """Return the change between the ends of its interval, in percent of what was before."""
    if not change["relative"] or change["difference"] is None:
        return None
    low, high = change["interval"] or (change["difference"], change["difference"])
    return tuple(100 * value / change["before"] for value in (low, change["difference"], high))


def _reach(changes: Iterable[Data]) -> float:
    """Return what the half of a plot stands for, in percent: the farthest change, up to a hundred."""
    found = [abs(value) for change in changes for value in _relative(change) or ()]
    return min(100.0, 1.1 * max([1.0, *found]))


def _scale(reach: float) -> str:
    return f"-{reach:.3g} % to +{reach:.3g} %"


def _forest(change: Data, reach: float, name: str) -> draw.Forest | None:
    found = _relative(change)
    if found is None:
        return None
    low, middle, high = found
    ends = f"{units.change(low)} to {units.change(high)} %"
    label = f"{name}: {units.change(middle)} %, {ends}: {change['verdict'] or 'no verdict'}"
    return draw.forest(low, middle, high, reach, change["verdict"] in ("less", "more"), label)
