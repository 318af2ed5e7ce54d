"""Student's t, against printed tables and against chance itself."""

from __future__ import annotations

import random

import pytest

from pyshim.traces.compared import change
from pyshim.traces.interval import of_difference, of_mean, quantile


def test_quantiles_are_those_of_printed_tables():
    # E.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 60: 2.000, 100: 1.984}
    for freedom, value in table.items():
        assert quantile(freedom) == pytest.approx(value, abs=0.0006)
    assert quantile(1e7) == pytest.approx(1.95996, abs=1e-4)
    assert quantile(2) > quantile(2.5) > quantile(3)


def test_by_hand():
    low, high = of_mean([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-3)
    # Equal sizes and spreads: Welch's degrees of freedom are those of Student's test.
    low, high = of_difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert (low, high) == pytest.approx((1 - 2.7764 * (2 / 3) ** 0.5, 1 + 2.7764 * (2 / 3) ** 0.5), abs=1e-3)


def test_of_too_little_nothing_is_said():
    assert of_mean([1.0]) is None and of_difference([1.0], [1.0, 2.0]) is None
    assert change([], [1.0]).verdict is None and change([], [1.0]).difference is None


def test_of_equal_values_the_difference_is_certain():
    assert of_difference([1.0, 1.0], [2.0, 2.0]) == (1.0, 1.0)
    assert change([1.0, 1.0], [2.0, 2.0]).verdict == "more"
    assert change([1.0, 1.0], [1.0, 1.0]).verdict == "no difference seen"


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Few and unequal samples of unequal spread, where a plain t-test is wrong."""
    made = random.Random(7)
    held, rounds = 0, 1000
    for _ in range(rounds):
        before = [made.gauss(10, 3) for _ in range(5)]
        after = [made.gauss(11, 0.5) for _ in range(12)]
        held += of_difference(before, after).holds(1.0)
    assert 0.93 < held / rounds < 0.97


def test_verdicts():
    made = random.Random(1)
    slow = [made.gauss(100, 1) for _ in range(10)]
    fast = [made.gauss(90, 1) for _ in range(10)]
    assert change(slow, fast).verdict == "less"
    assert change(fast, slow).verdict == "more"
    assert change(slow, [value + 0.01 for value in reversed(slow)]).verdict == "no difference seen"
