"""How trials of a program end whose paces are made up (core/trial.c): 200 of each kind, from fixed seeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUNS = 200
STEP = 1_000_000  # nanoseconds: every level is judged
KINDS = ("plain", "correlated", "drift", "bursts", "two", "bimodal", "outliers", "stall", "stalls", "lost")
HARDER = ("correlated", "bimodal", "outliers", "stalls")  # a trial of these may find out nothing
Trials = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def trials(compile_c: Any, run_program: Any) -> Trials:
    program: Path = compile_c("trial_paces.c", "core/trial.c")

    def run(
        kind: str, *effects: float, worth: int = 5000, step: int = STEP, lag: int = 0, runs: int = RUNS
    ) -> dict[str, Any]:
        words = [runs, worth, kind, step, 2, lag, *effects]
        found: dict[str, Any] = json.loads(run_program(program, *map(str, words)))
        return found

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_of_equal_arms_none_is_kept(trials: Trials, kind: str) -> None:
    found = trials(kind, 0, 0, 0, lag=20)
    assert sum(found["kept"][1:]) <= 2
    assert found["dropped"] <= 2
    assert kind in HARDER or found["noisy"] == 0


def test_the_interval_is_as_wide_as_it_must_be(trials: Trials) -> None:
    """Of equal arms few are kept, even where any gain is worth it."""
    kept = [trials(kind, *[0] * 5, worth=1, runs=1000)["kept"] for kind in ("plain", "correlated", "two", "bimodal")]
    assert sum(sum(one[1:]) for one in kept) <= 18


@pytest.mark.parametrize("effect", [-10, -30])
@pytest.mark.parametrize("kind", KINDS)
def test_a_large_gain_is_always_kept(trials: Trials, kind: str, effect: int) -> None:
    found = trials(kind, 0, effect, lag=20)
    assert found["kept"][2] == RUNS
    assert found["marks"] < (900 if effect == -30 and kind == "plain" else 30_000)


@pytest.mark.parametrize("effect", [-1, -3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_small_gain_is_kept_or_not_known(trials: Trials, kind: str, effect: int) -> None:
    found = trials(kind, 0, effect)
    assert found["kept"][1] <= 2
    assert (effect == -1 and kind in HARDER) or found["kept"][2] >= (0.9 if effect == -3 else 0.4) * RUNS


@pytest.mark.parametrize("kind", ["outliers", "stall", "stalls"])
def test_what_takes_long_now_and_then_hides_no_gain(trials: Trials, kind: str) -> None:
    assert trials(kind, 0, -10)["marks"] < 900


def test_a_gain_below_worth_is_not_kept(trials: Trials) -> None:
    assert trials("plain", -3, worth=50_000)["kept"] == [RUNS, 0]


def test_the_best_of_two_good_arms_is_kept(trials: Trials) -> None:
    assert trials("plain", -10, -30)["kept"] == [0, 0, RUNS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_harmful_arm_is_dropped_early(trials: Trials, kind: str) -> None:
    found = trials(kind, 40, lag=5)
    assert kind in (*HARDER, "bursts") or found["dropped"] == RUNS  # of those some end earlier as no gain
    assert found["kept"][1] == 0
    assert kind != "plain" or found["marks"] < 150


def test_blocks_that_are_too_short_are_not_judged(trials: Trials) -> None:
    """2 ms; a block of 5 marks lasts 1.5, one of 23 lasts 6.9."""
    assert trials("plain", -30, step=300_000)["marks"] > 12 * 4 * 7
    assert trials("plain", -30, step=500_000)["marks"] == 12 * 4 * 7


def test_times_that_arrive_late_do_not_change_the_verdict(trials: Trials) -> None:
    at_once, late = trials("plain", -3, 40), trials("plain", -3, 40, lag=60)
    assert late["kept"] == at_once["kept"]
    assert late["marks"] > at_once["marks"]
