"""Everything at once in many threads: every launch is in the report. For `make sanitize`, which looks on."""

from __future__ import annotations

import os
import re
import shlex

import pytest
from interposing import Build, Done, Runner

from pyshim.start import plan

POLICY = """compute:
  - {match: {kernel: "*gemm"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "elementwise*"}, shape: {blocks_per_sm: 50%}, when: always}
  - {match: {kernel: "shape_*"}, shape: {blocks_per_sm: 2}, when: always}
  - {match: {kernel: room}, shape: make_room, when: always}"""
WAITS = "compute: [{match: {kernel: k}, shape: {blocks_per_sm: 1}, when: overlapping}]"
REFUSE = {"SIMGPU_REFUSE": "refused*:50000"}
# Of the sanitizer under which this runs: tools/checks/sanitizer.py.
FLAGS = shlex.split(os.environ.get("OVERLAP_TEST_FLAGS", ""))
THREADS_AND_ROUNDS = "16 300"

pytestmark = pytest.mark.slow


def made_are_counted(done: Done, processes: int) -> None:
    """The program says how many launches each process made."""
    assert done.status == 0, done.stdout + done.stderr
    made = [int(count) for count in re.findall(r"^(?:parent|child) (\d+)$", done.stdout, re.M)]
    assert done.totals["launches"] == sum(made) > 0
    assert len(done.report["processes"]) == processes


@pytest.mark.parametrize(
    ("words", "policy", "also"), [("", POLICY, "refused"), (" race", POLICY, "refused"), (" wait", WAITS, "raised")]
)
def test_threads_that_do_everything(words: str, policy: str, also: str, build: Build, preloaded: Runner) -> None:
    """wait: streams that threads wait for are raised and lowered. race: limits are set while others launch."""
    program = build("stress-driver", "../fuzz/stress.c", *FLAGS, link=[plan.SIMULATED_DRIVER])
    env = {**REFUSE, **({"SIMGPU_MULTIPROCESSORS": "4"} if "wait" in words else {})}
    done = preloaded(THREADS_AND_ROUNDS + words, policy, program=program, env=env)
    made_are_counted(done, 3)
    assert done.totals[also] > 0 and ("wait" in words or done.totals["shaped"] > 0)
