"""overlap report --compare BEFORE AFTER: did it help?"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from pyshim.report.cadence import Compared, Pace

HEADS = ("rank", "before us", "after us", "change", "95 % interval", "verdict")
_ROWS = 16


def compare(before: str, after: str, as_json: bool) -> int:
    """By what the two paths are. Raises OverlapError where they are not of one kind."""
    kinds = {os.path.isdir(path) for path in (before, after)}
    if kinds == {True}:
        return _folders(before, after, as_json)
    missing = next((path for path in (before, after) if not os.path.exists(path)), None)
    if missing is not None:
        raise OverlapError(f"--compare: there is no {missing}", "give two report folders", USAGE)
    raise OverlapError("--compare: what is given are not two report folders", "give what --report was given", USAGE)


def _folders(before: str, after: str, as_json: bool) -> int:
    from pyshim.cli import ui
    from pyshim.report.cadence import compared
    from pyshim.report.collect import collect
    from pyshim.report.findings import skipped

    sides = collect(before), collect(after)
    for side in sides:
        for sentence in skipped(side):
            ui.say(f"warning: {sentence}")
    found = compared(*sides)
    if not found.pairs:
        raise OverlapError(
            "there is nothing to compare: no rank has launched communication in both runs",
            f"look at each by itself: overlap report {before if not found.only_before else after}",
        )
    if as_json:
        ui.answer(json.dumps(found.as_json(), indent=2))
    else:
        _show(found)
    return 0


def _show(found: Compared) -> None:
    from pyshim.cli import ui

    ui.paragraph(
        "Time between communication launches as the host makes them, every 2^n-th being timed: the time of steps, as "
        "far as each launches the same collectives."
    )
    ui.show()
    rows = [
        [
            str(index) if pair.rank is None else str(pair.rank),
            _pace(pair.before),
            _pace(pair.after),
            f"{pair.change.percent:+.1f} %",
            _interval(pair.change.low_percent, pair.change.high_percent),
            pair.change.verdict,
        ]
        for index, pair in enumerate(found.pairs)
    ]
    ui.table(HEADS, rows[:_ROWS], left=(5,))
    if len(rows) > _ROWS:
        ui.show(f"{len(rows) - _ROWS:,} more: --json")
    counts = found.as_json()["verdicts"]
    if len(found.pairs) > 1:
        ui.say("; ".join(f"{verdict}: {count:,} of {len(found.pairs):,}" for verdict, count in counts.items()))
    if any(pair.rank is None for pair in found.pairs):
        ui.say("note: processes without a rank were compared in their order")
    for title, lost in (("before", found.only_before), ("after", found.only_after)):
        if lost:
            ui.say(f"note: {len(lost):,} of {title} have no counterpart: {', '.join(lost[:3])}")
    ui.say(
        "note: one run on each side: what differs between any two runs (other nodes, other neighbours) is not in the "
        "interval"
    )


def _pace(pace: Pace) -> str:
    if pace.low_us is None or pace.high_us is None:
        return f"{pace.mean_us:,.1f}"
    return f"{pace.mean_us:,.1f} ± {(pace.high_us - pace.low_us) / 2:,.1f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
