"""The page of a comparison of two reports: how fast communication launches followed each other, rank by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pyshim.html import draw, units
from pyshim.html.page import page
from pyshim.report import many

Data = Mapping[str, Any]
_MOST = 16  # of more, those that have changed most


@dataclass(frozen=True)
class Pair:
    """A rank before and after."""

    data: Data

    @property
    def rank(self) -> str:
        return "" if self.data["rank"] is None else f"rank {self.data['rank']} "

    @property
    def processes(self) -> str:
        return f"{self.data['before_process']}, {self.data['after_process']}"

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval of the change, in percent."""
        change = self.data["change"]
        low, high = change["low_percent"], change["high_percent"]
        return (low, high) if low is not None else (change["percent"], change["percent"])

    @property
    def label(self) -> str:
        return f"{self.rank}({self.processes}): {units.change(self.data['change']['percent'])} %"

    def forest(self, reach: float) -> draw.Forest:
        change, (low, high) = self.data["change"], self.ends
        sure = change["verdict"] in ("faster", "slower")
        return draw.forest(low, change["percent"], high, reach, sure, f"{self.label}: {change['verdict']}")


@dataclass(frozen=True)
class Table:
    pairs: Sequence[Pair]

    @property
    def unit(self) -> tuple[str, float]:
        return units.unit(max(pair.data["before"]["mean_us"] for pair in self.pairs))

    @property
    def reach(self) -> float:
        """Return the half of the scale of the plots, in percent."""
        return min(100.0, 1.1 * max([1.0, *(abs(end) for pair in self.pairs for end in pair.ends)]))


def compare_reports(data: Data) -> str:
    """Return the page. data: as_json() of Compared in pyshim.report.cadence."""
    counts, every = data["verdicts"], [Pair(pair) for pair in data["ranks"]]
    faster, slower = counts.get("faster", 0), counts.get("slower", 0)
    changes = [(pair.data["change"]["percent"], pair.label, False) for pair in every]
    return page(
        "paces.html",
        paths=[", ".join(data[side]) for side in ("before", "after")],
        data=data,
        verdict=verdict(data),
        kind="neither" if bool(faster) == bool(slower) else "good" if faster else "warn",
        all=Table(every),
        most=Table(sorted(every, key=lambda pair: -abs(pair.data["change"]["percent"]))[:_MOST]),
        dots=draw.strip(changes) if len(every) > many.FEW else [],
        ends=[units.change(end(change for change, _, _ in changes)) for end in (min, max)] if changes else [],
    )


def verdict(data: Data) -> str:
    counts, pairs = data["verdicts"], data["ranks"]
    if not pairs:
        return "No rank of the one launched communication in the other, too: nothing can be compared."
    middle = units.change(median(pair["change"]["percent"] for pair in pairs))
    if len(pairs) == 1:
        return f"Time between communication launches: {middle} %, {next(iter(counts))}, in host time."
    said = ", ".join(f"{verdict} in {count:,}" for verdict, count in counts.items())
    what = f"Time between communication launches of the {len(pairs):,} ranks"
    return f"{what}: {said}. Median change {middle} %, in host time."
