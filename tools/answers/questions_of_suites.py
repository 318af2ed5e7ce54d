"""Questions of docs/answers.md that the overlap suite answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from answers import default_losses, suite
from answers.comparing import BOUND_PERCENT, against, interval
from answers.markdown import percent
from answers.overlap_tables import title
from answers.suite import DEFAULT, PLAIN, PRIORITY

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
    return f"curves of {len(curves)} pairs ([overlap](overlap.md))", "; ".join(parts)


def default_bound(name: str) -> Callable[[Path], tuple[str, str] | None]:
    """Of a set."""

    def answer(root: Path) -> tuple[str, str] | None:
        found = suite.read(root, name)
        run = found.runs[0] if found else None
        parts, words = [], []
        for base in (PLAIN, PRIORITY):
            lost = against(run.cells, DEFAULT, base) if run else None
            if lost is not None:
                words.append(f"**{percent(lost.worst.median)}** against {base}")
                over = f"{len(lost.unbounded)} of {len(lost.changes)} cells not within {BOUND_PERCENT:g} %"
                parts.append(f"against {base}: {lost.worst.cell.name}, {interval(lost.worst)}; {over}")
        if run is None or not parts:
            return None
        parts += [default_losses.noise(run) or "", *default_losses.reasons(run)]
        return f"{', '.join(words)}, of all cells", "; ".join(filter(None, parts))

    return answer
