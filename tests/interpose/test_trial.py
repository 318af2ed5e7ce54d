"""A trial keeps the arm that is faster than the reference, and none that is not: from outside, by the driver's log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trying import KEPT, NOTHING, REFERENCE, STEP, WARM_UP, Trials, Tried, costs, one_block, policy

# By what raised streams change of a step's time, in per cent: blocks of the interior, costs.
STEPS = {
    -27: (64, costs(400)),
    -10: (64, costs(100)),
    -3: (400, costs(150)),
    -1: (400, costs(60)),
    9: (64, costs(50, gain=8)),
}


def loop(change: int, count: int) -> tuple[str, str]:
    blocks, made = STEPS[change]
    return f"{count} begin {STEP.format(blocks)} end x", made


def raised(tried: Tried) -> list[bool]:
    """Was each boundary raised?"""
    return [launch["priority"] < 0 for launch in tried.done.launches if launch["kernel"] == "k"]


@pytest.mark.parametrize("change", [-27, -10, -3, -1])
def test_the_faster_arm_is_kept(change: int, trials: Trials, tmp_path: Path) -> None:
    """By as much as it is faster if it runs alone."""
    words, made = loop(change, 1500)
    tried = trials(words, policy("critical-streams", "raised-communication"), made)
    found = tried.verdict
    assert (found.status, found.kept, found.settled) == (KEPT, "critical-streams", True)
    times = []
    for alone in (REFERENCE, "critical-streams"):
        line = tmp_path / f"{len(times)}.timeline"
        words, _ = loop(change, 300)
        trials(words, alone, made, env={"SIMGPU_TIMELINE": str(line)})
        times.append(json.loads(line.read_text().splitlines()[-1])["end_us"])
    truth = 2 * (times[1] - times[0]) / (times[1] + times[0])
    assert found.arms["critical-streams"].mean == pytest.approx(truth, rel=0.2)
    assert found.arms["raised-communication"].mean == pytest.approx(0, abs=0.002)
    was = raised(tried)
    assert not any(was[:WARM_UP]) and all(was[WARM_UP + found.marks + 7 :])
    assert found.marks <= 760


def test_a_harmful_arm_is_dropped(trials: Trials) -> None:
    words, made = loop(9, 1000)
    tried = trials(words, policy("critical-streams"), made)
    found = tried.verdict
    assert (found.status, found.kept, found.settled) == (NOTHING, "test", True)
    arm = found.arms["critical-streams"]
    assert arm.harmful and arm.samples < 12 and arm.mean == pytest.approx(0.087, abs=0.01)
    assert 30 < sum(raised(tried)) < 250  # the host is some hundred launches ahead of the GPU
    assert not any(raised(tried)[-400:])


def test_a_dropped_arm_is_not_launched_again(trials: Trials) -> None:
    """The trial goes on with the other one."""
    words, made = loop(9, 1500)
    tried = trials(words, policy("critical-streams", "raised-communication"), made)
    assert tried.verdict.arms["critical-streams"].harmful and tried.verdict.marks > 700
    assert not any(raised(tried)[600:])


def test_of_equal_arms_the_reference_is_kept(trials: Trials) -> None:
    words, made = loop(-10, 2500)
    tried = trials(words, policy("raised-communication"), made)
    found = tried.verdict
    assert (found.status, found.kept, found.arms["raised-communication"].harmful) == (NOTHING, "test", False)
    assert found.arms["raised-communication"].samples == 10 and found.marks <= 2200
    tail = tried.done.launches[3 * (WARM_UP + found.marks + 7) :]
    assert {launch["priority"] for launch in tail} == {0}


@pytest.mark.parametrize(("worth", "kept"), [("1%", "critical-streams"), ("5%", "test")])
def test_a_gain_must_be_worth_it(worth: str, kept: str, trials: Trials) -> None:
    words, made = loop(-3, 700)
    assert trials(words, policy("critical-streams", worth=worth), made).verdict.kept == kept


def test_sizes_are_an_arm(trials: Trials, tmp_path: Path) -> None:
    """One block on a multiprocessor costs a lot; only launches under that arm had the size."""
    words, _ = loop(9, 1000)
    tried = trials(words, policy(one_block(tmp_path)), costs(50, gain=8))
    found = tried.verdict
    assert (found.status, found.arms["one"].harmful) == (NOTHING, True)
    sizes = [launch["dynamic_shared"] > 0 for launch in tried.done.launches if launch["kernel"] == "j"]
    assert 30 < sum(sizes) < 250
    assert not any(sizes[WARM_UP + found.marks + 7 :])
