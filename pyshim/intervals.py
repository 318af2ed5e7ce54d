"""Confidence intervals by Student's t, of means and differences of means of values that may be autocorrelated.

Steps of a run drift, warm up and share a clock, so an interval that takes them as independent is too narrow. n values
count as n (1 - r) / (1 + r), the effective size for a first-order autoregressive process (G. V. Bayley and
J. M. Hammersley, Supplement to the Journal of the Royal Statistical Society 8 (1946)). r is the lag-1 autocorrelation,
corrected for the bias of a short series (F. H. C. Marriott and J. A. Pope, Biometrika 41 (1954)), and at least 0.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

CONFIDENCE = 0.95
FEWEST = 5  # values: of fewer nobody can tell whether they resemble each other
_CORRELATED = 0.9  # more cannot be told of a few batches
_BATCHES = 100  # that a drift is looked for in
_SURE = 2.576  # of a drift: what chance exceeds in 1 of 100 series without one
_WORTH = 0.01  # of the mean: a drift that is worth a word


class Interval(NamedTuple):
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


class _Mean(NamedTuple):
    value: float
    variance: float  # of the mean
    freedom: float


def of_mean(values: Sequence[float], together: int = 1) -> Interval | None:
    """Return the interval of the mean; None for fewer than FEWEST values, or if they count as fewer than three.

    together: intervals that are to hold all at once, with CONFIDENCE (Bonferroni)."""
    mean = _mean(values)
    return mean and _around(mean.value, mean.variance, mean.freedom, together)


def of_difference(before: Sequence[float], after: Sequence[float], together: int = 1) -> Interval | None:
    """Return the interval of mean(after) - mean(before); None where either mean has no interval.

    B. L. Welch, Biometrika 34 (1947)."""
    means = _mean(before), _mean(after)
    if means[0] is None or means[1] is None:
        return None
    difference = means[1].value - means[0].value
    whole = means[0].variance + means[1].variance
    if whole == 0:
        return Interval(difference, difference)
    freedom = whole**2 / sum(mean.variance**2 / mean.freedom for mean in means if mean)
    return _around(difference, whole, freedom, together)


def of_batches(means: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the mean of batch means, and the quantile of Student's t for it, as tables print it.

    Of few batches the means depend on each other still: like an autoregressive process of the first order, whose
    correlation, of so few, comes out too low by what Kendall (1954) says."""
    count, middle = len(means), statistics.fmean(means)
    off = [value - middle for value in means]
    square = sum(map(mul, off, off))
    found = sum(map(mul, off[1:], off)) / square if square else 0.0
    correlation = min(max(found + (1 + 3 * found) / count, 0.0), _CORRELATED)
    error = statistics.stdev(means) / math.sqrt(count) * math.sqrt((1 + correlation) / (1 - correlation))
    return error, round(quantile(count - 1), 3)


def drift(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the means of the first and the last third if values tend one way by more than 1 %; else None.

    H. B. Mann, Econometrica 13 (1945)."""
    if len(values) < FEWEST:
        return None
    size = -(-len(values) // _BATCHES)
    means = [statistics.fmean(values[begin : begin + size]) for begin in range(0, len(values), size)]
    count = len(means)
    rising = sum(
        (later > earlier) - (later < earlier) for index, earlier in enumerate(means) for later in means[index:]
    )
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    third = -(-len(values) // 3)
    first, last = statistics.fmean(values[:third]), statistics.fmean(values[-third:])
    tends = abs(rising) - 1 > _SURE * spread
    return (first, last) if tends and abs(last - first) > _WORTH * abs(statistics.fmean(values)) else None


def _mean(values: Sequence[float]) -> _Mean | None:
    count = len(values)
    if count < FEWEST:
        return None
    value = statistics.fmean(values)
    squares = sum((one - value) ** 2 for one in values)
    if squares == 0:
        return _Mean(value, 0.0, count - 1)
    alike = sum((one - value) * (after - value) for one, after in zip(values, values[1:])) / squares
    alike = min(1.0, max(0.0, alike + (1 + 4 * alike) / count))
    counts = count * (1 - alike) / (1 + alike)
    if counts < 3:
        return None
    # Values that resemble each other spread less around their own mean than around that of the process.
    spread = squares / count * counts / (counts - 1)
    return _Mean(value, spread / counts, counts - 1)


def _around(value: float, variance: float, freedom: float, together: int) -> Interval:
    reach = quantile(freedom, together) * math.sqrt(variance)
    return Interval(value - reach, value + reach)


@functools.lru_cache(maxsize=256)
def quantile(freedom: float, together: int = 1) -> float:
    """Return what |t| exceeds in (1 - CONFIDENCE) / together of all cases. freedom: degrees, at least 1."""
    rest = (1 - CONFIDENCE) / together
    low, high = 0.0, 1.0
    while _two_sided(high, freedom) > rest:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _two_sided(middle, freedom) > rest else (low, middle)
    return high


def _two_sided(t: float, freedom: float) -> float:
    """Return P(|T| > t), the incomplete beta function I_x(freedom / 2, 1 / 2) for x = freedom / (freedom + t^2).

    Abramowitz and Stegun, 26.7.1."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2, 0.5
    front = (
        math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
        if x < 1
        else 0
    )
    if x == 1:
        return 1.0
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (26.5.8), by Lentz's algorithm."""
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    result = d
    for m in range(1, 400):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return result
