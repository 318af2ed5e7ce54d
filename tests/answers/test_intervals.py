"""The statistics of docs/overlap.md against what others compute, and against what is known of drawn samples."""

from __future__ import annotations

import random

import numpy as np
import pytest
from answers import intervals
from answers.agreement import Agreement, Ratio
from scipy import stats


def drawn(rows: int, count: int = 30, seed: int = 7, mean: float = 1.0) -> list[list[float]]:
    draw = random.Random(seed)
    return [[draw.gauss(mean, 0.01) for _ in range(count)] for _ in range(rows)]


@pytest.mark.parametrize("count", [5, 9, 20, 30])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.998])
def test_intervals_are_those_of_scipy(count: int, level: float) -> None:
    rows = drawn(6, count)
    theirs = stats.bootstrap(
        (np.sort(rows, axis=1),),
        np.median,
        axis=-1,
        n_resamples=intervals.RESAMPLES,
        confidence_level=level,
        method="BCa",
        vectorized=True,
        random_state=np.random.default_rng(intervals.SEED),
    ).confidence_interval
    for (low, high), *their in zip(intervals.bootstrap(rows).interval(level), theirs.low, theirs.high):
        assert [low, high] == pytest.approx(their, abs=1e-9)


def test_the_order_of_samples_and_the_other_rows_do_not_matter() -> None:
    rows = drawn(5)
    alone = intervals.bootstrap([sorted(rows[3], reverse=True)]).interval()
    others = [*rows[:3], rows[3], *drawn(3, 12)]
    assert intervals.bootstrap(rows).interval()[3] == alone[0] == intervals.bootstrap(others).interval()[3]
    assert intervals.bootstrap(others).interval()[5:] == intervals.bootstrap(drawn(3, 12)).interval()[1:]


def test_what_does_not_vary_has_no_width() -> None:
    assert intervals.bootstrap([[1.5] * 30]).interval() == [(1.5, 1.5)]


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="4 samples"):
        intervals.bootstrap([[1.0, 2.0, 3.0, 4.0]])


def test_95_of_100_intervals_hold_the_median() -> None:
    """Of 30 samples the BCa interval of a median is a little narrow."""
    found = intervals.bootstrap(drawn(400)).interval()
    assert 0.91 <= sum(low <= 1 <= high for low, high in found) / len(found) <= 0.98


def test_verdicts_of_nothing_are_seldom_wrong_however_many() -> None:
    """In 60 matrices of 24 cells without any effect; uncorrected, two of three would show one."""
    wrong = corrected = 0
    for seed in range(60):
        found = intervals.bootstrap(drawn(24, seed=1000 + seed))
        corrected += any(intervals.verdicts(found))
        wrong += any(not low <= 1 <= high for low, high in found.interval())
    assert corrected <= 7
    assert wrong >= 30


def test_verdicts_find_what_is_there() -> None:
    rows = [*drawn(20), *drawn(2, mean=0.97), *drawn(2, mean=1.03)]
    assert intervals.verdicts(intervals.bootstrap(rows))[20:] == [-1, -1, 1, 1]


def test_steps_go_on_where_the_first_decides_some() -> None:
    """Holm's second step: a row that 1 - 0.05 / 2 leaves open and 1 - 0.05 does not."""
    found = intervals.bootstrap([[0.5] * 30, row_between()])
    (_, high), (_, wide) = found.interval(0.95)[1], found.interval(0.975)[1]
    assert high < 1 < wide
    assert intervals.verdicts(found) == [-1, -1]
    assert intervals.verdicts(intervals.bootstrap([[1.0] * 30, row_between()])) == [0, 0]


def row_between() -> list[float]:
    """Its median is below 1 with 95 %, not with 97.5 %."""
    for row in drawn(400, mean=0.9965, seed=3):
        found = intervals.bootstrap([row])
        if found.interval(0.95)[0][1] < 1 < found.interval(0.975)[0][1]:
            return row
    raise AssertionError("no such row was drawn")


def test_limits_of_a_verdict_are_limits() -> None:
    found = intervals.bootstrap([*drawn(1, mean=0.97), *drawn(1, mean=0.93)])
    assert intervals.verdicts(found, 0.95, 1.05) == [0, -1]


def agreement(*pairs: tuple[float, float]) -> Agreement:
    return Agreement("hold", tuple(Ratio("cell", "arm", *pair) for pair in pairs))


def test_rank_correlation_of_known_values() -> None:
    """By hand: 1 - 6 * 2 / (4 * 15) is 0.8; equal ones share their rank."""
    assert agreement((1, 10), (2, 20), (3, 30)).rank == pytest.approx(1)
    assert agreement((1, 30), (2, 20), (3, 10)).rank == pytest.approx(-1)
    assert agreement((1, 1), (2, 3), (3, 2), (4, 4)).rank == pytest.approx(0.8)
    assert agreement((1, 1), (1, 2), (2, 3)).rank == pytest.approx(0.866, abs=0.001)
    assert agreement((1, 1), (1, 2), (1, 3)).rank is None
    assert agreement((1, 1), (2, 2)).rank is None


def test_error_and_target() -> None:
    assert agreement((1.0, 0.9), (1.0, 1.1)).error == pytest.approx(10)
    near = agreement((0.8, 0.82), (0.9, 0.91), (1.0, 1.0), (1.1, 1.08))
    assert near.good and not agreement((0.8, 0.9), (0.9, 1.0), (1.0, 1.1)).good
    assert not agreement((0.99, 1.01), (1.0, 1.0), (1.01, 0.99)).good
    assert [ratio.measured for ratio in near.farthest[:1]] in ([0.82], [1.08])
