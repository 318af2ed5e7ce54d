"""Where the simulated GPU and the real one agree: T of an arm over T of plain, of the same cell, on either."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from answers.suite import ALONE, PLAIN, Run

# Of facts/scheduling.md 7.2.
MOST_ERROR, LEAST_RANK = 5.0, 0.8
FEWEST_RATIOS = 3


@dataclass(frozen=True)
class Ratio:
    cell: str
    arm: str
    simulated: float
    measured: float

    @property
    def error(self) -> float:
        """Points: per cent of T of plain."""
        return 100 * (self.simulated - self.measured)


@dataclass(frozen=True)
class Agreement:
    rule: str
    ratios: tuple[Ratio, ...]

    @property
    def error(self) -> float:
        """Mean absolute, in points."""
        return statistics.fmean(abs(ratio.error) for ratio in self.ratios)

    @property
    def rank(self) -> float | None:
        """Spearman's; None where one side does not vary."""
        sides = list(zip(*((ratio.simulated, ratio.measured) for ratio in self.ratios)))
        if len(self.ratios) < FEWEST_RATIOS or any(len(set(side)) == 1 for side in sides):
            return None
        return float(spearmanr(*sides).statistic)

    @property
    def good(self) -> bool:
        return self.error <= MOST_ERROR and (self.rank or 0) >= LEAST_RANK

    @property
    def farthest(self) -> list[Ratio]:
        return sorted(self.ratios, key=lambda ratio: -abs(ratio.error))


def compare(simulated: Run, measured: Iterable[Run]) -> Agreement | None:
    """Over the primary cells that both have, and the arms that both have there; None if there are none."""
    theirs = {cell.name: cell for cell in simulated.primary}
    ratios = []
    for cell in (cell for run in measured for cell in run.primary if cell.name in theirs):
        other = theirs[cell.name]
        for arm in cell.arms:
            pairs = [one.ratios(arm, PLAIN) for one in (other, cell)]
            if arm not in (*ALONE, PLAIN) and all(pairs):
                ratios.append(Ratio(cell.name, arm, *(statistics.median(pair) for pair in pairs)))
    return Agreement(str(simulated.rule), tuple(ratios)) if ratios else None


def best(agreements: Sequence[Agreement]) -> Agreement:
    return min(agreements, key=lambda one: one.error)
