"""The rows of tools.bench.suites, summed up: simulated, from assumed costs of kernels."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from tools.answers import rows
from tools.answers.table import Table, Value, percent
from tools.bench.suites.rows import LIMIT_PERCENT, Row


def policies(root: Path) -> Table:
    """Best, median and worst of all programs."""
    found = rows.read(root).rows
    made: list[list[Value]] = []
    for gpu in dict.fromkeys(row.gpu for row in found):
        own = [row for row in found if row.gpu == gpu]
        default = [row for row in own if row.default]
        losing = sum(row.change > LIMIT_PERCENT for row in default)
        paper = [row for row in own if row.policy == f"{gpu}-paper"]
        made.append([gpu, _spread(default), f"{losing} of {len(default)}", _spread(paper)])
    head = "simulated GPU: best, median, worst, %"
    return Table((head, "default", f"lose over {LIMIT_PERCENT:g} %", "published"), made)


def _spread(found: Sequence[Row]) -> str | None:
    changes = sorted(row.change for row in found)
    if not changes:
        return None
    return ", ".join(percent(value) for value in (changes[0], statistics.median(changes), changes[-1]))
