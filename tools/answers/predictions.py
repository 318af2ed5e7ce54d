"""The predictions declared in tools/gpu/overlap/README.md before the stand-ins were measured, and what came of them.

A prediction about times has held if every change that it is about is surely inside its limits, and has failed if one
is surely outside (P3: with its share of the cells), by sign tests corrected over all arms and cells of the prediction.
Else it is open. Cells and arms are chosen by kernel and pattern, never by their results. P5 counts single runs; P6
compares two medians.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path

from tools.answers import comparing, gpu, intervals, suite
from tools.answers.comparing import family, rows_of
from tools.answers.suite import PLAIN, PRIORITY, Cell
from tools.answers.table import Table, Value

HELD, FAILED, OPEN = "held", "failed", "open"
SET = "overlap-standins"
UNCHANGED_PERCENT = 0.5  # P1
TWICE, TWICE_BESIDE = (1.8, 2.1), 24  # P2: times, blocks of communication
MOST_OF_THE_TIME = 0.9  # P2: communication is there while the kernel runs
SHARE_OF_CELLS, BETTER_PERCENT = 0.9, 1.0  # P3
POINTS = 2.0  # P4
GAIN_PERCENT = 2.0  # P7
GEMM = re.compile(r"gemm|matmul|product|tiled|cutlass|cublas|triton|tensor\d", re.IGNORECASE)
COMMUNICATION_FIRST = ("order", "order+priority")
STRETCHED = "order+priority"  # P2


@dataclass(frozen=True)
class Found:
    tested: int
    inside: int  # surely
    outside: int  # surely
    verdict: str


def _found(tested: int, inside: int, outside: int) -> Found:
    return Found(tested, inside, outside, FAILED if outside else HELD if inside == tested > 0 else OPEN)


def _standins(root: Path) -> suite.Suite:
    return suite.read(root, SET)


def _cells(root: Path) -> tuple[Cell, ...]:
    return _standins(root).runs[0].cells


def _one_block(root: Path, cell: Cell) -> bool:
    """Is one block of the kernel resident as launched? Then no size leaves fewer."""
    return _standins(root).kernels.get(cell.computation, {}).get("resident_blocks") == 1


def _words(root: Path, cell: Cell) -> str:
    kernel = _standins(root).kernels.get(cell.computation, {})
    return " ".join(str(word) for word in (cell.computation, kernel.get("symbol", ""), kernel.get("what", "")))


def one_block_is_left_alone(root: Path) -> Found:
    cells = [cell for cell in _cells(root) if _one_block(root, cell)]
    rows = [
        (cell, arm, cell.ratios(arm, base))
        for cell in cells
        if (base := comparing.raised(cell))
        for arm in comparing.shaping_policies(cell)
    ]
    found = family("shaping", rows, -UNCHANGED_PERCENT, UNCHANGED_PERCENT)
    changes = found.changes if found else ()
    return _found(len(changes), sum(one.inside for one in changes), sum(one.verdict != 0 for one in changes))


def persistent_takes_twice(root: Path) -> Found:
    cells = [cell for cell in _cells(root) if cell.pattern == "one" and "persistent" in _words(root, cell).lower()]
    rows = [own for cell in cells if _stays(cell) and (own := cell.stretches(STRETCHED, "computation"))]
    times = {held.blocks: held.whole for held in _standins(root).runs[0].held}
    rows += [[beside / alone for beside, alone in zip(times.get(TWICE_BESIDE, ()), times.get(0, ()))]]
    rows = [row for row in rows if row]
    return _found(
        len(rows), sum(intervals.inside(rows, *TWICE)), sum(one != 0 for one in intervals.verdicts(rows, *TWICE))
    )


def _stays(cell: Cell) -> bool:
    """Is communication there while the kernel runs?"""
    if not {"communication", "computation"} <= cell.arms.keys():
        return False
    return cell.arms["communication"].median >= MOST_OF_THE_TIME * cell.arms["computation"].median


def shaping_adds_nothing_to_priority(root: Path) -> Found:
    """Counts cells. Said of `hold`."""
    cells = [cell for cell in _cells(root) if cell.primary and PRIORITY in cell.arms]
    fixed = sum(_one_block(root, cell) and not comparing.shapes(cell, True) for cell in cells)
    rows = [row for cell in cells for arm in comparing.shapes(cell, True) for row in rows_of([cell], arm, PRIORITY)]
    found = family("shaping with priority", rows, -BETTER_PERCENT, inf)
    by: dict[str, list[comparing.Change]] = {}
    for change in found.changes if found else ():
        by.setdefault(change.cell.name, []).append(change)
    surely = sum(any(one.verdict < 0 for one in own) for own in by.values())
    none, every = fixed + sum(all(one.inside for one in own) for own in by.values()), fixed + len(by)
    if not every or gpu.rule(root) != "hold":
        return Found(every, none, surely, OPEN)
    failed, held = (every - surely) / every < SHARE_OF_CELLS, none / every >= SHARE_OF_CELLS
    return Found(every, none, surely, FAILED if failed else HELD if held else OPEN)


def order_is_as_good_as_shaping(root: Path) -> Found:
    """Inside: one order is surely at most POINTS behind every shape. Outside: every order is surely behind one."""
    found: list[tuple[str, str, str, list[float]]] = []
    for cell in (cell for cell in _cells(root) if cell.pattern == "pairs" and "sequential" in cell.arms):
        shaped = [*comparing.shapes(cell, False), *comparing.shapes(cell, True), *comparing.shaping_policies(cell)]
        for order, shape in product((arm for arm in COMMUNICATION_FIRST if arm in cell.arms), shaped):
            times = zip(cell.arms[order].ms, cell.arms[shape].ms, cell.arms["sequential"].ms)
            found.append((cell.name, order, shape, [100 * (one - other) / all_ for one, other, all_ in times]))
    rows = [points for *_, points in found]
    behind, near = intervals.verdicts(rows, -inf, POINTS), intervals.inside(rows, -inf, POINTS)
    by: dict[str, dict[str, list[tuple[bool, bool]]]] = {}
    for (cell_name, order, *_), one, other in zip(found, near, behind):
        by.setdefault(cell_name, {}).setdefault(order, []).append((one, other == 1))
    inside = sum(any(all(is_near for is_near, _ in own) for own in orders.values()) for orders in by.values())
    outside = sum(all(any(is_behind for _, is_behind in own) for own in orders.values()) for orders in by.values())
    return _found(len(by), inside, outside)


def sharing_is_arithmetic(root: Path) -> Found:
    found = gpu.neighbours(root)
    wrong = sum(one.shared and not one.sum_fits for one in found)
    return _found(len(found), len(found) - wrong, wrong)


def clusters_wait_longer(root: Path) -> Found:
    """Said of `backfill`."""
    waits = [
        statistics.median(gpu.variants(root)[f"stream priority, 64 blocks like NCCL's{clusters}"]["wait_last_us"])
        for clusters in ("", ", clusters of 4")
    ]
    longer = waits[1] > waits[0]
    verdict = OPEN if gpu.rule(root) != "backfill" else HELD if longer else FAILED
    return Found(1, int(longer), int(not longer), verdict)


def shaping_alone_gains_nothing(root: Path) -> Found:
    cells = [cell for cell in _cells(root) if GEMM.search(_words(root, cell))]
    rows = [row for cell in cells for arm in comparing.shapes(cell, False) for row in rows_of([cell], arm, PLAIN)]
    found = family("shaping", rows, -GAIN_PERCENT, inf)
    changes = found.changes if found else ()
    return _found(len(changes), sum(one.inside for one in changes), sum(one.verdict < 0 for one in changes))


PREDICTIONS: dict[str, Callable[[Path], Found]] = {
    "P1: shaping changes kernels of one resident block by less than 0.5 %": one_block_is_left_alone,
    "P2: 24 resident blocks of communication stretch a persistent kernel 1.8 to 2.1 times": persistent_takes_twice,
    "P3: under hold, in 90 % of cells no shape beats priority by 1 %": shaping_adds_nothing_to_priority,
    "P4: in pairs, communication first is at most 2 points behind the best shape": order_is_as_good_as_shaping,
    "P5: blocks share a multiprocessor only if their sum fits": sharing_is_arithmetic,
    "P6: under backfill, clusters of four enter later than single blocks": clusters_wait_longer,
    "P7: shaping without priority never gains over 2 % for matrix products": shaping_alone_gains_nothing,
}


def table(root: Path) -> Table:
    rows: list[list[Value]] = []
    for words, function in PREDICTIONS.items():
        found = function(root)
        rows.append([words, found.tested, found.inside, found.outside, found.verdict])
    return Table(("prediction", "tested", "surely_inside", "surely_outside", "outcome"), rows)
