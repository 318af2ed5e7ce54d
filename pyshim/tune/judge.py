"""Compare arms by their runs: which is faster, by how much, and how sure that is. Pure.

Arms are compared within rounds, so that what drifts from round to round cancels out: the logarithm of a run is its
arm's, plus its round's, plus noise, and least squares fit the arms and the rounds to all runs of a search. The change
of an arm is its fitted difference from another. Its interval is Student's: change -+ t * s * sqrt(f).

    f    the variance that the fit has for a noise of 1: 2 / n for two arms that ran in the same n rounds
    s    deviation of one run, by how much each arm's runs differ from the arm's run before: drift over many runs counts
         little. Of two arms that scatter more than the others, theirs. While an arm has fewer than ROUNDS runs, at
         least FLOOR: two or three runs may agree by chance
    t    Student's t at the level of this look; the degrees of freedom are those of successive differences

"Sure" means: in at most 1 search of 100 (WRONG) an arm is called faster that is not, or none although one is. The level
shares WRONG out over all arms and looks: look k takes 1 / (k (k + 1)) of an arm's part, and these fractions add up to
1. tools/bench/tune.py measures how often the answer is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

WRONG = 0.01  # how often a search may be sure of something that is not so
ROUNDS = 4  # runs of an arm from which on its own noise counts, however small
FLOOR = 0.01  # noise before that
FAR = 20  # times the noise: so much slower in a single round is slower for sure

Round = tuple[int, int]  # of a stage, and its number there
Figures = Mapping[Round, Sequence[float]]  # logarithms of an arm's runs; less is better
Arms = Mapping[str, Figures]


class Change(NamedTuple):
    """Of one arm against another, as logarithms of a ratio; negative is better."""

    low: float
    middle: float
    high: float


def level(look: int, arms: int) -> float:
    """Return the chance that an interval lies wholly beside the truth, on the side that is looked at.

    arms: that are compared with bare in the whole search."""
    return WRONG / arms / (look * (look + 1))


class Fit:
    """Arms and rounds, fitted to all runs."""

    def __init__(self, arms: Arms) -> None:
        self.runs = {name: sum(map(len, figures.values())) for name, figures in arms.items()}
        self.names = [name for name, runs in self.runs.items() if runs]
        self.inverse, self.effects = _least_squares(arms, self.names)
        self.at = {name: at for at, name in enumerate(self.names)}
        self.successive = {name: _successive(_in_order(figures)) for name, figures in arms.items()}
        self.variance, self.free = _together(self.successive.values())

    def middle(self, one: str, other: str) -> float | None:
        """Return the change from `other` to `one`; None where no chain of rounds joins them."""
        factor = self._factor(one, other)
        return None if factor is None else self._effect(one) - self._effect(other)

    def change(self, one: str, other: str, chance: float) -> Change | None:
        """Return the change from `other` to `one`. None while the noise is unknown, or no round joins them."""
        error, middle = self.error(one, other), self.middle(one, other)
        if error is None or middle is None or self.free < 1:
            return None
        half = student(2 * chance, self.free) * error
        return Change(middle - half, middle, middle + half)

    def error(self, one: str, other: str) -> float | None:
        """Return the standard error of the change from `other` to `one`; None where no chain of rounds joins them."""
        factor = self._factor(one, other)
        if factor is None:
            return None
        # Of two arms that scatter more than all arms do together, their own noise counts.
        noise = math.sqrt(max(self.variance, _together([self.successive[one], self.successive[other]])[0]))
        if min(self.runs[one], self.runs[other]) < ROUNDS:
            noise = max(noise, FLOOR)
        return noise * math.sqrt(factor)

    def _effect(self, name: str) -> float:
        return self.effects[self.at[name]]

    def _factor(self, one: str, other: str) -> float | None:
        if one not in self.at or other not in self.at:
            return None
        i, j = self.at[one], self.at[other]
        factor = self.inverse[i][i] + self.inverse[j][j] - 2 * self.inverse[i][j]
        return factor if 0 < factor < _UNJOINED else None


_UNJOINED = 1e6  # a variance of arms that no round joins
_RIDGE = 1e-9  # what only differences determine is kept near 0


def _least_squares(arms: Arms, names: Sequence[str]) -> tuple[list[list[float]], list[float]]:
    """Return the covariance of the arms' effects for a noise of 1, and the effects. Rounds are eliminated."""
    count = len(names)
    matrix = [[_RIDGE * (i == j) for j in range(count)] for i in range(count)]
    right = [0.0] * count
    rounds = {at for name in names for at in arms[name]}
    for at in rounds:
        here = [(i, arms[name][at]) for i, name in enumerate(names) if at in arms[name]]
        total = sum(len(runs) for _, runs in here)
        mean = sum(sum(runs) for _, runs in here) / total
        for i, runs in here:
            right[i] += sum(runs) - len(runs) * mean
            matrix[i][i] += len(runs)
            for j, others in here:
                matrix[i][j] -= len(runs) * len(others) / total
    inverse = _inverted(matrix)
    return inverse, [sum(a * b for a, b in zip(row, right)) for row in inverse]


def _inverted(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the inverse of a symmetric positive matrix, by Gauss and Jordan."""
    count = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(count))] for i, row in enumerate(matrix)]
    for at in range(count):
        pivot = max(range(at, count), key=lambda i: abs(rows[i][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        scale = rows[at][at]
        rows[at] = [value / scale for value in rows[at]]
        for i in range(count):
            if i != at and rows[i][at]:
                factor = rows[i][at]
                rows[i] = [value - factor * own for value, own in zip(rows[i], rows[at])]
    return [row[count:] for row in rows]


class _Successive(NamedTuple):
    """Of one or more arms: squares of successive differences, and what their degrees of freedom follow from."""

    squares: float
    number: int
    spread: int


def _successive(runs: Sequence[float]) -> _Successive:
    squares = [(b - a) ** 2 / 2 for a, b in zip(runs, runs[1:])]
    return _Successive(sum(squares), len(squares), 3 * len(runs) - 4 if squares else 0)


def _together(parts: Iterable[_Successive]) -> tuple[float, int]:
    """Return the variance by successive differences, and its degrees of freedom; 0 for none.

    Neighbouring differences share a run: of n runs they have 2 (n - 1)^2 / (3 n - 4) degrees of freedom."""
    found = list(parts)
    number = sum(part.number for part in found)
    if not number:
        return 0.0, 0
    return sum(part.squares for part in found) / number, int(2 * number**2 / sum(part.spread for part in found))


def _in_order(figures: Figures) -> list[float]:
    return [run for at in sorted(figures) for run in figures[at]]


def noise(arms: Arms) -> float | None:
    """Return by how much two successive runs of an arm differ: the median, as a logarithm. None: there are none."""
    series = [_in_order(figures) for figures in arms.values()]
    found = [abs(b - a) for runs in series for a, b in zip(runs, runs[1:])]
    return median(found) if found else None


@lru_cache(maxsize=4096)
def student(chance: float, free: int) -> float:
    """Return what |t| exceeds with this chance, by bisection. free: degrees of freedom."""
    low, high = 0.0, 1.0
    while _beyond(high, free) > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, free) > chance else (low, middle)
    return high


def _beyond(t: float, free: int) -> float:
    """Return the chance that |t| is larger: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(free))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = free % 2
    term = total = (cosine if odd else 1.0) if free > 1 else 0.0
    for at in range(2 if odd else 1, free - 1, 2):
        term *= at / (at + 1) * cosine * cosine
        total += term
    return 1 - (2 / math.pi * (angle + sine * total) if odd else sine * total)
