"""What a trial adds to a launch, in instructions: nothing where no turn is running."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from types import ModuleType

import pytest

POLICY = "policy: 1\nname: bench\ncommunication: {priority: inherit}\n"
TRIAL = POLICY + "trial: {arms: [raised-communication]}\n"

pytestmark = [
    pytest.mark.plain("a sanitizer costs more than the library", sanitized=True, coverage=True),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt-get install valgrind"),
]


@pytest.mark.parametrize("kernel", ["k", "ncclDevKernel"])
def test_a_launch_costs_what_it_costs_without_a_trial(kernel: str, run: ModuleType, folder: Path) -> None:
    """The driver of these programs has no times, so the trial of communication ends after a few turns."""
    case = next(one for one in run.CASES if one.name == "windows: communication, raised")
    case = dataclasses.replace(case, kernel=kernel)
    costs = []
    for policy in (POLICY, TRIAL):
        shim = {**run.armed(folder, policy), "LD_PRELOAD": str(run._native.SHIM)}
        costs.append(float(run.instructions(folder, case, shim)))
    assert costs[1] == pytest.approx(costs[0], abs=0.5)
