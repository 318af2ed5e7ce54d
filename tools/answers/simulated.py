"""The rows of tools/bench/suite, summed up: simulated, from assumed costs of kernels."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.answers import rows
from tools.answers.rows import Row
from tools.answers.table import Table, Value, percent, rounded, span
from tools.bench.suites.rows import LIMIT_PERCENT

PAPER, WINDOWS = "-paper", "-paper-windows"  # endings of policies
DEFAULTS = ("a40", "l40s", "a100", "h100", "h200", "b200")


def kind_of(row: Row) -> str | None:
    """The ending of the policy's name; None for observe."""
    return row.policy[len(row.gpu) :] if row.policy.startswith(row.gpu) else None


def _of(found: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in found if kind_of(row) == kind]


def policies(root: Path) -> Table:
    """Best, median and worst of all programs under all three rules."""
    found = rows.read(root).rows
    made: list[list[Value]] = []
    for gpu in dict.fromkeys(row.gpu for row in found):
        own = [row for row in found if row.gpu == gpu]
        made.append([gpu, _spread(_of(own, "")), _spread(_of(own, PAPER))])
    return Table(("simulated GPU: best, median, worst, %", "default", "published"), made)


def _spread(found: Sequence[Row]) -> str | None:
    changes = sorted(row.change for row in found)
    if not changes:
        return None
    return ", ".join(percent(value) for value in (changes[0], statistics.median(changes), changes[-1]))


def every_policy(root: Path) -> Table:
    by: dict[tuple[str, str], list[Row]] = {}
    for row in rows.read(root).rows:
        if kind_of(row) is not None:
            by.setdefault((row.policy, row.rule), []).append(row)
    made: list[list[Value]] = []
    for (policy, rule), own in by.items():
        own = sorted(own, key=lambda row: row.change)
        lose = sum(row.change > LIMIT_PERCENT for row in own)
        middle = rounded(statistics.median(row.change for row in own))
        first = rounded(max(row.first for row in own))
        ends = (own[0].change, own[0].program, middle, own[-1].change, own[-1].program)
        made.append([policy, rule, *ends, lose, len(own), first])
    heads = ("policy", "rule", "best_percent", "best_program", "median_percent", "worst_percent", "worst_program")
    return Table((*heads, f"lose_over_{LIMIT_PERCENT:g}_percent", "programs", "first_steps_worst_percent"), made)


def shapes(root: Path) -> Table:
    """Ranges of change over the programs of a shape."""
    found = rows.read(root).rows
    made: list[list[Value]] = []
    for shape in dict.fromkeys(row.shape for row in found):
        own = [row for row in found if row.shape == shape]
        held = [row for row in own if row.rule == "hold"]
        changes: list[Iterable[float]] = [
            (row.change for row in _of(own, "")),
            (row.change for row in _of(held, PAPER)),
            (row.priority for row in _of(held, PAPER)),
            (row.change for row in _of(own, WINDOWS)),
        ]
        made.append([shape, *map(span, changes)])
    heads = ("programs", "default_all_rules_percent", "published_hold_percent", "priority_hold_percent")
    return Table((*heads, "published_in_windows_all_rules_percent"), made)
