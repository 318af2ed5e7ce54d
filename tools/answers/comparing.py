"""Arms of the overlap suite against another arm: changes of cells, with intervals and corrected verdicts."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional

from arms import blocks_of

from answers.intervals import FEWEST, bootstrap, verdicts
from answers.markdown import percent
from answers.suite import ALONE, PLAIN, PRIORITY, Cell, Run

BOUND_PERCENT = 1.0  # of facts/scheduling.md 7.1: what the default may cost at most
RAISE = "policy:raise"  # priority alone, behind overlap-run
SHAPING_POLICY = re.compile(r"policy:(h200-paper|make-room|quick-entry|blocks-\d+)")  # all of them with priority
ANCHORS = ("copy-engine", "memcpy")  # the same bytes, without a kernel of the program
# What a program or a user can set: not the anchors, nor what only counts.
NOT_CONTROLS = (*ALONE, "sequential", PLAIN, *ANCHORS, "policy:observe")


@dataclass(frozen=True)
class Change:
    """Of T in a cell, per cent; negative is faster."""

    cell: Cell
    arm: str
    median: float
    low: float
    high: float
    verdict: int  # -1 surely faster, 1 surely slower, 0 no difference shown; corrected over the cells of the arm


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
        """Cells in which a loss above the bound cannot be ruled out, from the least sure."""
        found = [change for change in self.changes if change.high > BOUND_PERCENT]
        return sorted(found, key=lambda change: -change.high)


Pick = Callable[[Cell], Optional[str]]


def against(
    cells: Iterable[Cell], arm: str, base: str | Pick, least: float = 0.0, most: float = 0.0, pick: Pick | None = None
) -> Against | None:
    """None: no cell has both arms, with rounds enough. A verdict is that of a change below least or above most, in per
    cent. pick: which arm of a cell is meant, where `arm` is only a word for several; base may be such, too.
    """
    rows = []
    for cell in cells:
        one, other = arm if pick is None else pick(cell), base if isinstance(base, str) else base(cell)
        ratios = cell.ratios(one, other) if one and other else []
        if one and len(ratios) >= FEWEST:
            rows.append((cell, one, ratios))
    if not rows:
        return None
    found = bootstrap([ratios for *_, ratios in rows])
    sides = verdicts(found, 1 + least / 100, 1 + most / 100)
    changes = [
        Change(cell, one, 100 * (float(median) - 1), 100 * (low - 1), 100 * (high - 1), side)
        for (cell, one, _), median, (low, high), side in zip(rows, found.medians, found.interval(), sides)
    ]
    return Against(arm, tuple(sorted(changes, key=lambda change: change.median)))


def shapes(cell: Cell, priority: bool) -> list[str]:
    """The arms that set a number of resident blocks, with priority or without."""
    return [arm for arm in cell.arms if blocks_of(arm) is not None and arm.endswith("+priority") is priority]


def shaping_policies(cell: Cell) -> list[str]:
    return [arm for arm in cell.arms if SHAPING_POLICY.fullmatch(arm)]


def controls(run: Run) -> list[str]:
    return [arm for arm in run.arms() if arm not in NOT_CONTROLS]


def interval(change: Change) -> str:
    return f"{percent(change.median)} ({percent(change.low)} to {percent(change.high)})"


def fastest(cell: Cell, arms: Iterable[str]) -> str | None:
    """By the median of T; chosen by the same samples that it is then judged by, which flatters it."""
    there = [arm for arm in arms if arm in cell.arms]
    return min(there, key=lambda arm: cell.arms[arm].median) if there else None


def raised(cell: Cell) -> str | None:
    """What shaping with priority is held against: priority alone, in a process like the policies' if there is one."""
    return next((arm for arm in (RAISE, PRIORITY) if arm in cell.arms), None)
