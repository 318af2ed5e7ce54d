"""What costs.yaml says about the demo is what the demo does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pyshim import _native
from pyshim.demo import arms
from pyshim.demo.scenes import STEP

GPUS = ("h100", "h200", "l40s", "a100", "a40")


@pytest.mark.parametrize("gpu", GPUS)
def test_with_a_little_more_gain_the_policy_loses_under_every_rule(
    gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(_native.DEMO, folder)
    costs = (folder / "costs.yaml").read_text(encoding="utf-8")
    assert costs.count("gain: 1.1}") == 1
    (folder / "costs.yaml").write_text(costs.replace("gain: 1.1}", "gain: 1.15}"), encoding="utf-8")
    monkeypatch.setattr(_native, "DEMO", folder)
    assert all(run.change_percent > 0 for run in arms.simulate(STEP, gpu, gpu, dict(os.environ)))
