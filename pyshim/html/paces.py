"""The page of a comparison of two reports: how fast communication launches followed each other, rank by rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from pyshim.html import draw, units
from pyshim.html.page import page
from pyshim.html.table import PICTURE, PROSE, Cell, Content, table
from pyshim.html.tree import Child, Element, element, isolated
from pyshim.html.units import time
from pyshim.report import many

Data = Mapping[str, Any]
_MOST = 16  # of more, those that have changed most
_ABOUT = (
    "Time between two launches of communication, by the clock of the host: what a step of the program takes for each "
    "collective that it launches, not what a collective takes. The line is the interval of the change; where it "
    "crosses the middle, chance alone may do as much. Two runs of one program differ by more than that."
)


def compare_reports(data: Data) -> str:
    """data: as_json() of Compared in pyshim.report.cadence."""
    before, after = (", ".join(data[side]) for side in ("before", "after"))
    body: list[Child] = [
        element("p", "overlap report --compare", class_="over"),
        element("h1", isolated(before), element("span", " then ", class_="quiet"), isolated(after)),
        _verdict(data),
        element("dl", [[element("dt", name), element("dd", said)] for name, said in _facts(data)], class_="facts"),
        element("h2", "Time between communication launches"),
        element("p", _ABOUT, class_="quiet"),
        _pairs(data["ranks"]),
    ]
    return page(f"overlap report: {before} and {after}", *body)


def verdict(data: Data) -> str:
    counts, pairs = data["verdicts"], data["ranks"]
    if not pairs:
        return "No rank of the one launched communication in the other, too: nothing can be compared."
    middle = median(pair["change"]["percent"] for pair in pairs)
    if len(pairs) == 1:
        return f"Time between communication launches: {units.change(middle)} %, {next(iter(counts))}, in host time."
    what = f"the {len(pairs):,} ranks"
    said = ", ".join(f"{verdict} in {count:,}" for verdict, count in counts.items())
    return (
        f"Time between communication launches of {what}: {said}. Median change {units.change(middle)} %, in host time."
    )


def _verdict(data: Data) -> Element:
    counts = data["verdicts"]
    faster, slower = counts.get("faster", 0), counts.get("slower", 0)
    kind = "neither" if bool(faster) == bool(slower) else "good" if faster else "warn"
    return element("p", verdict(data), class_=f"verdict {kind}")


def _facts(data: Data) -> Iterator[tuple[str, Child]]:
    if data["simulated"]:
        yield "GPU", [element("span", "simulated", class_="badge"), " this is no measurement"]
    if data["total"] and len(data["ranks"]) > 1:
        yield f"all {len(data['ranks']):,} ranks", _total(data["total"])
    yield "clock", "of the host, at the launch"
    yield "method", data["method"]
    for side in ("before", "after"):
        lost = data[f"only_{side}"]
        if lost:
            more = f" and {len(lost) - _MOST:,} more" if len(lost) > _MOST else ""
            yield f"only {side}", [isolated(", ".join(lost[:_MOST])), more]


def _total(total: Data) -> str:
    change, low, high = total["change"], total["change"]["low_percent"], total["change"]["high_percent"]
    reach = "" if low is None else f" ({units.change(low)} to {units.change(high)})"
    paces = f"{time(total['before_us'])} before, {time(total['after_us'])} after"
    return f"{paces}, {units.change(change['percent'])} %{reach}: {change['verdict']}"


def _pairs(every: Sequence[Data]) -> Child:
    if not every:
        return None
    if len(every) <= many.FEW:
        return _table(every)
    dots = [
        draw.Dot(pair["change"]["percent"], f"{_name(pair)}: {units.change(pair['change']['percent'])} %")
        for pair in every
    ]
    low, high = min(dot.value for dot in dots), max(dot.value for dot in dots)
    ends = element(
        "p", element("span", f"{units.change(low)} %"), element("span", f"{units.change(high)} %"), class_="scale"
    )
    most = sorted(every, key=lambda pair: -abs(pair["change"]["percent"]))[:_MOST]
    return [
        element("h3", f"Change of all {len(every):,} ranks"),
        draw.strip(dots, f"from {units.change(low)} to {units.change(high)} %"),
        ends,
        element("h3", f"The {_MOST} that have changed most"),
        _table(most),
        element("details", element("summary", f"all {len(every):,} ranks"), _table(every)),
    ]


def _table(every: Sequence[Data]) -> Element:
    name, size = units.unit(max(pair["before"]["mean_us"] for pair in every))
    ends = [abs(end) for pair in every for end in _ends(pair["change"])]
    reach = min(100.0, 1.1 * max([1.0, *ends]))
    plot = f"-{reach:.3g} % to +{reach:.3g} %"
    heads = ("rank", f"before, {name}", f"after, {name}", "change", "interval", plot, "launches")
    return table(heads, [_row(pair, reach, size) for pair in every], {"rank": PROSE, plot: PICTURE})


def _row(pair: Data, reach: float, size: float) -> Sequence[Content]:
    change, paces = pair["change"], (pair["before"], pair["after"])
    low, high = _ends(change)
    sure = change["verdict"] in ("faster", "slower")
    label = f"{_name(pair)}: {units.change(change['percent'])} %: {change['verdict']}"
    drawn = draw.forest(low, change["percent"], high, reach, sure, label)
    told = change["low_percent"] is not None
    return (
        Cell([_title(pair), element("small", _places(pair))], -1 if pair["rank"] is None else pair["rank"]),
        *(
            Cell(element("span", f"{pace['mean_us'] / size:,.3f}", title=_about(pace)), pace["mean_us"])
            for pace in paces
        ),
        Cell(f"{units.change(change['percent'])} %", change["percent"]),
        Cell(f"{units.change(low)} to {units.change(high)}" if told else "", low),
        Cell(drawn, change["percent"]),
        min(pace["launches"] for pace in paces),
    )


def _about(pace: Data) -> str:
    reach = "" if pace["low_us"] is None else f"{time(pace['low_us'])} to {time(pace['high_us'])}, "
    return f"{reach}{pace['launches']:,} of {pace['communication']:,} launches"


def _ends(change: Data) -> tuple[float, float]:
    low, high = change["low_percent"], change["high_percent"]
    return (low, high) if low is not None else (change["percent"], change["percent"])


def _name(pair: Data) -> str:
    return f"{_title(pair)} ({_places(pair)})".lstrip()


def _title(pair: Data) -> str:
    return "" if pair["rank"] is None else f"rank {pair['rank']} "


def _places(pair: Data) -> str:
    return f"{pair['before_process']}, {pair['after_process']}"
