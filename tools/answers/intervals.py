"""How sure are we? 95 % intervals of medians by the bootstrap, to be shown; exact sign tests, to decide.

The interval is the BCa one (Efron 1987: bias-corrected and accelerated) of the median of samples of one row, from
10,000 resamples; it is what `scipy.stats.bootstrap` answers for sorted rows, number by number (tests/answers), found
by looking up: which two sorted samples have the median in their middle does not depend on their values, so all rows of
equal length share the draws. That makes hundreds of rows a matter of a second, and a row's interval its own affair.

It never leaves the range of its samples, however high its level: with few samples, intervals at corrected levels err
far more often than they say. So what is sure is decided by sign tests, whose error is known for any number of samples
of any distribution: were the median not below a bound, k of n samples below it would be as probable as k heads of n
coins, at most. Samples on the bound speak for nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 1
FEWEST = 5  # samples; with fewer there is no interval to show


@dataclass(frozen=True)
class Bootstrap:
    """Of the medians of rows; arrays have one element a row."""

    medians: Any
    _resampled: Any  # rows x RESAMPLES, each sorted
    _bias: Any  # z0
    _acceleration: Any

    def interval(self, level: float = LEVEL) -> list[tuple[float, float]]:
        """Lower and upper end by row."""
        ends = [self._quantile(self._bias + float(ndtri(tail))) for tail in ((1 - level) / 2, (1 + level) / 2)]
        return [(float(low), float(high)) for low, high in zip(*ends)]

    def _quantile(self, corrected: Any) -> Any:
        share = ndtr(self._bias + corrected / (1 - self._acceleration * corrected))
        places = share * (RESAMPLES - 1)
        below = np.floor(places).astype(int)
        above = np.minimum(below + 1, RESAMPLES - 1)
        rows = np.arange(len(places))
        low, high = self._resampled[rows, below], self._resampled[rows, above]
        return low + (high - low) * (places - below)


def bootstrap(rows: Sequence[Sequence[float]]) -> Bootstrap:
    """rows: at least FEWEST samples each."""
    if not rows or min(map(len, rows)) < FEWEST:
        raise ValueError(f"{min(map(len, rows), default=0)} samples")
    counts = np.array([len(row) for row in rows])
    medians, bias, acceleration = (np.empty(len(rows)) for _ in range(3))
    resampled = np.empty((len(rows), RESAMPLES))
    for count in set(counts.tolist()):
        at = np.flatnonzero(counts == count)
        samples = np.sort(np.array([rows[row] for row in at], dtype=float), axis=1)
        low, high = _middles(count)
        drawn = np.sort((samples[:, low] + samples[:, high]) / 2, axis=1)
        middle = np.median(samples, axis=1)
        under = (drawn < middle[:, None]).sum(axis=1) + (drawn <= middle[:, None]).sum(axis=1)
        medians[at], resampled[at], acceleration[at] = middle, drawn, _acceleration(samples)
        # A row of which hardly anything varies has no bias that could be told.
        bias[at] = ndtri(np.clip(under / (2 * RESAMPLES), 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    return Bootstrap(medians, resampled, bias, acceleration)


@functools.cache
def _middles(count: int) -> tuple[Any, Any]:
    """By resample: the places of the two sorted samples whose mean its median is."""
    drawn = np.sort(np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count)), axis=1)
    return drawn[:, (count - 1) // 2], drawn[:, count // 2]


def _acceleration(samples: Any) -> Any:
    """By the jackknife; 0 where it does not vary."""
    count = samples.shape[1]
    left_out = np.stack([np.median(np.delete(samples, at, axis=1), axis=1) for at in range(count)], axis=1)
    from_mean = left_out.mean(axis=1, keepdims=True) - left_out
    spread = (from_mean**2).sum(axis=1) ** 1.5
    return np.divide((from_mean**3).sum(axis=1), 6 * spread, out=np.zeros_like(spread), where=spread > 0)


# ---- Sign tests ----

Rows = Sequence[Sequence[float]]


def below(rows: Rows, bound: float) -> Any:
    """By row: how probable so many samples below the bound are at most, were the median not below it."""
    return _heads([(sum(value < bound for value in row), len(row)) for row in rows])


def above(rows: Rows, bound: float) -> Any:
    return _heads([(sum(value > bound for value in row), len(row)) for row in rows])


def _heads(counts: Sequence[tuple[int, int]]) -> Any:
    found, tossed = np.array(counts, dtype=int).reshape(-1, 2).T
    return binom.sf(found - 1, tossed, 0.5)


def sure(probabilities: Any, level: float = LEVEL) -> list[bool]:
    """By Holm's steps: which of all may be called sure, so that one of them is wrong with 1 - level at most."""
    found = [False] * len(probabilities)
    for place, row in enumerate(np.argsort(probabilities, kind="stable")):
        if probabilities[row] * (len(found) - place) > 1 - level:
            break
        found[row] = True
    return found


def verdicts(rows: Rows, least: float = 1.0, most: float = 1.0) -> list[int]:
    """By row: -1 the median is surely below `least`, 1 surely above `most`, 0 neither; all rows are one family. An
    infinite limit is not tested.
    """
    low, high = below(rows, least), above(rows, most)
    found = sure(np.minimum(1, tests(least, most) * np.minimum(low, high)))
    return [(-1 if one < other else 1) if is_sure else 0 for is_sure, one, other in zip(found, low, high)]


def inside(rows: Rows, least: float, most: float) -> list[bool]:
    """By row: the median is surely above `least` and below `most`; all rows are one family."""
    return sure(np.maximum(above(rows, least), below(rows, most)))


def tests(least: float, most: float) -> int:
    return max(1, int(np.isfinite(least)) + int(np.isfinite(most)))
