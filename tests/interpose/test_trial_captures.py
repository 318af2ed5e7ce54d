"""Captures, errors and what earlier runs found out, in a process with a trial."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from interposing import Build, Runner
from peers import forwarding_driver
from trying import CAPTURES, KEPT, NOTHING, RUNNING, STEP, TIMES, WARM_UP, Trials, costs, one_block, policy

from pyshim.policy.layout import remembered

ARMS = policy("critical-streams")
LOOP = STEP.format(64)
GRAPH = "B:2 k:2:8 c:2 G:1 g:2"


def test_captures_are_made_under_the_reference(trials: Trials, tmp_path: Path) -> None:
    """Whichever arm is in force before and behind them."""
    before = set()
    for count in (68, 75, 82, 89):
        words = f"{count} begin {LOOP} end B:2 j:2:64 c:2 G g:2 j:1:64 x"
        launches = [
            one for one in trials(words, policy(one_block(tmp_path)), costs(100)).done.launches if one["kernel"] == "j"
        ]
        sizes = [one["dynamic_shared"] for one in launches]
        before.add(sizes[count - 1] > 0)
        assert {size for size, one in zip(sizes, launches) if one["captured"] or one["graph"]} == {0}
        assert sizes[-1] == sizes[count - 1]
    assert before == {False, True}


def test_captures_are_made_under_the_arm_that_was_kept(trials: Trials) -> None:
    tried = trials(f"1500 begin {LOOP} end {GRAPH} x", ARMS, costs(100))
    alone = trials(f"1500 begin {LOOP} end {GRAPH} x", "critical-streams", costs(100)).done
    assert tried.verdict.status == KEPT
    assert tried.done.priorities[4500:] == alone.priorities[4500:]
    assert min(alone.priorities[4500:]) < 0


def test_a_program_that_captures_all_the_time(trials: Trials, bare: Runner) -> None:
    """No turn can be measured, none of our events is in a graph, and nothing is kept."""
    words = f"700 begin j:1:64 {GRAPH} r:1:1 w:2:1 r:2:2 w:1:2 c:2 k:2:8 end x"
    tried = trials(words, ARMS, costs(100), env={"OVERLAP_QUIET": "1"})
    assert tried.done.stdout == bare(words, program=tried.program).stdout == "2 nodes\n" * 700
    found = tried.verdict
    assert (found.status, found.kept, found.obstacle) == (RUNNING, "test", CAPTURES)
    assert found.marks > 300 and found.arms["critical-streams"].samples == 0
    assert "captured something for a graph" in tried.said


def test_a_program_whose_communication_is_all_captured(trials: Trials) -> None:
    tried = trials(f"100 begin {GRAPH.replace('G:1', 'G')} x end x", ARMS, costs(100))
    found = tried.verdict
    assert (found.mark, found.early[0], found.obstacle, found.blocks) == (0, 100, CAPTURES, [])
    assert "graph" in tried.said and "ended before" not in tried.said


def test_a_program_that_captures_no_more(trials: Trials) -> None:
    """What it did at first does not stay on the page."""
    found = trials(f"300 {f'{LOOP} x ' * 80} {f'{GRAPH} x ' * 90} begin {LOOP} x end", ARMS, costs(100)).verdict
    assert (found.mark, found.obstacle) == (1, 0)
    assert found.arms["critical-streams"].samples


@pytest.mark.parametrize(
    "ended", ["n:1 n:2 B:3 k:3:8 d:3", "z n:1 n:2 B:3 k:3:8 z n:1 n:2 n:3", "z n:1 n:2 n:4 n:5 B:3 k:3:8 z"]
)
def test_a_capture_that_ends_with_its_stream(ended: str, trials: Trials) -> None:
    """The stream is destroyed, or goes with its context; then another stream may get its address."""
    found = trials(f"900 {ended} begin {LOOP} end x", ARMS, costs(100)).verdict
    assert (found.status, found.kept, found.obstacle) == (KEPT, "critical-streams", 0)


@pytest.mark.parametrize("failing", ["cuEventCreate", "cuEventElapsedTime"])
def test_a_driver_that_has_no_times(failing: str, trials: Trials, build: Build, bare: Runner) -> None:
    """The program sees what it saw without us, and the reference stays at last."""
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "EARLY").parent), "DRIVER_FAILS": failing}
    tried = trials(f"900 begin {LOOP} P:2 end x", ARMS, costs(100), env=env)
    without = bare(f"900 begin {LOOP} P:2 end x", program=tried.program, env=env)
    assert (tried.done.status, tried.done.stderr) == (without.status, without.stderr) == (0, "")
    assert tried.done.stdout == without.stdout
    assert tried.verdict.status == RUNNING and tried.verdict.kept == "test"
    assert all(arm.samples == 0 for arm in tried.verdict.arms.values())
    assert tried.verdict.marks < 200 and tried.verdict.obstacle == TIMES
    assert {launch["priority"] for launch in tried.done.launches[1500:]} == {0}
    assert "the driver cannot time events" in tried.said


def test_a_driver_that_now_and_then_has_no_time(trials: Trials, build: Build) -> None:
    """It is no driver that has none."""
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "EARLY").parent), "DRIVER_FAILS": "cuEventElapsedTime,12"}
    found = trials(f"2000 begin {LOOP} end x", ARMS, costs(100, spread=0.4), env=env).verdict
    assert (found.obstacle, found.marks > 1500) == (0, True)


def test_a_driver_without_events(trials: Trials, build: Build) -> None:
    """It has none of these functions, and the program needs none."""
    driver = forwarding_driver(build, "EARLY", without="cuEvent")
    tried = trials("900 begin j:1:64 c:2 x end x", ARMS, costs(100), env={"LD_LIBRARY_PATH": str(driver.parent)})
    assert (tried.done.status, tried.done.stdout, tried.done.stderr) == (0, "", "")
    found = tried.verdict
    assert (found.status, found.kept, found.obstacle, found.marks < 200) == (RUNNING, "test", TIMES, True)
    assert len(tried.done.launches) == 1800
    assert {launch["priority"] for launch in tried.done.launches[600:]} == {0}
    assert "the driver cannot time events" in tried.said


def test_the_arm_of_earlier_runs_is_in_force_from_the_start(
    trials: Trials, table_of: Callable[[str], Mapping[str, str]]
) -> None:
    table = base64.b64decode(table_of(ARMS)["OVERLAP_TABLE"])
    # Eight samples of -10 % with a deviation of 1 %.
    known = [(8, -0.8, 8 * 0.01 + 8 * 0.0001)]
    made = base64.b64encode(remembered(table, 0, 1, 0, known)).decode()
    words = f"1200 begin {LOOP} end x"
    tried = trials(words, ARMS, costs(100), env={"OVERLAP_TABLE": made})
    fresh = trials(words, ARMS, costs(100))
    assert (tried.verdict.status, tried.verdict.kept) == (KEPT, "critical-streams")
    boundaries = [launch["priority"] for launch in tried.done.launches if launch["kernel"] == "k"]
    assert all(priority < 0 for priority in boundaries[6:WARM_UP])
    assert tried.verdict.marks < fresh.verdict.marks


def test_an_arm_that_earlier_runs_knew_is_measured_again(
    trials: Trials, table_of: Callable[[str], Mapping[str, str]]
) -> None:
    """It was faster, and no longer is."""
    table = base64.b64decode(table_of(ARMS)["OVERLAP_TABLE"])
    made = base64.b64encode(remembered(table, 0, 1, 0, [(8, -0.8, 8 * 0.01 + 8 * 0.0001)])).decode()
    tried = trials(f"3500 begin {LOOP} end x", ARMS, costs(50, gain=8), env={"OVERLAP_TABLE": made})
    assert (tried.verdict.status, tried.verdict.kept) == (NOTHING, "test")


def test_an_arm_that_earlier_runs_knew_as_harmful_is_not_tried(
    trials: Trials, table_of: Callable[[str], Mapping[str, str]]
) -> None:
    table = base64.b64decode(table_of(ARMS)["OVERLAP_TABLE"])
    made = base64.b64encode(remembered(table, 0, 0, 1, [(8, 3.2, 8 * 0.16 + 8 * 0.0001)])).decode()
    tried = trials(f"1200 begin {LOOP} end x", ARMS, costs(100), env={"OVERLAP_TABLE": made})
    assert (tried.verdict.status, tried.verdict.kept) == (NOTHING, "test")
    assert {launch["priority"] for launch in tried.done.launches} == {0}
