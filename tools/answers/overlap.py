"""The overlap suite: cells of computation and communication under every arm, on H200 and on the simulated GPU."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from scipy.stats import spearmanr

from tools.answers import suite
from tools.answers.comparing import BOUND_PERCENT, Against, against, interval, rows_of
from tools.answers.intervals import FEWEST, bootstrap
from tools.answers.suite import ALONE, DEFAULT, PLAIN, PRIORITY, SIMULATED, Cell, Run
from tools.answers.table import MISSING, Table, Value, percent, rounded

SETS = {
    "overlap-two-gpus": "two GPUs, NCCL",
    "overlap-libraries": "one GPU, NCCL to itself",
    "overlap-standins": "one GPU, stand-ins",
}
OBSERVE = "policy:observe"
SHOWN = {
    OBSERVE: "noise: `observe`",
    DEFAULT: "the default policy",
    PRIORITY: "priority alone",
    "policy:h200-paper": "the published method",
    "order+priority": "collective launched first and raised",
}


def runs(root: Path) -> dict[str, Run]:
    """One measured run for each set."""
    return {name: suite.read(root, name).runs[0] for name in SETS}


def kernels(root: Path) -> Table:
    """Change of the primary cells against plain streams: worst, median, best."""
    found = runs(root)
    rows = [
        [words, *(_spread(against(run.primary, arm, PLAIN)) for run in found.values())] for arm, words in SHOWN.items()
    ]
    return Table(("worst, median, best of 24 cells, %", *SETS.values()), rows)


def _spread(found: Against | None) -> str:
    if found is None:
        return MISSING
    return ", ".join(percent(value) for value in (found.worst.median, found.median, found.best.median))


def losses(root: Path) -> Table:
    """The default policy against plain streams in every cell of a set."""
    rows: list[list[Value]] = []
    for name, run in runs(root).items():
        found = against(run.cells, DEFAULT, PLAIN)
        if found is None:
            continue
        sure = sum(change.loss == 1 for change in found.changes)
        row: list[Value] = [SETS[name], len(found.changes), sure, len(found.unbounded)]
        others = [_of(found.worst.cell, arm) for arm in (OBSERVE, PRIORITY)]
        rows.append([*row, f"{found.worst.cell.name}: {interval(found.worst)}", *others])
    bound = f"{BOUND_PERCENT:g} %"
    heads = ("set", "cells", f"lose over {bound}, sure", "not ruled out", "worst cell, % (95 % interval)")
    return Table((*heads, "noise there, %", "priority there, %"), rows)


def _of(cell: Cell, arm: str) -> str:
    found = against([cell], arm, PLAIN)
    return MISSING if found is None else percent(found.worst.median)


def lost(root: Path) -> Table:
    """Cells in which the default policy loses more than the bound by its median."""
    rows: list[list[Value]] = []
    for name, run in runs(root).items():
        found = against(run.cells, DEFAULT, PLAIN)
        for change in reversed(found.changes if found else ()):
            if change.median > BOUND_PERCENT:
                verdict = {1: "sure", 0: "open", -1: "ruled out"}[change.loss]
                numbers = (rounded(value) for value in (change.median, change.low, change.high))
                rows.append([name, change.cell.name, *numbers, change.rounds, verdict])
    heads = ("set", "cell", "change_percent", "low", "high", "rounds", f"loss_over_{BOUND_PERCENT:g}_percent")
    return Table(heads, rows)


# ---- Every cell ----

CELLS = (
    *("set", "cell", "primary", "arm", "rounds", "ms", "vs_plain_percent", "low", "high", "vs_priority_percent"),
    *("share_of_ideal_percent", "stretch_computation", "stretch_communication", "wait_us"),
)


def every_cell(root: Path) -> Table:
    rows: list[list[Value]] = []
    for name, run in runs(root).items():
        for arm in run.arms():
            cells = [cell for cell in run.cells if arm in cell.arms]
            ends = dict(_intervals(rows_of(cells, arm, PLAIN))) if arm not in ALONE else {}
            rows += [[name, *_row(cell, arm, ends.get(cell.name, (None, None)))] for cell in cells]
    order = {cell.name: at for run in runs(root).values() for at, cell in enumerate(run.cells)}
    return Table(CELLS, sorted(rows, key=lambda row: (list(SETS).index(str(row[0])), order[str(row[1])])))


def _intervals(found: Iterable[tuple[Cell, str, list[float]]]) -> Iterator[tuple[str, tuple[float, float]]]:
    kept = [(cell, ratios) for cell, _, ratios in found if len(ratios) >= FEWEST]
    if kept:
        for (cell, _), (low, high) in zip(kept, bootstrap([ratios for _, ratios in kept]).interval()):
            yield cell.name, (100 * (low - 1), 100 * (high - 1))


def _row(cell: Cell, arm: str, ends: tuple[float | None, float | None]) -> list[Value]:
    one = cell.arms[arm]
    wait = statistics.median(one.wait_us) if one.wait_us else None
    row: list[Value] = [cell.name, int(cell.primary), arm, len(one.ms), rounded(one.median, 4)]
    if arm in ALONE:
        return [*row, *[None] * 8]
    row += [rounded(value) for value in (cell.change(arm, PLAIN), *ends, cell.change(arm, PRIORITY))]
    row += [rounded(cell.share(arm), 1)]
    return [*row, *(rounded(cell.stretch(arm, part), 3) for part in ALONE), rounded(wait, 1)]


def curves(root: Path) -> Table:
    """Time against dynamic shared memory."""
    rows: list[list[Value]] = []
    for name, run in runs(root).items():
        for curve in run.curves:
            for point in curve.points:
                row: list[Value] = [name, curve.kernel, curve.communication, point.dynamic, point.resident]
                rows.append([*row, rounded(point.alone, 4), rounded(point.together, 4), rounded(point.wait_us, 1)])
    heads = ("set", "kernel", "communication", "dynamic_bytes", "resident", "alone_ms", "together_ms", "wait_us")
    return Table(heads, rows)


# ---- The simulated GPU against the real one ----


def model(root: Path) -> Table:
    """Of T of an arm over T of plain, in the primary cells that both have."""
    measured = {cell.name: cell for run in runs(root).values() for cell in run.primary}
    rows: list[list[Value]] = []
    for run in suite.read(root, SIMULATED).runs:
        pairs = list(_pairs(run, measured))
        error = statistics.fmean(100 * abs(simulated - real) for simulated, real in pairs)
        rank = float(spearmanr(*zip(*pairs)).statistic)
        rows.append([run.rule, len(pairs), rounded(error, 1), rounded(rank)])
    return Table(("simulated_under", "ratios", "mean_absolute_error_points", "rank_correlation"), rows)


def _pairs(run: Run, measured: dict[str, Cell]) -> Iterator[tuple[float, float]]:
    for cell in run.primary:
        other = measured.get(cell.name)
        for arm in other.arms if other else ():
            ratios = [one.ratios(arm, PLAIN) for one in (cell, other) if one]
            if arm not in (*ALONE, PLAIN) and all(ratios):
                simulated, real = map(statistics.median, ratios)
                yield simulated, real
