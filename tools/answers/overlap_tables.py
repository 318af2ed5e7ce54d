"""The tables of docs/overlap.md: arms, cells, curves."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import groupby

from arms import blocks_of, known, meaning

from answers import comparing
from answers.comparing import Against, Choice, against
from answers.markdown import percent, table
from answers.suite import ALONE, DEFAULT, PLAIN, PRIORITY, Cell, Curve, Point, Run

NOTHING = "–"
BEST_SHAPE, BEST_RAISED = "best shape", "best shape + priority"
# Chosen in each cell by the samples that are shown.
CHOICES: dict[str, Choice] = {
    BEST_SHAPE: lambda cell: comparing.shapes(cell, False),
    BEST_RAISED: lambda cell: comparing.shapes(cell, True),
}
ANCHOR = "anchor"
SHOWN: dict[str, Choice] = {**CHOICES, ANCHOR: lambda cell: comparing.ANCHORS}
# Shown for each cell, where a set has them.
MAIN = (PLAIN, PRIORITY, "order+priority", "cluster-1+priority", BEST_RAISED, DEFAULT, ANCHOR)


def _name(cell: Cell, arm: str) -> str | None:
    return comparing.fastest(cell, SHOWN[arm](cell)) if arm in SHOWN else arm


def compared(run: Run, base: str) -> list[Against]:
    """Every arm over the primary cells, in the order of the file; of the many shapes the best ones."""
    arms = [arm for arm in run.arms() if arm not in (*ALONE, base) and blocks_of(arm) is None]
    found = [against(run.primary, arm, base) for arm in arms]
    found += [against(run.primary, arm, base, choice) for arm, choice in CHOICES.items()]
    return [one for one in found if one is not None]


def arms(run: Run, base: str) -> str:
    heads = ("arm", "cells", "best", "median", "worst", "better, neither, worse", "share of the ideal", "wait, us")
    rows = [_arm(run, one) for one in compared(run, base)]
    columns = len(heads) if any(row[-1] != NOTHING for row in rows) else len(heads) - 1
    columns = columns if base == PLAIN else len(heads) - 2
    return table(heads[:columns], [row[:columns] for row in rows])


def meanings(runs: Iterable[Run]) -> str:
    found = dict.fromkeys(arm for run in runs for arm in run.arms())
    said = [(code(arm), meaning(arm)) for arm in found if known(arm) and blocks_of(arm) is None]
    return table(("arm", "what it is"), said, left=2)


def _arm(run: Run, one: Against) -> tuple[str, ...]:
    shares = [share for cell in run.primary if (share := share_of(cell, one.arm)) is not None]
    waits = [statistics.median(wait) for cell in run.primary if (wait := _waits_of(cell, one.arm))]
    return (
        code(one.arm),
        str(len(one.changes)),
        f"{percent(one.best.median)} ({one.best.cell.name})",
        percent(one.median),
        f"{percent(one.worst.median)} ({one.worst.cell.name})",
        comparing.counts(one),
        f"{round(statistics.median(shares))} %" if shares else NOTHING,
        f"{statistics.median(waits):,.0f}" if waits else NOTHING,
    )


def code(arm: str) -> str:
    return arm if arm in SHOWN else f"`{arm}`"


def share_of(cell: Cell, arm: str) -> float | None:
    """Of the ideal; arm may be one of CHOICES."""
    name = _name(cell, arm)
    return cell.share(name) if name else None


def _waits_of(cell: Cell, arm: str) -> tuple[float, ...]:
    name = _name(cell, arm)
    return cell.arms[name].wait_us if name in cell.arms else ()


def _in_order(run: Run) -> list[Cell]:
    return sorted(run.cells, key=lambda cell: not cell.primary)


def _main(run: Run) -> list[str]:
    return [arm for arm in MAIN if any((name := _name(cell, arm)) and name in cell.arms for cell in run.cells)]


def _head(cell: Cell) -> str:
    return cell.name if cell.primary else f"{cell.name} (secondary)"


def times(run: Run) -> str:
    """Milliseconds, medians."""
    shown = (*ALONE, "sequential", PLAIN, PRIORITY, DEFAULT)
    rows = []
    for cell in _in_order(run):
        found = {arm: f"{cell.arms[arm].median:.3f}" for arm in shown if arm in cell.arms}
        ideal = NOTHING if cell.ideal is None else f"{cell.ideal:.3f}"
        values = [found.get(arm, NOTHING) for arm in shown]
        rows.append((_head(cell), *values[:2], ideal, *values[2:]))
    return table(("cell", *ALONE, "ideal", *(code(arm) for arm in shown[2:])), rows)


def shares(run: Run) -> str:
    """Per cent of the ideal."""
    chosen = _main(run)
    rows = []
    for cell in _in_order(run):
        found = [(_name(cell, arm), arm) for arm in chosen]
        rows.append((_head(cell), *(_shown_share(cell, name, arm) for name, arm in found)))
    return table(("cell", *map(code, chosen)), rows)


def _shown_share(cell: Cell, name: str | None, arm: str) -> str:
    share = cell.share(name) if name else None
    if share is None:
        return NOTHING
    return f"{round(share)}{f' (`{name}`)' if name != arm else ''}"


def stretches(run: Run) -> str | None:
    """Of computation / of communication; None where no arm tells the parts apart."""
    chosen = _main(run)
    rows = []
    for cell in _in_order(run):
        found = [tuple(_stretch(cell, _name(cell, arm), part) for part in ALONE) for arm in chosen]
        if any(one != (NOTHING, NOTHING) for one in found):
            rows.append((_head(cell), *(" / ".join(one) if one[0] != one[1] else one[0] for one in found)))
    return table(("cell", *map(code, chosen)), rows) if rows else None


def _stretch(cell: Cell, name: str | None, part: str) -> str:
    value = cell.stretch(name, part) if name else None
    return NOTHING if value is None else f"{value:.2f}"


# ---- Sensitivity ----


def title(curve: Curve) -> str:
    return f"{curve.kernel} beside {curve.communication}"


def sizes(curve: Curve) -> str:
    """A row for each number of resident blocks."""
    first = curve.points[0]
    rows = []
    for resident, group in groupby(curve.points, key=lambda point: point.resident):
        points = list(group)
        mark = ""
        if curve.dynamic is not None and points[0].dynamic <= curve.dynamic <= points[-1].dynamic:
            mark = f" ← {curve.control}"
        rows.append(
            (
                f"{' to '.join(dict.fromkeys(f'{point.dynamic:,}' for point in (points[0], points[-1])))}{mark}",
                str(resident),
                _range([_change(point.alone, first.alone) for point in points]),
                _range([_change(point.together, first.together) for point in points]),
                _waits(points),
            )
        )
    heads = ("dynamic bytes", "resident", "alone", "together with communication", "communication waits, us")
    return table(heads, rows)


def alone(run: Run) -> str:
    """Against as launched: the most resident blocks, and the carve-out that the driver chooses."""
    rows = []
    for kernel, group in groupby(run.alone, key=lambda one: one.kernel):
        found = list(group)
        first = found[0].default
        for one in found:
            changes = (_range([_change(value, first)]) for value in (one.default, one.largest))
            rows.append((kernel, str(one.resident), *changes))
    return table(("kernel", "resident", "carve-out of the driver's choice", "largest carve-out"), rows)


def held(run: Run) -> str:
    """Times over that without communication."""
    first = run.held[0].whole
    rows = [(str(one.blocks), *(_times(times, first) for times in (one.whole, one.fewer))) for one in run.held]
    return table(("resident blocks of communication", "whole grid", "grid that leaves as many multiprocessors"), rows)


def _times(found: Sequence[float], first: Sequence[float]) -> str:
    return f"{statistics.median(found) / statistics.median(first):.2f}" if found and first else NOTHING


def _change(value: float | None, first: float | None) -> float | None:
    return None if value is None or first is None else 100 * (value / first - 1)


def _range(values: Iterable[float | None]) -> str:
    found = sorted(value for value in values if value is not None)
    if not found:
        return NOTHING
    least, most = percent(found[0]), percent(found[-1])
    return least if least == most else f"{least} to {most}"


def _waits(points: Sequence[Point]) -> str:
    found = [point.wait_us for point in points if point.wait_us is not None]
    return f"{statistics.median(found):,.0f}" if found else NOTHING
