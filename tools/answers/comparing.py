"""Arms of the overlap suite against another arm: changes of cells, with intervals, and verdicts of sign tests."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

from arms import blocks_of

from answers import intervals
from answers.intervals import FEWEST, bootstrap
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
    family: int  # so many were tested: more than there are changes, where the arm was chosen among several

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

    def too_few(self, sides: int) -> bool:
        """Rounds: whatever they had shown, of no cell anything could be sure."""
        return intervals.too_few(max(change.rounds for change in self.changes), self.family, sides)

    @property
    def unbounded(self) -> list[Change]:
        """Cells in which a loss above the bound is not ruled out, from the worst."""
        found = [change for change in self.changes if change.loss != -1]
        return sorted(found, key=lambda change: -change.high)


Row = tuple[Cell, str, list[float]]  # ratios of an arm's rounds
Pick = Callable[[Cell], Optional[str]]
Choice = Callable[[Cell], Sequence[str]]  # several arms, of which the fastest is meant


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
    return Against(name, tuple(sorted(changes, key=lambda change: change.median)), len(changes))


def against(cells: Iterable[Cell], arm: str, base: str | Pick, choice: Choice | None = None) -> Against | None:
    """None: no cell has both arms, with rounds enough. choice: `arm` is only a word, and of each cell the fastest of
    several arms is meant: all of them are tested, so that what is sure of the chosen one is sure.
    """
    chosen, rows = set(), []
    for cell in cells:
        candidates = [arm] if choice is None else list(choice(cell))
        other = base if isinstance(base, str) else base(cell)
        rows += [(cell, one, cell.ratios(one, other)) for one in candidates if other]
        chosen.add((cell.name, fastest(cell, candidates)))
    found = family(arm, rows)
    kept = tuple(change for change in found.changes if (change.cell.name, change.arm) in chosen) if found else ()
    return Against(arm, kept, found.family) if found and kept else None


def shapes(cell: Cell, priority: bool) -> list[str]:
    """The arms that set a number of resident blocks, with priority or without."""
    return [arm for arm in cell.arms if blocks_of(arm) is not None and arm.endswith("+priority") is priority]


def shaping_policies(cell: Cell) -> list[str]:
    return [arm for arm in cell.arms if SHAPING_POLICY.fullmatch(arm)]


def controls(run: Run) -> list[str]:
    return [arm for arm in run.arms() if arm not in NOT_CONTROLS]


TOO_FEW = "too few rounds to be sure"


def counts(found: Against) -> str:
    """Cells that are surely better, neither, surely worse."""
    return TOO_FEW if found.too_few(2) else f"{found.count(-1)}, {found.count(0)}, {found.count(1)}"


def interval(change: Change) -> str:
    return f"{percent(change.median)} ({percent(change.low)} to {percent(change.high)})"


def fastest(cell: Cell, arms: Iterable[str]) -> str | None:
    """By the median of T; chosen by the same samples that its change is shown of, which flatters that."""
    there = [arm for arm in arms if arm in cell.arms]
    return min(there, key=lambda arm: cell.arms[arm].median) if there else None


def raised(cell: Cell) -> str | None:
    """What shaping with priority is held against: priority alone, in a process like the policies' if there is one."""
    return next((arm for arm in (RAISE, PRIORITY) if arm in cell.arms), None)
