"""The bundled program by itself: it knows nothing of us, runs on the simulated GPU, and fails in one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native

pytestmark = pytest.mark.usefixtures("built")


def run(
    *words: str, gpu: str | None = "h100", program: str = "demo-step", **environment: str
) -> subprocess.CompletedProcess[str]:
    names = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "OVERLAP_", "SIMGPU"))}
    if gpu is not None:
        names.update(LD_LIBRARY_PATH=str(_native.SIMULATED_DRIVER.parent), SIMGPU=f"{gpu}:hold,1")
    return subprocess.run(
        [str(_native.DEMO / program), *words],
        env={**names, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def answer(*words: str, gpu: str = "h100") -> dict[str, Any]:
    done = run(*words, gpu=gpu)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("arm", ["sequential", "concurrent"])
@pytest.mark.parametrize("gpu", ["h100", "h200", "a100", "a40", "l40s"])
def test_it_runs_without_the_library(gpu: str, arm: str) -> None:
    found = answer(f"--arm={arm}", gpu=gpu)
    assert found["arm"] == arm
    assert found["gpu"].startswith(f"NVIDIA {gpu.upper()}")
    assert found["milliseconds"] == found["steps"][0] > 0


def test_its_communication_has_the_footprint_of_nccl() -> None:
    shared = {gpu: answer("--arm=concurrent", gpu=gpu)["communication"]["static_shared"] for gpu in ("a100", "h100")}
    assert shared == {"a100": 14144, "h100": 36800}
    communication = answer("--arm=concurrent")["communication"]
    assert communication["kernel"].startswith("ncclDevKernel_AllReduce")
    assert (communication["threads"], communication["registers"], communication["dynamic_shared"]) == (544, 96, 82240)


def test_steps_are_measured_one_by_one() -> None:
    found = answer("--arm=concurrent", "--warmup=1", "--steps=3", "--layers=2", "--buckets=1", "--gemms=2")
    assert len(found["steps"]) == 3
    assert found["milliseconds"] == sorted(found["steps"])[1]


def test_concurrency_is_not_slower_than_one_stream() -> None:
    assert answer("--arm=concurrent")["milliseconds"] <= answer("--arm=sequential")["milliseconds"]


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a driver")
def test_no_driver_is_one_line() -> None:
    done = run("--arm=concurrent", gpu=None)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "demo-step: no driver: libcuda.so.1 is not found\n"


def test_a_gpu_that_no_kernel_is_built_for_is_one_line() -> None:
    done = run("--arm=concurrent", gpu="b200")
    assert (done.returncode, done.stdout) == (1, "")
    assert "compute capability 10.0" in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_kernels_are_one_line(tmp_path: Path) -> None:
    done = run("--arm=concurrent", f"--cubins={tmp_path}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"demo-step: cannot read {tmp_path}/demo_sm90.cubin\n"


@pytest.mark.parametrize(
    "words", [["--steps=2"], ["--arm=both"], ["--arm=sequential", "more"], ["--arm=sequential", "--nothing"]]
)
def test_wrong_words_are_usage(words: list[str]) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: demo-step" in done.stderr


@pytest.mark.parametrize(
    ("program", "gpus"), [("demo-step", ["h100", "a40"]), ("demo-stencil", ["h100", "a40", "mi300x"])]
)
def test_without_words_it_says_how_long_a_step_takes(program: str, gpus: list[str]) -> None:
    for gpu in gpus:
        done = run(gpu=gpu, program=program, **amd(gpu))
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(rf"{program}: [^\n]* on (NVIDIA|AMD) [^\n]*: \d\.\d\d\d ms [^\n]*\n", done.stdout)


def amd(gpu: str) -> dict[str, str]:
    """Where its runtime is."""
    folder = _native.SIMULATED_DRIVER.parent
    return {"LD_LIBRARY_PATH": f"{folder / 'hip7'}:{folder}"} if gpu.startswith("mi") else {}


def test_its_own_costs_are_used_unless_others_are_named(tmp_path: Path) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text('- {kernel: "*", block_us: 1}\n')
    own = answer("--arm=concurrent")["milliseconds"]
    assert own > 2
    assert json.loads(run("--arm=concurrent", SIMGPU_COSTS=str(costs)).stdout)["milliseconds"] < 1


def test_kernels_without_code_stay_away_from_real_gpus_of_amd(tmp_path: Path) -> None:
    done = run(gpu=None, program="demo-stencil", LD_LIBRARY_PATH=str(_native.SIMULATED_DRIVER.parent / "hip7"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "demo-stencil: no driver: libcuda.so.1 is not found\n"


def test_more_buckets_than_layers_is_refused() -> None:
    done = run("--arm=concurrent", "--layers=2", "--buckets=3")
    assert (done.returncode, done.stderr) == (2, "demo-step: 2 layers do not make 3 buckets\n")


def test_a_wrong_result_is_found() -> None:
    # The simulated GPU runs no kernel, so nothing is computed.
    done = run("--arm=concurrent", "--check", "--layers=1", "--buckets=1")
    assert done.returncode == 1
    assert done.stderr.startswith("demo-step: wrong result in bucket 0: gradient 0, not 3")
