"""overlap report --compare BEFORE AFTER: did it help?"""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from pyshim.report.cadence import Change, Compared, Pace, Pair

HEADS = ("rank", "before us", "after us", "change", "95 % interval", "verdict")
_ROWS = 16


def compare(before: str, after: str, options: argparse.Namespace) -> int:
    """Compare two report folders. Raises OverlapError for what is none."""
    for path in (before, after):
        if not _is_report(path):
            why = "is no report folder" if os.path.exists(path) else "does not exist"
            raise OverlapError(f"--compare: {path} {why}", "give two folders of overlap-run --report", USAGE)
    return _folders(before, after, options)


def _is_report(path: str) -> bool:
    from pyshim.launch.folder import PAGE, RUN

    return os.path.isdir(path) and any(PAGE.match(name) or RUN.match(name) for name in os.listdir(path))


def _folders(before: str, after: str, options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.report.cadence import compared
    from pyshim.report.collect import collect
    from pyshim.report.findings import skipped
    from pyshim.report.runs import chosen, remark

    with ui.progress(f"comparing {before} and {after}"):
        sides = chosen(collect(before)), chosen(collect(after))
        found = compared(*sides)
    for side in sides:
        for sentence in remark(side, "overlap report "):
            ui.tell(f"note: {sentence}")
        for sentence in skipped(side):
            ui.tell(f"warning: {sentence}")
    if not found.pairs:
        raise OverlapError(
            "there is nothing to compare: no rank has launched communication kernels in both runs",
            "--compare times communication kernels (NCCL, RCCL). With MPI through host memory, compare the program's "
            f"own time of an iteration; overlap report {before if not found.only_before else after} shows one run",
        )
    if options.json:
        ui.answer(json.dumps(found.as_json(), indent=2))
    else:
        _show(found)
    return 0


def _show(found: Compared) -> None:
    from pyshim.cli import ui

    if found.simulated:
        ui.show("simulated: this is no measurement of a GPU, so there is no verdict")
    ui.paragraph(
        "Time between communication launches as the host makes them, every 2^n-th being timed: the time of steps, as "
        "far as each launches the same collectives."
    )
    ui.show()
    rows = [[_who(pair), _pace(pair.before), _pace(pair.after), *_change(pair.change)] for pair in found.pairs[:_ROWS]]
    total, count = found.total, len(found.pairs)
    if total and count > 1:
        means = (f"{mean:,.1f}" for mean in (total.before_us, total.after_us))
        rows.append([f"all {count:,}", *means, *_change(total.change)])
    named = all(pair.rank is None for pair in found.pairs)
    ui.table(("process" if named else HEADS[0], *HEADS[1:]), rows, left=(0, 5) if named else (5,))
    if count > _ROWS:
        ui.show(f"{count - _ROWS:,} more: --json")
    counts = found.as_json()["verdicts"]
    if len(found.pairs) > 1:
        ui.show("; ".join(f"{verdict}: {count:,} of {len(found.pairs):,}" for verdict, count in counts.items()))
    if any(pair.rank is None for pair in found.pairs):
        ui.sentence("note: processes without a rank were compared in their order")
    others = [pair for pair in found.pairs if not pair.change.same_launches]
    if others:
        before, after = others[0].before, others[0].after
        ui.sentence(
            f"note: not the same launches, as on {others[0].before_process}: {before.communication:,} of communication "
            f"beside {before.computation:,} others before, {after.communication:,} beside {after.computation:,} after: "
            "the time for each is not that of the same thing"
        )
    for title, lost in (("before", found.only_before), ("after", found.only_after)):
        if lost:
            ui.sentence(f"note: {len(lost):,} of {title} have no counterpart: {', '.join(lost[:3])}")
    ui.sentence(
        "note: one run on each side: what differs between any two runs (other nodes, other neighbours) is not in the "
        "interval"
    )


def _who(pair: Pair) -> str:
    return f"{pair.before_process}, {pair.after_process}" if pair.rank is None else str(pair.rank)


def _change(change: Change) -> list[str]:
    return [f"{change.percent:+.1f} %", _interval(change.low_percent, change.high_percent), _verdict(change)]


def _verdict(change: Change) -> str:
    from pyshim.report.cadence import TOO_FEW

    if change.verdict == TOO_FEW and change.half_percent is not None:
        return f"too few to see less than {change.half_percent:.0f} %"
    return change.verdict


def _pace(pace: Pace) -> str:
    if pace.low_us is None or pace.high_us is None:
        return f"{pace.mean_us:,.1f}"
    return f"{pace.mean_us:,.1f} ± {(pace.high_us - pace.low_us) / 2:,.1f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
