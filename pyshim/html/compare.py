"""The page of a comparison: what was before, what came after, how sure the difference is, and one step of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyshim.html import draw
from pyshim.html.page import page
from pyshim.html.table import PICTURE, WORDS, Cell, Content, table
from pyshim.html.timeline import timelines
from pyshim.html.tree import Child, Element, element, isolated, prose
from pyshim.html.units import signed, time
from pyshim.traces.compared import FACTOR, QUANTITIES, SHARE, Quantity

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
_HTA = "Definitions are those of Holistic Trace Analysis, where it has them; times that kernels share count once."


def compare(data: Data, pictures: Mapping[str, Any]) -> str:
    """data, pictures: as_json() and timeline() of Compared in pyshim.traces."""
    sides = [data[side] for side in ("before", "after")]
    body: list[Child] = [
        element("p", "overlap report --compare", class_="over"),
        element(
            "h1",
            [
                element("span", isolated(side["path"])) if not index else [" and then ", isolated(side["path"])]
                for index, side in enumerate(sides)
            ],
        ),
        _verdict(data),
        _facts(data),
        _warnings(data["warnings"]),
        _total(data),
        timelines(pictures),
        _ranks(data),
        _meaning(),
    ]
    return page(f"overlap report: {sides[0]['path']} and {sides[1]['path']}", *body)


def verdict(data: Data) -> str:
    step, simulated = data["total"]["step_time"], "simulated " if data["simulated"] else ""
    if step["before"] is None or step["after"] is None:
        return "Nothing can be compared."
    times = f"A {simulated}step takes {time(step['before'])} before and {time(step['after'])} after"
    if step["interval"] is None:
        return f"{times}. There are too few steps to say how sure that is."
    low, high = (100 * end / step["before"] for end in step["interval"])
    sure = f"{100 * data['confidence']:.0f} % interval of the difference {low:+.1f} to {high:+.1f} %"
    said = {"less": "less", "more": "more"}.get(step["verdict"], "no difference that chance could not make")
    return f"{times}: {said} ({sure})."


def _verdict(data: Data) -> Element:
    kind = {"less": "good", "more": "warn"}.get(data["total"]["step_time"]["verdict"], "neither")
    return element("p", verdict(data), class_=f"verdict {kind}")


def _facts(data: Data) -> Element:
    facts: list[tuple[str, Child]] = [(side, _side(data[side], data["simulated"])) for side in ("before", "after")]
    facts.append(("method", prose(data["method"])))
    return element("dl", [[element("dt", name), element("dd", said)] for name, said in facts], class_="facts")


def _side(side: Data, simulated: bool) -> Child:
    steps = "no steps in it" if side["steps"] is None else f"{side['steps']:,} steps, found by {side['steps_from']}"
    words = [
        f"{', '.join(side['kinds'])}: {side['ranks']:,} {'GPU' if side['ranks'] == 1 else 'GPUs'}",
        steps,
        *side["gpus"],
    ]
    badge = element("span", "simulated", class_="badge") if simulated else None
    return [isolated("; ".join(words)), " ", badge]


def _warnings(every: Sequence[str]) -> Child:
    if not every:
        return None
    return [element("h2", "Warnings"), element("ul", [element("li", prose(one)) for one in every], class_="said warn")]


def _total(data: Data) -> Child:
    reach = _reach(data["total"].values())
    rows = [
        (
            element("span", quantity.title.strip(), class_="under" if quantity.title.startswith(" ") else None),
            *_cells(quantity, data["total"][quantity.name], reach),
        )
        for quantity in QUANTITIES
    ]
    about = (
        f"Of a step, the mean over all GPUs. The line is the {100 * data['confidence']:.0f} % interval of the change, "
        "in percent of what was before; where it crosses the middle, chance alone may do as much."
    )
    return [element("h2", "Before and after"), element("p", about, class_="quiet"), _table("a step", reach, rows)]


def _table(what: str, reach: float, rows: Sequence[Sequence[Content]]) -> Element:
    plot = f"-{reach:.3g} % to +{reach:.3g} %"
    return table((what, "before", "after", "change", "", plot), rows, {what: WORDS, plot: PICTURE, "": WORDS})


def _cells(quantity: Quantity, change: Data, reach: float) -> Sequence[Content]:
    before, after, difference = change["before"], change["after"], change["difference"]
    percent = (
        f" ({100 * difference / before:+.1f} %)" if difference is not None and before and quantity.unit != SHARE else ""
    )
    return (
        _number(quantity, before),
        _number(quantity, after),
        Cell("" if difference is None else _changed(quantity, difference) + percent, difference or 0.0),
        change["verdict"] or "",
        _forest(change, reach, quantity.title.strip()),
    )


def _number(quantity: Quantity, value: float | None) -> Content:
    if value is None:
        return ""
    if quantity.unit == SHARE:
        return Cell(f"{100 * value:.1f} %", value)
    return Cell(f"{value:.2f} x" if quantity.unit == FACTOR else time(value), value)


def _changed(quantity: Quantity, value: float) -> str:
    if quantity.unit == SHARE:
        return f"{100 * value:+.1f} points"
    return f"{value:+.2f}" if quantity.unit == FACTOR else signed(value)


def _relative(change: Data) -> tuple[float, float, float] | None:
    """The change and the ends of its interval, in percent of what was before."""
    if not change["before"] or change["difference"] is None:
        return None
    low, high = change["interval"] or (change["difference"], change["difference"])
    return tuple(100 * value / change["before"] for value in (low, change["difference"], high))


def _reach(changes: Any) -> float:
    """What the half of a plot stands for, in percent: the farthest change, up to a hundred."""
    found = [abs(value) for change in changes for value in _relative(change) or ()]
    return min(100.0, 1.1 * max([1.0, *found]))


def _forest(change: Data, reach: float, name: str) -> Content:
    found = _relative(change)
    if found is None:
        return ""
    low, middle, high = found
    label = f"{name}: {middle:+.1f} %, {low:+.1f} to {high:+.1f} %"
    return Cell(draw.forest(low, middle, high, reach, change["verdict"] or "", label), middle)


def _ranks(data: Data) -> Child:
    every = data["ranks"]
    if len(every) < 2:
        return None
    shown: list[Child] = [element("h2", "By rank")]
    for name in _BY_RANK:
        quantity = _KNOWN[name]
        changes = [rank["changes"][name] for rank in every]
        reach = _reach(changes)
        rows = [(isolated(rank["name"]), *_cells(quantity, change, reach)) for rank, change in zip(every, changes)]
        shown += [element("h3", quantity.title.strip()), _table("rank", reach, rows)]
    return shown


def _meaning() -> Child:
    words = element("dl", [[element("dt", word), element("dd", said)] for word, said in _MEANING], class_="facts")
    return [element("h2", "What the words mean"), words, element("p", _HTA, class_="quiet")]
