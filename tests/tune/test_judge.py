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
    "bare": {(0, 0): [0.00, 0.02], (0, 1): [0.01, 0.01], (0, 2): [0.03, 0.02]},
    "arm": {(0, 0): [-0.10], (0, 1): [-0.12], (0, 2): [-0.09], (0, 3): [5.0]},
}


def test_an_interval_by_hand() -> None:
    """Figures -0.11, -0.13, -0.115; pairs -0.02, 0, 0.01."""
    found = [-0.11, -0.13, -0.115]
    middle = statistics.fmean(found)
    figures, pairs = sum((figure - middle) ** 2 for figure in found) / 1.5, (0.02**2 + 0.01**2) / 2
    deviation = math.sqrt(max(figures / 2, (figures + pairs) / (2 + 3)))
    half = 4.032 * deviation * math.sqrt(1.5 / 3)
    change = judge.change(ARMS, "arm", "bare", 0.01)
    assert change is not None
    assert change == pytest.approx((middle - half, middle, middle + half), abs=1e-5)
    back = judge.change(ARMS, "bare", "arm", 0.01)
    assert back is not None and back == pytest.approx((-change.high, -change.middle, -change.low))


def test_figures_that_agree_by_chance_are_not_taken_for_certainty() -> None:
    alike = {**ARMS, "arm": {at: [statistics.fmean(runs) - 0.01] for at, runs in ARMS["bare"].items()}}
    change = judge.change(alike, "arm", "bare", 0.01)
    assert change is not None and change.low < -0.01 < 0 < change.high
    assert judge.noise(ARMS) == pytest.approx(0.01)
    assert judge.change({**ARMS, "new": {(0, 0): [1.0]}}, "new", "bare", 0.01) is None
    assert judge.noise({"bare": {(0, 0): [1.0]}}) is None


@pytest.mark.parametrize("noise", tune.NOISES)
def test_an_arm_without_effect_is_hardly_ever_kept(noise: str) -> None:
    """1 of 100 searches at most; an arm that scatters ten times as much as bare 3 of 100."""
    searches = 300
    wrong = tune.simulate((0.0,), noise, searches).wrong * searches / 100
    assert wrong <= searches * (0.03 if noise == "scatter" else 0.01)


@pytest.mark.parametrize(
    ("effects", "noise"),
    [((-30,), "3 %"), ((-10,), "bimodal"), ((-3,), "1 %"), ((-1,), "0.2 %"), ((-3, 0, -10), "1 %")],
)
def test_an_effect_beyond_the_noise_is_found(effects: tuple[float, ...], noise: str) -> None:
    row = tune.simulate(effects, noise, 100)
    assert (row.right, row.wrong) == (100, 0) and row.runs <= 30


def test_a_slower_arm_is_dropped_for_sure() -> None:
    row = tune.simulate((5,), "1 %", 100)
    assert (row.right, row.wrong) == (100, 0) and row.runs < 20
