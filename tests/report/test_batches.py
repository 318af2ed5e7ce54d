"""The error of a mean of batches, and whether batches drift."""

from __future__ import annotations

import math
import random
from statistics import stdev

import pytest

from pyshim.report.cadence import drifts, of_batches


def test_a_drift_is_a_tendency_of_all_batches_that_is_worth_a_word() -> None:
    made = random.Random(2)
    noise = [made.gauss(100, 1) for _ in range(20)]
    assert not drifts(noise) and not drifts(range(5))
    assert drifts([12.4, 12.6, 13.4, 13.6, 13.8, 13.9, 13.85, 13.86, 13.87, 13.9])
    assert not drifts([100 + 0.0001 * value for value in range(20)])
    assert drifts([value + 0.5 * number for number, value in enumerate(noise)])


def test_batches_that_do_not_drift_are_seldom_said_to() -> None:
    made = random.Random(3)
    assert sum(drifts([made.gauss(10, 3) for _ in range(15)]) for _ in range(2000)) < 40


def test_of_batches_the_quantile_is_that_of_tables_and_resemblance_widens_the_error() -> None:
    printed = (2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)
    assert tuple(of_batches(range(count))[1] for count in range(10, 21)) == printed
    shuffled = [3.0, 1.0, 4.0, 0.0, 5.0, 2.0, 6.0, 1.5, 3.5, 2.5]
    rising = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0]
    plain = stdev(rising) / math.sqrt(len(rising))
    assert of_batches(shuffled)[0] == pytest.approx(stdev(shuffled) / math.sqrt(len(shuffled)))
    assert 2 * plain < of_batches(rising)[0] < 5 * plain
