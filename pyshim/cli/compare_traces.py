"""`overlap report --compare BEFORE AFTER` of traces: tables that fit 60 columns, and what can be said of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyshim.errors import FINDINGS

if TYPE_CHECKING:
    from pyshim.traces.compared import Change, Compared, Rank

_RANKS = 16  # of more, those whose steps have changed most
_WARNINGS = 10
_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))
_NONE = "-"
# Of each rank: what its columns are called.
_OF_RANKS = {
    "step_time": "step",
    "computation": "comp.",
    "communication": "comm.",
    "hidden": "hidden",
    "exposed": "exposed",
    "overlap_share": "share",
    "slowdown": "slowdown",
}


def compare_traces(before: str, after: str, options: argparse.Namespace) -> int:
    """Files, or folders of the ranks' files. Raises OverlapError."""
    from pyshim.cli import page, ui
    from pyshim.traces.compared import compare

    with ui.progress(f"reading {before} and {after}"):
        compared = compare(before, after)
        text = page.of(options, lambda html: html.compare(compared.as_json(), compared.timeline()))
    if options.html:
        page.put(text, len(compared.warnings), options)
    if options.json:
        ui.answer(json.dumps(compared.as_json(), indent=2, allow_nan=False))
    elif not options.html:
        _show(compared)
    say = ui.say if options.json or options.html else ui.sentence
    for sentence in compared.warnings[:_WARNINGS]:
        say(f"warning: {sentence}")
    if len(compared.warnings) > _WARNINGS:
        say(f"warning: {len(compared.warnings) - _WARNINGS} more: --json has all")
    return 0 if compared.comparable else FINDINGS


def _show(compared: Compared) -> None:
    from pyshim.cli import ui
    from pyshim.traces.compared import METHOD, QUANTITIES

    for line in _heading(compared):
        ui.show(ui.printable(line))
    unit, scale = _unit(compared.total)
    rows = []
    for quantity in QUANTITIES:
        change = compared.total[quantity.name]
        values = (_number(value, quantity.unit, scale) for value in (change.before, change.after))
        rows.append((quantity.title, *values, *_difference(change, quantity.unit, scale)))
    ui.show()
    ui.table((f"{unit} a step" if all(compared.sources) else unit, "before", "after", "change", "95 % interval"), rows)
    if len(compared.ranks) > 1:
        ui.show()
        _show_ranks(compared, unit, scale)
    ui.show()
    for sentence in _verdicts(compared.total):
        ui.paragraph(sentence, indent="  ", first="")
    for sentence in _notes(compared):
        ui.paragraph(sentence, indent="  ", first="")
    if any(change.interval for change in compared.total.values()):
        ui.paragraph(f"Intervals: {METHOD}. Two runs of one program differ by more than its steps do.", "  ", first="")


def _notes(compared: Compared) -> Iterator[str]:
    """Yield what is not in the table, and why."""
    if any(compared.left_out):
        yield "The last step of every trace is left out: nobody knows when the next would have begun."
    total, slowdown = compared.total, compared.total["slowdown"]
    if slowdown.before is None or slowdown.after is None:
        yield "slowdown -: in no step did the same kernel run both beside communication and alone."
    told = [change for change in total.values() if change.difference is not None]
    if all(compared.sources) and any(change.interval is None for change in told):
        yield "interval -: fewer than 5 steps, or steps too much alike to count as three."


def _heading(compared: Compared) -> Iterator[str]:
    for name, side, steps in zip(("before", "after"), (compared.before, compared.after), compared.steps):
        source = compared.sources[name == "after"]
        found = f"{steps} {'step' if steps == 1 else 'steps'} ({source})" if source else "no steps"
        yield f"{name}: {side.path}, {found}"
    if len(compared.ranks) > 1:
        yield f"means of {len(compared.ranks)} ranks"
    if compared.simulated:
        yield "simulated: this is no measurement of a GPU, so there is no verdict"


def _show_ranks(compared: Compared, unit: str, scale: float) -> None:
    from pyshim.cli import ui

    def changed(rank: Rank) -> float:
        step = rank.changes["step_time"]
        return abs((step.after or 0.0) - (step.before or 0.0))

    ranks = list(compared.ranks)
    if len(ranks) > _RANKS:
        ranks = sorted(ranks, key=changed, reverse=True)[:_RANKS]
        ui.show(f"The {_RANKS} of {len(compared.ranks)} ranks whose steps have changed most (--json has all):")
    ui.table((unit, *_OF_RANKS.values()), [row for rank in ranks for row in _rank(rank, scale)])


def _rank(rank: Rank, scale: float) -> Iterator[tuple[str, ...]]:
    """Three rows: before, after, and the change where one can be told."""
    from pyshim.traces.compared import QUANTITIES

    units = {quantity.name: quantity.unit for quantity in QUANTITIES}
    shown = [(rank.changes[name], units[name]) for name in _OF_RANKS]
    yield rank.name, *(_number(change.before, unit, scale) for change, unit in shown)
    yield "  after", *(_number(change.after, unit, scale) for change, unit in shown)
    if rank.changes["step_time"].comparable:
        yield "  change", *(_difference(change, unit, scale)[0] for change, unit in shown)


def _unit(total: Mapping[str, Change]) -> tuple[str, float]:
    """Return the largest unit in which a step is at least one."""
    step = total["step_time"]
    length = max(step.before or 0.0, step.after or 0.0)
    return next(((unit, scale) for unit, scale in _UNITS if length >= scale), _UNITS[-1])


def _number(value: float | None, unit: str, scale: float) -> str:
    if value is None:
        return _NONE
    if unit == "share":
        return f"{100 * value:.1f} %"
    return f"{value:.3f}" if unit == "factor" else f"{value / scale:,.3f}"


def _difference(change: Change, unit: str, scale: float) -> tuple[str, str]:
    """With its interval: in per cent of before, in points of a share, in the unit where before is next to nothing."""
    if change.before is None or change.difference is None:
        return _NONE, _NONE
    if unit == "share":
        whole, sign, form = 1.0, " pp", "+.1f"
    elif change.relative:
        whole, sign, form = change.before, " %", "+.1f"
    else:
        whole, sign, form = 100 * scale, "", "+,.3f"
    values = (change.difference, *(change.interval or ()))
    digits = int(form[-2])
    difference, *reach = (format(round(100 * value / whole, digits) + 0.0, form) for value in values)
    return difference + sign, " to ".join(reach) or _NONE


def _verdicts(total: Mapping[str, Change]) -> Iterator[str]:
    from pyshim.traces.compared import QUANTITIES

    said: dict[str, list[str]] = {}
    for quantity in QUANTITIES:
        verdict = total[quantity.name].verdict
        if verdict:
            said.setdefault(verdict, []).append(quantity.title.strip())
    words = {"less": "less after", "more": "more after", "no difference seen": "no difference seen"}
    for verdict, sentence in words.items():
        if verdict in said:
            yield f"{sentence}: {', '.join(said[verdict])}"
