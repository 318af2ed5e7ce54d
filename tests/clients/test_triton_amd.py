"""Triton's AMD backend, unmodified: its compiler makes real code objects, and its launcher finds the runtime's
functions by hipGetProcAddress in a library that it opened for itself alone."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_clients import Run, lines, triton_lacks, without

from pyshim.start import plan
from pyshim.start.environment import environment

CLIENT = Path(__file__).resolve().parent / "triton_amd_client.py"
CAP = """policy: 1
name: cap
gpu: ["AMD *"]
compute: [{match: {kernel: "matmul*"}, shape: {blocks_per_sm: 1}, when: always}, {match: {kernel: "*"}, shape: leave}]
"""
ARCHITECTURES = {"mi250x": "gfx90a", "mi300x": "gfx942"}

Alone = Callable[[str], tuple[str, list[dict[str, Any]]]]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not importlib.util.find_spec("triton"):
        pytest.skip("needs triton: make setup, with Python 3.10 or newer")
    if missing := triton_lacks():
        pytest.skip(f"Triton compiles its launcher, and there is no {missing}")
    return tmp_path_factory.mktemp("triton-amd")


@pytest.fixture(scope="session")
def alone(clean_environment: Mapping[str, str], scratch: Path) -> Alone:
    """What the program prints, and what the runtime is asked for, without the library; run once for each GPU."""
    known: dict[str, tuple[str, list[dict[str, Any]]]] = {}

    def of(gpu: str) -> tuple[str, list[dict[str, Any]]]:
        if gpu not in known:
            log = scratch / f"triton-{gpu}.launches"
            settings = plan.make(plan.Request(policy="observe", simulate=gpu), clean_environment).settings
            env = environment(clean_environment, settings._replace(library=None))
            env |= {"SIMGPU_LAUNCHES": str(log), "TRITON_CACHE_DIR": str(scratch / "cache-alone")}
            done = subprocess.run(
                [sys.executable, str(CLIENT)], env=env, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, done.stderr
            known[gpu] = done.stdout, lines(log)
        return known[gpu]

    return of


@pytest.mark.parametrize("policy", ["observe", "cap"])
@pytest.mark.parametrize("gpu", ARCHITECTURES)
def test_its_launches_are_seen_and_left_alone(
    gpu: str, policy: str, alone: Alone, overlap_run: Run, overlap: Run, scratch: Path, tmp_path: Path
) -> None:
    stdout, launches = alone(gpu)
    assert [line.split()[:2] for line in stdout.splitlines()] == [
        ["add_kernel", ARCHITECTURES[gpu]],
        ["matmul_kernel", ARCHITECTURES[gpu]],
    ]
    log, report = tmp_path / "triton.launches", tmp_path / "report"
    (tmp_path / "cap.yaml").write_text(CAP, encoding="ascii")
    named = str(tmp_path / "cap.yaml") if policy == "cap" else policy
    # Its first run here compiles under the preload.
    env = {"SIMGPU_LAUNCHES": str(log), "TRITON_CACHE_DIR": str(scratch / "cache-preloaded")}
    options = ["--simulate", gpu, "--policy", named, "--report", str(report)]
    done = overlap_run(*options, sys.executable, str(CLIENT), env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == stdout

    assert without(lines(log), []) == without(launches, [])

    totals = json.loads(overlap("report", str(report), "--json").stdout)["totals"]
    assert totals["launches"] == sum(totals["reasons"].values()) == len(launches) == 6
    assert totals["launches"] == 6
    # The registers of a module's kernels may be more than the runtime says.
    assert totals["reasons"] == {"observe_only" if policy == "observe" else "unknown_footprint": 6}
