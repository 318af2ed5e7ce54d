"""The page of a comparison: what was before, what came after, how sure the difference is, and one step of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyshim.html import draw, units
from pyshim.html.page import page
from pyshim.html.table import PICTURE, WORDS, Cell, Content, table
from pyshim.html.timeline import timelines
from pyshim.html.tree import Child, Element, element, isolated, prose
from pyshim.html.units import time
from pyshim.traces.compared import FACTOR, QUANTITIES, SHARE, TIME, Quantity

Data = Mapping[str, Any]
_BY_RANK = ("step_time", "exposed", "overlap_share")
_KNOWN = {quantity.name: quantity for quantity in QUANTITIES}
_MEANING = (
    ("hidden", "communication while computation runs as well"),
    ("exposed", "communication while no computation runs"),
    ("overlap share", "hidden communication, of all communication"),
    ("idle", "nothing runs on the GPU, not even a copy"),
    ("slowdown", "how much longer the same kernels take beside communication than alone"),
)
_HTA = (
    "Definitions are those of Holistic Trace Analysis (Meta; hta.readthedocs.io, compared with version 0.5.0), where "
    "it has them; times that kernels share count once."
)


def compare(data: Data, pictures: Mapping[str, Any]) -> str:
    """data, pictures: as_json() and timeline() of Compared in pyshim.traces."""
    sides = [data[side] for side in ("before", "after")]
    body: list[Child] = [
        element("p", "overlap report --compare", class_="over"),
        element(
            "h1", isolated(sides[0]["path"]), element("span", " then ", class_="quiet"), isolated(sides[1]["path"])
        ),
        _verdict(data),
        _facts(data),
        _warnings(data["warnings"]),
        _total(data),
        timelines(pictures, _stepwise(data)),
        _ranks(data),
        _meaning(),
    ]
    return page(f"overlap report: {sides[0]['path']} and {sides[1]['path']}", *body)


def verdict(data: Data) -> str:
    step, simulated = data["total"]["step_time"], "simulated " if data["simulated"] else ""
    if step["difference"] is None:
        return "Nothing can be compared."
    what = f"A {simulated}step" if _stepwise(data) else f"The whole {simulated}trace"
    times = f"{what} takes {time(step['before'])} before and {time(step['after'])} after"
    if step["interval"] is None:
        unsure = "There are too few steps, or they are too much alike, to say how sure that is."
        return f"{times}: {units.change(_percent(step))} %. {unsure}"
    low, high = (100 * end / step["before"] for end in step["interval"])
    sure = f"{100 * data['confidence']:.0f} % interval of the difference: {units.change(low)} to {units.change(high)} %"
    if step["verdict"] is None:
        return f"{times}: {units.change(_percent(step))} % ({sure}), and no verdict, because the GPU is simulated."
    said = f"{abs(_percent(step)):.1f} % " if step["verdict"] in ("less", "more") else ""
    return f"{times}: {said}{step['verdict']} ({sure})."


def _stepwise(data: Data) -> bool:
    return all(data[side]["steps"] is not None for side in ("before", "after"))


def _percent(change: Data) -> float:
    return 100 * change["difference"] / change["before"] if change["before"] else 0.0


def _verdict(data: Data) -> Element:
    kind = {"less": "good", "more": "warn"}.get(data["total"]["step_time"]["verdict"], "neither")
    return element("p", verdict(data), class_=f"verdict {kind}")


def _facts(data: Data) -> Element:
    facts: list[tuple[str, Child]] = [(side, _side(data[side])) for side in ("before", "after")]
    facts.append(("method", prose(data["method"])))
    return element("dl", [[element("dt", name), element("dd", said)] for name, said in facts], class_="facts")


def _side(side: Data) -> Child:
    steps = "no steps in it" if side["steps"] is None else f"{side['steps']:,} steps, found by {side['steps_from']}"
    words = [
        f"{', '.join(side['kinds'])}: {side['ranks']:,} {'GPU' if side['ranks'] == 1 else 'GPUs'}",
        steps,
        *side["gpus"],
    ]
    badge = element("span", "simulated", class_="badge") if side["simulated"] else None
    return [isolated("; ".join(words)), " ", badge]


def _warnings(every: Sequence[str]) -> Child:
    if not every:
        return None
    return [element("h2", "Warnings"), element("ul", [element("li", prose(one)) for one in every], class_="said warn")]


def _total(data: Data) -> Child:
    changes = data["total"]
    # What is idle may be next to nothing before, and then any change of it is a large one.
    reach = _reach(change for name, change in changes.items() if name != "idle")
    unit, size = units.unit(changes["step_time"]["before"] or changes["step_time"]["after"] or 0.0)
    rows = [[_title(quantity), *_cells(quantity, changes[quantity.name], reach, size)] for quantity in QUANTITIES]
    about = (
        f"The mean over all GPUs. The line is the {100 * data['confidence']:.0f} % interval of the change, in percent "
        "of what was before; where it crosses the middle, chance alone may do as much. All of them hold together. Two "
        "runs of one program differ by more than its steps do."
    )
    return [
        element("h2", "Before and after"),
        element("p", about, class_="quiet"),
        _table(f"{unit} a step" if _stepwise(data) else unit, reach, rows),
    ]


def _title(quantity: Quantity) -> Element:
    return element("span", quantity.title.strip(), class_="under" if quantity.title.startswith(" ") else None)


def _table(what: str, reach: float, rows: Sequence[Sequence[Content]]) -> Element:
    plot = f"-{reach:.3g} % to +{reach:.3g} %"
    return table((what, "before", "after", "change", "interval", plot), rows, {what: WORDS, plot: PICTURE})


def _cells(quantity: Quantity, change: Data, reach: float, size: float) -> Sequence[Content]:
    """size: of the unit of times."""
    return (
        _number(quantity, change["before"], size),
        _number(quantity, change["after"], size),
        _difference(quantity, change, size),
        _interval(quantity, change, size),
        _forest(change, reach, quantity.title.strip()),
    )


def _number(quantity: Quantity, value: float | None, size: float) -> Content:
    if value is None:
        return ""
    if quantity.unit == SHARE:
        return Cell(f"{100 * value:.1f} %", value)
    return Cell(f"{value:.3f} x" if quantity.unit == FACTOR else f"{value / size:,.3f}", value)


def _difference(quantity: Quantity, change: Data, size: float) -> Content:
    """In percent of before, in points of a share, in the unit itself where before is next to nothing."""
    before, value = change["before"], change["difference"]
    if value is None:
        return ""
    if quantity.unit == SHARE:
        return Cell(f"{units.change(100 * value)} points", value)
    return Cell(f"{units.change(100 * value / before)} %" if change["relative"] else f"{value / size:+,.3f}", value)


def _interval(quantity: Quantity, change: Data, size: float) -> Content:
    """Of the difference, as that is told."""
    if not change["interval"]:
        return ""
    if quantity.unit != SHARE and not change["relative"]:
        low, high = (end / size for end in change["interval"])
        return Cell(f"{low:+,.3f} to {high:+,.3f}", low)
    whole = 1.0 if quantity.unit == SHARE else change["before"]
    low, high = (100 * end / whole for end in change["interval"])
    return Cell(f"{units.change(low)} to {units.change(high)}", low)


def _relative(change: Data) -> tuple[float, float, float] | None:
    """The change and the ends of its interval, in percent of what was before."""
    if not change["relative"] or change["difference"] is None:
        return None
    low, high = change["interval"] or (change["difference"], change["difference"])
    return tuple(100 * value / change["before"] for value in (low, change["difference"], high))


def _reach(changes: Iterable[Data]) -> float:
    """What the half of a plot stands for, in percent: the farthest change, up to a hundred."""
    found = [abs(value) for change in changes for value in _relative(change) or ()]
    return min(100.0, 1.1 * max([1.0, *found]))


def _forest(change: Data, reach: float, name: str) -> Content:
    found = _relative(change)
    if found is None:
        return ""
    low, middle, high = found
    ends = f"{units.change(low)} to {units.change(high)} %"
    label = f"{name}: {units.change(middle)} %, {ends}: {change['verdict'] or 'no verdict'}"
    return Cell(draw.forest(low, middle, high, reach, change["verdict"] in ("less", "more"), label), middle)


def _ranks(data: Data) -> Child:
    every = data["ranks"]
    if len(every) < 2:
        return None
    shown: list[Child] = [element("h2", "By rank")]
    for name in _BY_RANK:
        quantity = _KNOWN[name]
        changes = [rank["changes"][name] for rank in every]
        reach = _reach(changes)
        unit, size = units.unit(max((change["before"] or 0.0 for change in changes), default=0.0))
        rows = [
            [isolated(rank["name"]), *_cells(quantity, change, reach, size)] for rank, change in zip(every, changes)
        ]
        words = quantity.title.strip() + (f", {unit}" if quantity.unit == TIME else "")
        shown += [element("h3", words), _table("rank", reach, rows)]
    return shown


def _meaning() -> Child:
    words = element("dl", [[element("dt", word), element("dd", said)] for word, said in _MEANING], class_="facts")
    return [element("h2", "What the words mean"), words, element("p", _HTA, class_="quiet")]
