"""`overlap report --compare BEFORE AFTER` of traces: tables that fit 60 columns, and what can be said of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyshim.traces.compared import Change, Compared, Quantity, Rank

_RANKS = 16  # of more, those whose steps have changed most
_WARNINGS = 10
_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))
_NONE = "-"


def compare_traces(before: str, after: str, options: argparse.Namespace) -> int:
    """Files, or folders of the ranks' files. Raises OverlapError."""
    from pyshim.cli import page, ui
    from pyshim.traces.compared import compare

    compared = compare(before, after)
    if options.html:
        from pyshim import html

        page.put(html.compare(compared.as_json(), compared.timeline()), len(compared.warnings), options)
    if options.json:
        ui.answer(json.dumps(compared.as_json(), indent=2))
    elif not options.html:
        _show(compared)
    for sentence in compared.warnings[:_WARNINGS]:
        ui.say(f"warning: {sentence}")
    if len(compared.warnings) > _WARNINGS:
        ui.say(f"warning: {len(compared.warnings) - _WARNINGS} more: --json has all")
    return 0


def _show(compared: Compared) -> None:
    from pyshim.cli import ui
    from pyshim.traces.compared import METHOD, QUANTITIES

    for line in _heading(compared):
        ui.say(line)
    unit, scale = _unit(compared.total)
    rows = [_row(quantity, compared.total[quantity.name], scale) for quantity in QUANTITIES]
    ui.show()
    ui.table((f"{unit} a step" if any(compared.sources) else unit, "before", "after", "change", "95 % interval"), rows)
    if len(compared.ranks) > 1:
        ui.show()
        _show_ranks(compared, unit, scale)
    ui.show()
    for sentence in _verdicts(compared.total):
        ui.paragraph(sentence, indent="  ", first="")
    if any(change.interval for change in compared.total.values()):
        ui.paragraph(f"Intervals: {METHOD}. Two runs of one program differ by more than its steps do.", "  ", first="")


def _heading(compared: Compared) -> Iterator[str]:
    for name, side, steps in zip(("before", "after"), (compared.before, compared.after), compared.steps):
        source = compared.sources[name == "after"]
        found = f"{steps} {'step' if steps == 1 else 'steps'} ({source})" if source else "no steps"
        yield f"{name}: {side.path}, {found}"
    if len(compared.ranks) > 1:
        yield f"means of {len(compared.ranks)} ranks"
    if compared.simulated:
        yield "simulated: this is no measurement of a GPU"


def _show_ranks(compared: Compared, unit: str, scale: float) -> None:
    from pyshim.cli import ui

    ranks = list(compared.ranks)
    if len(ranks) > _RANKS:
        ranks = sorted(ranks, key=lambda rank: -abs(rank.changes["step_time"].difference or 0))[:_RANKS]
        ui.show(f"The {_RANKS} of {len(compared.ranks)} ranks whose steps have changed most (--json has all):")
    heads = ("", "step before", "after", "change", "share before", "after")
    ui.table(heads, [_rank(rank, scale) for rank in ranks])


def _rank(rank: Rank, scale: float) -> tuple[str, ...]:
    step, share = rank.changes["step_time"], rank.changes["overlap_share"]
    return (
        rank.name,
        *(_number(value, "us", scale) for value in (step.before, step.after)),
        _difference(step, "us", scale)[0],
        *(_number(value, "share", scale) for value in (share.before, share.after)),
    )


def _row(quantity: Quantity, change: Change, scale: float) -> tuple[str, ...]:
    return (
        quantity.title,
        *(_number(value, quantity.unit, scale) for value in (change.before, change.after)),
        *_difference(change, quantity.unit, scale),
    )


def _unit(total: Mapping[str, Change]) -> tuple[str, float]:
    """The largest in which a step is at least one."""
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
    """With its interval: in per cent of before, in points of a share, in the unit itself where before is nothing."""
    if change.before is None or change.difference is None:
        return _NONE, _NONE
    if unit == "share":
        whole, sign, form = 1.0, " pp", "+.1f"
    elif change.before > 0:
        whole, sign, form = change.before, " %", "+.1f"
    else:
        whole, sign, form = 100 * scale, "", "+,.3f"
    values = (change.difference, *(change.interval or ()))
    difference, *reach = (format(round(100 * value / whole, 3) + 0.0, form) for value in values)
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
