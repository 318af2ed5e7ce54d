"""demo-stencil, which ships with the simulated GPU: found by its name, with costs of its own, and shaped as any."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Call = Callable[..., "CompletedProcess[str]"]
TIME = re.compile(r"^demo-stencil: 40 iterations .* on (?:NVIDIA|AMD) .*: (\d+\.\d+) ms", re.MULTILINE)

pytestmark = pytest.mark.usefixtures("built")


def time(done: CompletedProcess[str]) -> float:
    assert done.returncode == 0, done.stderr
    (milliseconds,) = TIME.findall(done.stdout)
    return float(milliseconds)


def test_the_report_of_observe_names_the_search_that_compares(overlap_run: Call, overlap: Call, tmp_path: Path) -> None:
    out, words = str(tmp_path / "out"), ("demo-stencil", "-", "plain", "20", "stencil/style-0")
    overlap_run("--quiet", "--simulate", "h100", "--policy", "observe", "--report", out, *words)
    verdict = json.loads(overlap("report", out, "--json").stdout)["verdict"]
    assert verdict["gain"].startswith("not known, because nothing was changed: ")
    assert verdict["next"].startswith("on a machine with the GPU, with a program of your own: overlap tune -- PROGRAM")


def test_the_stencil_lists_its_patterns(overlap_run: Call) -> None:
    done = overlap_run("--quiet", "--simulate", "h100", "demo-stencil", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: demo-stencil [IMAGE|-"), done.stderr
    assert "  host-staged/stream\n" in done.stdout and "  trap/logger\n" in done.stdout


@pytest.mark.parametrize("gpu", ["h100", "l40s", "b200"])
def test_the_default_policy_makes_the_stencil_faster(overlap_run: Call, gpu: str) -> None:
    plain, default = (
        time(overlap_run("--quiet", "--policy", policy, "--simulate", gpu, "demo-stencil"))
        for policy in ("observe", "auto")
    )
    assert default < 0.96 * plain


def test_it_runs_on_gpus_of_amd(overlap_run: Call) -> None:
    assert time(overlap_run("--simulate", "mi250x", "demo-stencil")) > 0


def test_children_of_a_program_find_it_too(overlap_run: Call) -> None:
    assert time(overlap_run("--simulate", "a100", "sh", "-c", "demo-stencil")) > 0


def test_a_program_of_the_user_comes_first(overlap_run: Call, tmp_path: Path) -> None:
    program = tmp_path / "demo-stencil"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    done = overlap_run("--simulate", "h100", "demo-stencil", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.stdout == "mine\n"


def test_costs_of_the_user_come_first(overlap_run: Call, tmp_path: Path) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text('- {kernel: "*", block_us: 1}\n')
    done = overlap_run("--quiet", "--simulate", "h100", "demo-stencil", env={"SIMGPU_COSTS": str(costs)})
    assert time(done) < 0.05


def test_without_a_simulated_gpu_it_is_not_in_the_way(overlap_run: Call) -> None:
    done = overlap_run("--policy", "observe", "demo-stencil")
    assert (done.returncode, done.stdout) == (127, "")
    assert "demo-stencil: program not found" in done.stderr


def stencil(overlap_run: Call, *words: str) -> CompletedProcess[str]:
    return overlap_run("--quiet", "--simulate", "h100", "demo-stencil", *words)


@pytest.mark.parametrize("pattern", ["stencil/style-0", "stencil/style-2", "host-staged/stream"])
def test_spans_are_of_the_last_step(overlap_run: Call, pattern: str) -> None:
    done = stencil(overlap_run, "-", "plain", "3", pattern, "256", "spans")
    *steps, last = (json.loads(line) for line in done.stdout.splitlines())
    assert [step["step"] for step in steps] == [1, 2, 3]
    end = 0.0
    for ready, boundary, exchanged, begin, done_ in last["spans"]:
        assert end <= ready < boundary < exchanged and end <= begin < done_
        end = max(exchanged, done_)
    assert end <= 2000 * steps[-1]["milliseconds"] + 0.01


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-", "plain"], "usage: demo-stencil"),
        (["-", "plain", "3", "stencil/one", "256", "times"], "usage: demo-stencil"),
        (["-", "plain", "3", "stencil/style-9"], "no pattern is called stencil/style-9"),
        (["-", "plain", "3", "trap/equal", "256", "spans"], "spans are of a stencil/ or host-staged/ pattern"),
        (["/nowhere", "plain", "3", "stencil/one"], "cannot read /nowhere"),
    ],
)
def test_what_is_wrong_is_one_line(overlap_run: Call, words: list[str], said: str) -> None:
    done = stencil(overlap_run, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith(f"demo-stencil: {said}")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a driver")
@pytest.mark.parametrize("runtime", ["", "hip7"])
def test_without_a_driver_of_nvidia_it_leaves_with_three(overlap_run: Call, runtime: str) -> None:
    """Its kernels hold no code for GPUs of AMD, so real ones are left alone."""
    from pyshim import _native

    folder = {"LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent / runtime)} if runtime else {}
    done = overlap_run("--quiet", "--policy", "observe", str(_native.DEMO / "demo-stencil"), env=folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == "demo-stencil: no driver: libcuda.so.1 is not found"
