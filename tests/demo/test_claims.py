"""What README and costs.yaml say about the demo is what the demo does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pyshim import _native
from pyshim.demo import arms
from pyshim.demo.scenes import STEP

ROOT = Path(__file__).resolve().parents[2]
GPUS = ("h100", "h200", "l40s", "a100", "a40")


def test_the_capture_in_the_readme_is_what_the_demo_prints(overlap: Callable[..., CompletedProcess[str]]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    capture = text[text.index("$ make demo\n") : text.index("[... and why")].splitlines()[1:]
    shown = [line[4:] for line in capture if line.strip()]
    done = overlap("demo", env={"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"})
    printed = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("overlap: ")]
    assert len(shown) > 20
    assert [line for line in printed if line][: len(shown)] == shown


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
