"""Confidence intervals of means and of differences of means, by Student's t."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

CONFIDENCE = 0.95


class Interval(NamedTuple):
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def of_mean(values: Sequence[float]) -> Interval | None:
    """None for fewer than two."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    reach = quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean - reach, mean + reach)


def of_difference(before: Sequence[float], after: Sequence[float]) -> Interval | None:
    """Of mean(after) - mean(before), samples of their own each: B. L. Welch, Biometrika 34 (1947). None for fewer than
    two of either."""
    if len(before) < 2 or len(after) < 2:
        return None
    shares = [statistics.variance(values) / len(values) for values in (before, after)]
    difference = statistics.fmean(after) - statistics.fmean(before)
    whole = sum(shares)
    if whole == 0:
        return Interval(difference, difference)
    freedom = whole**2 / sum(share**2 / (len(values) - 1) for share, values in zip(shares, (before, after)))
    reach = quantile(freedom) * math.sqrt(whole)
    return Interval(difference - reach, difference + reach)


def quantile(freedom: float) -> float:
    """What |t| exceeds in 1 - CONFIDENCE of all cases; freedom: degrees, at least 1, not only whole ones."""
    low, high = 0.0, 1.0
    while _two_sided(high, freedom) > 1 - CONFIDENCE:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _two_sided(middle, freedom) > 1 - CONFIDENCE else (low, middle)
    return high


def _two_sided(t: float, freedom: float) -> float:
    """P(|T| > t): the regularised incomplete beta function I_x(freedom / 2, 1 / 2), x = freedom / (freedom + t^2)
    (Abramowitz and Stegun, 26.7.1)."""
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
    """The continued fraction of the incomplete beta function (26.5.8), from the front, as Lentz does it."""
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
