"""The program of the set no-context, simulated: kernels are named, the small stream raised, results the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from interposing import Done, Runner

from pyshim.start import plan
from tools.gpu.build import HERE

ROUNDS, WARM, LAUNCHES = 20, 100, 36  # launches of a round: 4 large ones, 32 small ones


@pytest.fixture
def program(tmp_path: Path) -> Path:
    words = [os.environ["CC"], "-O2", "-Wall", "-Werror", HERE / "no_context.c", plan.SIMULATED_DRIVER]
    subprocess.run([*map(str, words), "-o", str(tmp_path / "no_context")], check=True)
    return tmp_path / "no_context"


def answer(done: Done) -> Any:
    assert done.status == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("us_a_round") > 0
    return found


@pytest.mark.parametrize("policy", ["default", "observe"])
def test_the_program_without_a_context(policy: str, program: Path, bare: Runner, preloaded: Runner) -> None:
    words = f"{ROUNDS} 400"
    without, done = bare(words, program=program), preloaded(words, policy, program=program)
    assert answer(done) == answer(without) and answer(done)["context"] is False
    launches = LAUNCHES * (WARM + ROUNDS)
    assert done.totals["launches"] == launches and "unknown_footprint" not in done.reasons
    small = [launch["priority"] for launch in done.launches if launch["kernel"] in ("small", "other")]
    if policy == "default":
        assert small.count(-5) >= 0.95 * len(small) and done.totals["raised"] == small.count(-5)
    else:
        assert not any(small)
