"""Compare arms by their runs: which is faster, by how much, and how sure that is. Pure.

Arms are compared within rounds, so that what drifts from round to round cancels out: the figure of a round is the
logarithm of one arm's run over another's (of two runs in a round, the mean of their logarithms). The change is the mean
over the rounds, and its interval is Student's: mean -+ t * s * sqrt(f / n).

    n    rounds in which both arms ran
    f    1 / (runs of one arm in a round) + 1 / (runs of the other): 1.5 against an arm that runs twice
    s    deviation of one run: from the figures and from the pairs of equal runs together, or from the figures alone
         where that is larger, so that a few figures that agree by chance are not taken for certainty
    t    Student's t with n - 1 + pairs degrees of freedom, at the level of this look

The level shares WRONG out over all arms and looks: look k (the first is after ROUNDS rounds) takes 1 / (k (k + 1)) of
an arm's part, and these fractions add up to 1. tools/bench/tune.py measures how often the answer is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple

WRONG = 0.01  # how often "faster" may be said of an arm that is not, in one search
ROUNDS = 3  # before the first look

Round = tuple[int, int]  # of a stage, and its number there
Figures = Mapping[Round, Sequence[float]]  # logarithms of an arm's runs; less is better
Arms = Mapping[str, Figures]


class Change(NamedTuple):
    """Of one arm against another, as logarithms of a ratio; negative is better."""

    low: float
    middle: float
    high: float


def level(look: int, arms: int) -> float:
    """Return the chance of error of one interval. arms: that are compared with bare in the whole search."""
    return WRONG / arms / (look * (look + 1))


def change(arms: Arms, one: str, other: str, chance: float) -> Change | None:
    """Return the change from `other` to `one`; None for fewer than two rounds in which both ran."""
    both = sorted(arms[one].keys() & arms[other].keys())
    if len(both) < 2:
        return None
    found = [fmean(arms[one][at]) - fmean(arms[other][at]) for at in both]
    factor = fmean(1 / len(arms[one][at]) + 1 / len(arms[other][at]) for at in both)
    middle, pairs = fmean(found), _pairs(arms)
    own = sum((figure - middle) ** 2 for figure in found) / factor
    free = len(both) - 1
    together = (own + sum(pair * pair for pair in pairs) / 2) / (free + len(pairs))
    half = student(chance, free + len(pairs)) * math.sqrt(max(own / free, together) * factor / len(both))
    return Change(middle - half, middle, middle + half)


def noise(arms: Arms) -> float | None:
    """Return by how much two equal runs of a round differ: the median, as a logarithm. None: there is no pair."""
    pairs = [abs(pair) for pair in _pairs(arms)]
    return median(pairs) if pairs else None


def _pairs(arms: Arms) -> list[float]:
    return [runs[0] - runs[1] for figures in arms.values() for runs in figures.values() if len(runs) == 2]


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
