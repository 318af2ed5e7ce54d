"""Arms of the overlap suite against another arm: changes of cells, with intervals, and verdicts of sign tests."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from tools.answers import intervals
from tools.answers.intervals import FEWEST, bootstrap
from tools.answers.suite import PRIORITY, Cell
from tools.answers.table import percent
from tools.gpu.overlap.arms import blocks_of

BOUND_PERCENT = 1.0  # what the default may cost at most
RAISE = "policy:raise"  # priority alone, behind overlap-run
SHAPING_POLICY = re.compile(r"policy:(h200-paper|make-room|blocks-\d+)")  # all of them with priority


@dataclass(frozen=True)
class Change:
    """Of T in a cell, per cent; negative is faster. What is sure is so with 95 % for all changes of its family."""

    cell: Cell
    arm: str
    median: float
    low: float  # of an interval that is not corrected
    high: float
    rounds: int
    verdict: int  # -1 surely below the limits, 1 surely above, 0 neither
    inside: bool  # surely between the limits
    loss: int  # of more than the bound: -1 ruled out, 1 sure, 0 neither; either is a family of its own


@dataclass(frozen=True)
class Against:
    """One arm against another over cells, sorted from the best to the worst."""

    arm: str
    changes: tuple[Change, ...]

    @property
    def best(self) -> Change:
        return self.changes[0]

    @property
    def worst(self) -> Change:
        return self.changes[-1]

    @property
    def median(self) -> float:
        return statistics.median(change.median for change in self.changes)

    def count(self, verdict: int) -> int:
        return sum(change.verdict == verdict for change in self.changes)

    @property
    def unbounded(self) -> list[Change]:
        """Cells in which a loss above the bound is not ruled out, from the worst."""
        found = [change for change in self.changes if change.loss != -1]
        return sorted(found, key=lambda change: -change.high)


Row = tuple[Cell, str, list[float]]  # ratios of an arm's rounds


def family(name: str, rows: Iterable[Row], least: float = 0.0, most: float = 0.0) -> Against | None:
    """Changes that are tested together; limits in per cent. None: no row has rounds enough."""
    kept = [row for row in rows if len(row[2]) >= FEWEST]
    if not kept:
        return None
    ratios = [row[2] for row in kept]
    found, bound = bootstrap(ratios), 1 + BOUND_PERCENT / 100
    limits = 1 + least / 100, 1 + most / 100
    changes = [
        Change(
            *(cell, arm, 100 * (float(median) - 1), 100 * (low - 1), 100 * (high - 1)),
            *(len(own), verdict, inside, int(lost) - int(ruled_out)),
        )
        for (cell, arm, own), median, (low, high), verdict, inside, lost, ruled_out in zip(
            *(kept, found.medians, found.interval()),
            *(intervals.verdicts(ratios, *limits), intervals.inside(ratios, *limits)),
            *(intervals.sure(test(ratios, bound)) for test in (intervals.above, intervals.below)),
        )
    ]
    return Against(name, tuple(sorted(changes, key=lambda change: change.median)))


def rows_of(cells: Iterable[Cell], arm: str, base: str) -> list[Row]:
    return [(cell, arm, cell.ratios(arm, base)) for cell in cells]


def against(cells: Iterable[Cell], arm: str, base: str) -> Against | None:
    """None: no cell has both arms, with rounds enough."""
    return family(arm, rows_of(cells, arm, base))


def shapes(cell: Cell, priority: bool) -> list[str]:
    """The arms that set a number of resident blocks, with priority or without."""
    return [arm for arm in cell.arms if blocks_of(arm) is not None and arm.endswith("+priority") is priority]


def shaping_policies(cell: Cell) -> list[str]:
    return [arm for arm in cell.arms if SHAPING_POLICY.fullmatch(arm)]


def interval(change: Change) -> str:
    return f"{percent(change.median)} ({percent(change.low)} to {percent(change.high)})"


def raised(cell: Cell) -> str | None:
    """What shaping with priority is held against: priority alone, in a process like the policies' if there is one."""
    return next((arm for arm in (RAISE, PRIORITY) if arm in cell.arms), None)
