"""Processes with a trial that end early, are killed, fork, have threads, ranks or several contexts."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from interposing import Build
from trying import CONTEXT, KEPT, RUNNING, STEP, WARM_UP, Trials, costs, one_block, policy, verdict

from pyshim.launch import plan

ARMS = policy("critical-streams")
LOOP = STEP.format(64)


def test_a_process_that_ends_early(trials: Trials) -> None:
    found = trials(f"3 begin {LOOP} end x", ARMS, costs(100)).verdict
    assert (found.status, found.mark, found.early, found.marks, found.settled) == (RUNNING, 0, (3, 0), 0, False)
    assert list(found.arms) == ["test", "critical-streams"]


def test_a_process_without_communication_or_waits(trials: Trials) -> None:
    tried = trials("1000 begin k:1:8 j:2:8 end x", ARMS, costs(100))
    assert (tried.verdict.status, tried.verdict.mark, tried.verdict.early[0]) == (RUNNING, 0, 0)
    assert {launch["priority"] for launch in tried.done.launches} == {0}


def test_a_killed_process_leaves_what_it_knew(
    build: Build, table_of: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    """Its steps are so long by the GPU's clock, which is the real one, that the trial cannot be over."""
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
    (tmp_path / "costs").write_text(costs(100))
    env = {
        **table_of(ARMS),
        "LD_PRELOAD": plan.LIBRARY,
        "OVERLAP_REPORT": str(tmp_path),
        "SIMGPU_CLOCK": "real",
        "SIMGPU_MULTIPROCESSORS": "2",
        "SIMGPU_COSTS": str(tmp_path / "costs"),
    }
    words = f"100000 begin {STEP.format(4000)} end x".split()
    process = subprocess.Popen([program, *words], env=env)
    try:
        for _ in range(1000):
            pages = list(tmp_path.glob("*.page"))
            if pages and verdict(pages[0]).blocks:
                break
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (page,) = tmp_path.glob("*.page")
    found = verdict(page)
    assert (found.status, found.mark, found.settled, found.kept) == (RUNNING, 1, False, "test")
    assert found.blocks


def test_a_child_has_no_trial_of_its_parents(trials: Trials) -> None:
    """The parent's goes on. The driver refuses the child's launches."""
    tried = trials(f"150 begin {LOOP} F end x", ARMS, costs(100), env={"OVERLAP_QUIET": "1"})
    assert (tried.done.status, len(tried.done.launches)) == (0, 450)
    (own,) = [found for found in tried.verdicts if found.marks]
    assert 150 - WARM_UP - 7 < own.marks <= 150 - WARM_UP
    assert all(found.mark == 0 and not found.blocks for found in tried.verdicts if found is not own)


def test_marks_of_threads_are_not_lost(trials: Trials) -> None:
    threads, each = 8, 50
    tried = trials(f"1 n:2 begin T:{threads}:{each} end x", ARMS, costs(100))
    found = tried.verdict
    assert (len(tried.done.launches), tried.done.status, found.status) == (threads * each, 0, RUNNING)
    # Launches of other threads while one begins the trial are no marks; the page has those up to the last switch.
    assert 0 <= threads * each - WARM_UP - found.marks <= 7 + threads


def test_two_ranks_have_the_same_arm_at_the_same_mark(trials: Trials) -> None:
    found = []
    for rank, spread in enumerate((0.05, 0.4)):
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "OVERLAP_QUIET": "1"}
        words = f"330 begin {LOOP} end x"
        found.append(trials(words, ARMS, costs(100, spread=spread), env=env).verdict)
    blocks = [[(arm, marks) for arm, marks, _ in one.blocks] for one in found]
    assert blocks[0] == blocks[1] and len(blocks[0]) > 30
    assert {marks for _, marks in blocks[0]} == {5}  # of seven; the first two work off what the arm before launched
    assert [took for _, _, took in found[0].blocks] != [took for _, _, took in found[1].blocks]


def test_devices_have_the_same_arm(trials: Trials, tmp_path: Path) -> None:
    """Marks are counted on one, that of the last launch before the trial."""
    words = f"100 begin {LOOP} v:1 {LOOP} v:0 end x"
    tried = trials(words, policy(one_block(tmp_path)), costs(100), env={"SIMGPU": "h100:hold,2"})
    assert (tried.done.status, tried.done.stdout, tried.verdict.early) == (0, "", (WARM_UP, 0))
    assert 100 - WARM_UP // 2 - 7 < tried.verdict.marks <= 100 - WARM_UP // 2
    sizes = [launch["dynamic_shared"] for launch in tried.done.launches if launch["kernel"] == "j"]
    assert len(set(sizes)) == 2 and sizes[::2] == sizes[1::2]


