"""Student's t, against printed tables and against chance itself."""

from __future__ import annotations

import math
import random
from statistics import stdev

import pytest

from pyshim.intervals import drift, of_batches, of_difference, of_mean, quantile
from pyshim.traces.compared import change


def test_quantiles_are_those_of_printed_tables():
    # E.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 60: 2.000, 100: 1.984}
    for freedom, value in table.items():
        assert quantile(freedom) == pytest.approx(value, abs=0.0006)
    assert quantile(1e7) == pytest.approx(1.95996, abs=1e-4)
    assert quantile(2) > quantile(2.5) > quantile(3)


def test_by_hand():
    values = [2.0, 1.0, 3.0, 1.0, 3.0]  # each unlike the next: they count as five; their variance is 1
    assert of_mean(values) == pytest.approx((2 - 2.7764 / 5**0.5, 2 + 2.7764 / 5**0.5), abs=1e-3)
    # Equal sizes and spreads: Welch's degrees of freedom are those of Student's test.
    found = of_difference(values, [value + 1 for value in values])
    assert found == pytest.approx((1 - 2.306 * 0.4**0.5, 1 + 2.306 * 0.4**0.5), abs=1e-3)
    # Bonferroni: 5 of them together, each at 99 %; t with 8 degrees is 3.3554.
    found = of_difference(values, [value + 1 for value in values], together=5)
    assert found == pytest.approx((1 - 3.3554 * 0.4**0.5, 1 + 3.3554 * 0.4**0.5), abs=1e-3)


def test_values_that_resemble_the_next_count_for_less():
    values = [1.0, 1.0, 2.0, 2.0] * 10
    # By hand: deviations of 0.5; 20 neighbours are alike and 19 are not, so r = 1/40, and 0.025 + 1.1/40 is put back.
    alike = 0.0525
    counts = 40 * (1 - alike) / (1 + alike)
    low, high = of_mean(values)
    variance = 0.25 * counts / (counts - 1) / counts
    assert (high - low) / 2 == pytest.approx(quantile(counts - 1) * variance**0.5, rel=1e-9)
    assert of_mean([float(value) for value in range(40)]) is None


def test_of_too_little_nothing_is_said():
    assert of_mean([1.0, 3.0, 2.0, 1.0]) is None and of_difference([1.0], [1.0, 3.0, 1.0, 3.0, 2.0]) is None
    assert change([], [1.0]).verdict is None and change([], [1.0]).difference is None


def test_of_equal_values_the_difference_is_certain():
    assert of_difference([1.0] * 5, [2.0] * 5) == (1.0, 1.0)
    assert change([1.0] * 5, [2.0] * 5).verdict == "more"
    assert change([1.0] * 5, [1.0] * 5).verdict == "no difference seen"


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Few and unequal samples of unequal spread, where a plain t-test is wrong."""
    made = random.Random(7)
    held, rounds = 0, 1000
    for _ in range(rounds):
        before = [made.gauss(10, 3) for _ in range(15)]
        after = [made.gauss(11, 0.5) for _ in range(40)]
        found = of_difference(before, after)
        held += found is None or found.holds(1.0)
    assert 0.93 < held / rounds < 0.985


@pytest.mark.parametrize(("steps", "alike"), [(20, 0.5), (60, 0.5), (60, 0.9), (200, 0.9)])
def test_a_run_that_drifts_is_not_another_one(steps, alike):
    """Two runs of one autoregressive process: as independent steps, 20 to 70 of 100 such pairs would differ."""
    made = random.Random(5)

    def run() -> list[float]:
        values, now = [], made.gauss(0, 1) / (1 - alike**2) ** 0.5
        for _ in range(steps):
            now = alike * now + made.gauss(0, 1)
            values.append(100 + now)
        return values

    rounds = 300
    found = [of_difference(run(), run()) for _ in range(rounds)]
    wrong = sum(one is not None and not one.holds(0) for one in found)
    assert wrong / rounds < 0.07
    assert any(found)


def test_a_drift_is_a_tendency_of_all_steps_that_is_worth_a_word():
    made = random.Random(2)
    noise = [made.gauss(100, 1) for _ in range(500)]
    assert drift(noise) is None and drift(noise[:9]) is None
    assert drift([12.4, 12.6, 13.4, 13.6, 13.8, 13.9, 13.85, 13.86, 13.87]) == pytest.approx((12.8, 13.86))
    assert drift([100 + 0.0001 * value for value in range(50)]) is None
    first, last = drift([value + 0.02 * number for number, value in enumerate(noise)])
    assert last - first == pytest.approx(0.02 * 333, abs=0.3)
    assert drift([1.0, 2.0, 3.0, 4.0]) is None


def test_verdicts():
    made = random.Random(1)
    slow = [made.gauss(100, 1) for _ in range(30)]
    fast = [made.gauss(90, 1) for _ in range(30)]
    assert change(slow, fast).verdict == "less"
    assert change(fast, slow).verdict == "more"
    assert change(slow, [value + 0.01 for value in reversed(slow)]).verdict == "no difference seen"


def test_of_batches_the_quantile_is_that_of_tables_and_resemblance_widens_the_error() -> None:
    printed = (2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)
    assert tuple(of_batches(range(count))[1] for count in range(10, 21)) == printed
    shuffled = [3.0, 1.0, 4.0, 0.0, 5.0, 2.0, 6.0, 1.5, 3.5, 2.5]
    rising = [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0]
    plain = stdev(rising) / math.sqrt(len(rising))
    assert of_batches(shuffled)[0] == pytest.approx(stdev(shuffled) / math.sqrt(len(shuffled)))
    assert 2 * plain < of_batches(rising)[0] < 5 * plain
