"""The programs that ship with the simulated GPU: found by their names, with costs of their own, and shaped as any."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Call = Callable[..., "CompletedProcess[str]"]
TIME = re.compile(r"^(demo-\w+): .*: (\d+\.\d+) ms", re.MULTILINE)

pytestmark = pytest.mark.usefixtures("built")


def times(done: CompletedProcess[str]) -> dict[str, float]:
    assert done.returncode == 0, done.stderr
    return {name: float(milliseconds) for name, milliseconds in TIME.findall(done.stdout)}


def test_demo_runs_the_step_and_the_stencil(overlap_run: Call, overlap: Call, tmp_path: Path) -> None:
    done = overlap_run("--simulate", "h100", "--report", str(tmp_path / "out"), "demo")
    assert tuple(times(done)) == ("demo-step", "demo-stencil")
    totals = json.loads(overlap("report", str(tmp_path / "out"), "--json").stdout)["totals"]
    assert totals["launches"] == 180 + 160
    assert totals["communication"] == 80 + 40


def test_the_report_of_observe_names_the_run_under_the_default_policy(
    overlap_run: Call, overlap: Call, tmp_path: Path
) -> None:
    out, words = str(tmp_path / "out"), ("demo-stencil", "-", "plain", "20", "stencil/style-0")
    overlap_run("--quiet", "--simulate", "h100", "--policy", "observe", "--report", out, *words)
    verdict = json.loads(overlap("report", out, "--json").stdout)["verdict"]
    assert verdict["gain"] == "nothing was changed, because the policy observe only counts"
    again = f"overlap-run --simulate h100:hold,1 --policy default --report {out}-default {' '.join(words)}"
    assert verdict["next"] == f"{again} runs it under the default policy"


def test_the_stencil_lists_its_patterns(overlap_run: Call) -> None:
    done = overlap_run("--quiet", "--simulate", "h100", "demo-stencil", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: demo-stencil [IMAGE|-"), done.stderr
    assert "  host-staged/stream\n" in done.stdout and "  trap/logger\n" in done.stdout


@pytest.mark.parametrize("gpu", ["h100", "l40s"])
def test_the_default_policy_makes_the_stencil_faster(overlap_run: Call, gpu: str) -> None:
    plain, default = (
        times(overlap_run("--quiet", "--policy", policy, "--simulate", gpu, "demo-stencil"))["demo-stencil"]
        for policy in ("observe", "auto")
    )
    assert default < 0.96 * plain


def test_on_a_gpu_of_amd_the_stencil_runs_alone(overlap_run: Call) -> None:
    assert tuple(times(overlap_run("--simulate", "mi250x", "demo"))) == ("demo-stencil",)


def test_children_of_a_program_find_them_too(overlap_run: Call) -> None:
    done = overlap_run("--simulate", "a100", "sh", "-c", "demo-step && demo-stencil")
    assert tuple(times(done)) == ("demo-step", "demo-stencil")


def test_a_program_of_the_user_comes_first(overlap_run: Call, tmp_path: Path) -> None:
    program = tmp_path / "demo"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    done = overlap_run("--simulate", "h100", "demo", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.stdout == "mine\n"


def test_costs_of_the_user_come_first(overlap_run: Call, tmp_path: Path) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text('- {kernel: "*", block_us: 1}\n')
    done = overlap_run("--quiet", "--simulate", "h100", "demo-step", env={"SIMGPU_COSTS": str(costs)})
    assert times(done)["demo-step"] < 1


def test_without_a_simulated_gpu_they_are_not_in_the_way(overlap_run: Call) -> None:
    done = overlap_run("--policy", "observe", "demo")
    assert (done.returncode, done.stdout) == (127, "")
    assert "demo: program not found" in done.stderr