def test_a_context_that_ends_ends_the_trial(trials: Trials, tmp_path: Path) -> None:
    """Whichever arm is in force."""
    before = set()
    for count in (100, 107, 114, 121):
        words = f"{count} z begin {LOOP} end z " + f"{LOOP} " * 100
        tried = trials(words, policy(one_block(tmp_path)), costs(100))
        assert (tried.done.status, tried.done.stderr) == (0, "")
        assert (tried.verdict.status, tried.verdict.settled, tried.verdict.kept) == (RUNNING, False, "test")
        assert tried.verdict.obstacle == CONTEXT
        sizes = [launch["dynamic_shared"] for launch in tried.done.launches if launch["kernel"] == "j"]
        before.add(sizes[count - 1] > 0)
        assert not any(sizes[count:])
    assert before == {False, True}
    assert "ended the context" in tried.said and "ended with it after" in tried.said


# In an evaluation the host waits so often without communication.
EVALUATION = "j:1:1 s:1 " * 300


def test_many_waits_of_the_host_in_each_step(trials: Trials, tmp_path: Path) -> None:
    """They are no evaluation: blocks are timed."""
    asked = policy("critical-streams", one_block(tmp_path))
    found = trials(f"300 begin {STEP.format(640)} {EVALUATION} end x", asked, costs(50, gain=8)).verdict
    assert (found.mark, found.early[0]) == (1, WARM_UP)
    times = [took for _, _, took in found.blocks]
    assert found.arms["one"].harmful and times.count(0) < 4


def test_an_evaluation_is_in_no_time(trials: Trials, tmp_path: Path) -> None:
    """Whichever arm is in force before and behind it, also the reference."""
    arms = set()
    for steps in (3, 9, 18):
        words = f"1 begin {f'{LOOP} ' * (WARM_UP + steps)} {EVALUATION} {f'{LOOP} x ' * 60} end"
        asked = policy("critical-streams", one_block(tmp_path))
        found = trials(words, asked, costs(50, gain=8)).verdict
        times = [took for _, _, took in found.blocks[:-1]]
        assert len(times) > 5 and times.count(0) == 1
        arms.add(found.blocks[times.index(0)][0])
    assert arms == {0, 1, 2}


def test_many_evaluations(trials: Trials) -> None:
    """Long ones make the library no more patient."""
    words = f"10 begin {f'{LOOP} ' * 40} {EVALUATION * 2} x end"
    found = trials(words, ARMS, costs(50)).verdict
    times = sorted(took for _, _, took in found.blocks if took)
    assert len(times) > 30 and times[-1] < 2 * times[len(times) // 2]


def test_a_reset_of_another_device(trials: Trials) -> None:
    words = f"100 v:1 j:1:8 x v:0 begin {LOOP} end Z:1 {f'{LOOP} ' * 900}"
    found = trials(words, ARMS, costs(100), env={"SIMGPU": "h100:hold,2"}).verdict
    assert (found.status, found.kept, found.obstacle) == (KEPT, "critical-streams", 0)


def test_a_context_that_ends_once_it_is_settled(trials: Trials) -> None:
    words = f"1500 z begin {LOOP} end z " + f"{LOOP} " * 100
    tried = trials(words, ARMS, costs(100))
    assert tried.done.status == 0
    assert (tried.verdict.status, tried.verdict.kept) == (KEPT, "critical-streams")
    assert tried.done.launches[-2]["priority"] < 0


@pytest.mark.plain("real time, which a sanitizer slows down", sanitized=True)
@pytest.mark.parametrize(("stream", "wait"), [("n", "s:2"), ("b", "m")], ids=["stream", "blocking copy"])
def test_waits_of_the_host_are_counted_without_communication(stream: str, wait: str, trials: Trials) -> None:
    """They are timed by the host's clock, so this needs the real one. A busy machine may spoil a trial."""
    words = f"1500 {stream}:2 begin j:1:64 k:2:2 {wait} k:2:2 {wait} r:1:1 w:2:1 r:2:2 w:1:2 end x"
    made = '- {kernel: "j", block_us: 100, gain: 1.5}\n- {kernel: "k", block_us: 300}\n'
    for _ in range(8):
        tried = trials(words, ARMS, made, env={"SIMGPU_CLOCK": "real"})
        found = tried.verdict
        assert (found.mark, found.early) == (2, (0, 256))
        if found.status == KEPT:
            break
    assert (found.status, found.kept) == (KEPT, "critical-streams")
    assert found.arms["critical-streams"].mean < -0.1
    assert tried.done.launches[-1]["priority"] < 0
