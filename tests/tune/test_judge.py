"""Which arm is faster, and how sure that is: Student's t, intervals by hand, and how often a whole search is wrong."""

from __future__ import annotations

import math
import statistics

import pytest

from pyshim.tune import judge
from tools.bench import tune


@pytest.mark.parametrize(
    ("chance", "free", "expected"),
    [  # printed tables
        (0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 3, 3.182), (0.05, 10, 2.228), (0.05, 29, 2.045),
        (0.01, 1, 63.657), (0.01, 2, 9.925), (0.01, 4, 4.604), (0.01, 5, 4.032), (0.01, 120, 2.617),
        (0.001, 2, 31.599), (0.001, 7, 5.408), (0.001, 20, 3.850),
    ],
)  # fmt: skip
def test_students_t_is_that_of_the_tables(chance: float, free: int, expected: float) -> None:
    assert judge.student(chance, free) == pytest.approx(expected, abs=6e-4)


def test_the_parts_of_the_chance_of_error_add_up() -> None:
    assert sum(3 * judge.level(look, 3) for look in range(1, 10_000)) == pytest.approx(judge.WRONG, rel=1e-3)


ARMS = {
    "bare": {(0, 0): [0.00], (0, 1): [0.02], (0, 2): [0.01]},
    "arm": {(0, 0): [-0.10], (0, 1): [-0.12], (0, 2): [-0.09]},
}


def test_an_interval_by_hand() -> None:
    """Differences of the rounds -0.10, -0.14, -0.10; successive runs differ by 0.02, 0.01, 0.02, 0.03."""
    middle = statistics.fmean([-0.10, -0.14, -0.10])
    noise = math.sqrt((0.02**2 + 0.01**2 + 0.02**2 + 0.03**2) / 2 / 4)
    half = judge.student(0.02, 3) * noise * math.sqrt(2 / 3)  # 2 * 4^2 / (5 + 5) = 3 degrees of freedom
    change = judge.Fit(ARMS).change("arm", "bare", 0.01)
    assert change == pytest.approx((middle - half, middle, middle + half))
    back = judge.Fit(ARMS).change("bare", "arm", 0.01)
    assert back == pytest.approx((-change[2], -change[1], -change[0]))


def test_arms_of_different_rounds_are_compared_by_what_joins_them() -> None:
    """Each round is slower than the one before by 1, which changes nothing."""
    arms = {
        "bare": {(0, 0): [0.0], (0, 1): [1.0], (1, 0): [2.0]},
        "one": {(0, 0): [-0.1], (0, 1): [0.9]},
        "other": {(1, 0): [1.7]},
        "alone": {(2, 0): [5.0]},
    }
    fit = judge.Fit(arms)
    assert fit.middle("other", "one") == pytest.approx(-0.2) and fit.middle("one", "bare") == pytest.approx(-0.1)
    assert fit.middle("alone", "bare") is None and fit.change("alone", "bare", 0.01) is None
    assert fit.middle("nowhere", "bare") is None


def test_figures_that_agree_by_chance_are_not_taken_for_certainty() -> None:
    """Two runs of each may agree; of four the noise counts as it is."""
    alike = {name: {(0, at): [figure] for at in range(2)} for name, figure in (("bare", 0.0), ("arm", -0.03))}
    change = judge.Fit(alike).change("arm", "bare", 0.005)
    assert change is not None and change.low < -0.03 < 0 < change.high
    alike = {name: {(0, at): [figure] for at in range(4)} for name, figure in (("bare", 0.0), ("arm", -0.03))}
    assert judge.Fit(alike).change("arm", "bare", 0.005) == pytest.approx((-0.03, -0.03, -0.03))


def test_of_two_arms_that_scatter_more_than_the_others_their_noise_counts() -> None:
    quiet = {name: {(0, at): [0.0] for at in range(6)} for name in ("bare", "quiet", "calm")}
    loud = {"loud": {(0, at): [0.04 * (at % 2)] for at in range(6)}}
    fit = judge.Fit({**quiet, **loud})
    wide, narrow = fit.change("loud", "bare", 0.01), fit.change("quiet", "bare", 0.01)
    assert wide is not None and narrow is not None
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low) > 0


def test_without_a_second_run_there_is_no_noise() -> None:
    once = {"bare": {(0, 0): [1.0]}, "arm": {(0, 0): [0.5]}}
    assert judge.noise(once) is None and judge.Fit(once).free == 0
    assert judge.Fit(once).change("arm", "bare", 0.01) is None and judge.Fit(once).middle("arm", "bare") == -0.5
    assert judge.noise(ARMS) == pytest.approx(0.02)


@pytest.mark.parametrize("noise", tune.NOISES)
def test_an_arm_without_effect_is_hardly_ever_kept(noise: str) -> None:
    """1 of 100 searches at most."""
    searches = 300
    wrong = tune.simulate((0.0,), noise, searches).wrong * searches / 100
    assert wrong <= searches * 0.01


@pytest.mark.parametrize(
    ("effects", "noise", "most"),
    [
        ((-30,), "3 %", 6),
        ((-20,), "1 %", 6),
        ((-11,), "1 %", 10),
        ((-10,), "bimodal", 12),
        ((-3,), "1 %", 20),
        ((-1,), "0.2 %", 10),
        ((0, 0, -10), "1 %", 9),
        ((-3, 0, -10), "1 %", 12),
        ((-10,), "cold", 10),
        ((-10,), "fresh", 10),
    ],
)
def test_an_effect_beyond_the_noise_is_found(effects: tuple[float, ...], noise: str, most: int) -> None:
    row = tune.simulate(effects, noise, 100)
    assert (row.right, row.wrong) == (100, 0) and row.runs <= most


def test_a_slower_arm_is_dropped_for_sure() -> None:
    row = tune.simulate((5,), "1 %", 100)
    assert (row.right, row.wrong) == (100, 0) and row.runs < 20
