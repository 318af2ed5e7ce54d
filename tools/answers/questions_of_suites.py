"""Questions of docs/answers.md that the overlap suite answers."""

from __future__ import annotations

from pathlib import Path

from answers import suite
from answers.comparing import BOUND_PERCENT, against, interval
from answers.markdown import listed, percent
from answers.overlap_tables import title
from answers.suite import DEFAULT, PLAIN

FILE = "overlap-standins"


def room_by_size(root: Path) -> tuple[str, str] | None:
    found = suite.read(root, FILE)
    curves = [curve for run in found.runs for curve in run.curves] if found else []
    if not curves:
        return None
    parts = []
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        change = percent(100 * (last.alone / first.alone - 1))
        parts.append(f"{title(curve)}: {first.resident} to {last.resident} blocks {change} alone")
    return f"curves of {len(curves)} pairs ([overlap](overlap.md#sensitivity-to-shared-memory))", "; ".join(parts)


def default_bound(root: Path) -> tuple[str, str] | None:
    found = suite.read(root, FILE)
    lost = against(found.runs[0].primary, DEFAULT, PLAIN) if found else None
    if lost is None:
        return None
    over = lost.unbounded
    words = f"a loss above {BOUND_PERCENT:g} % is ruled out" if not over else "more than the bound cannot be ruled out"
    numbers = f"worst of {len(lost.changes)} cells against plain: {lost.worst.cell.name}, {interval(lost.worst)}"
    if over:
        numbers += f"; not ruled out in {len(over)}: {listed([change.cell.name for change in over[:3]])}"
    return words, numbers
