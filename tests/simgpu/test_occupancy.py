"""Occupancy of the simulated GPUs is the planner's, of which core/test_occupancy.py says that it is the vendors'."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from pyshim.policy.gpus import known

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.mark.parametrize(("vendor", "flags"), [("nvidia", ()), ("amd", ("-DSIMGPU_HIP=7",))])
def test_hardware_and_planner_agree(tmp_path: Path, vendor: str, flags: tuple[str, ...]) -> None:
    program = tmp_path / "check"
    core = [str(path) for path in sorted((ROOT / "shim/core").glob("*.c"))]
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-D_GNU_SOURCE", "-O2", *flags,
            f"-I{ROOT / 'tools/simgpu'}", f"-I{ROOT / 'shim'}", f"-I{ROOT / 'shim/core'}",
            str(HERE / "occupancy_check.c"), str(ROOT / "tools/simgpu/occupancy.c"), *core, "-o", str(program),
        ],
        check=True,
    )  # fmt: skip
    done = subprocess.run([str(program), "200000"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {gpu.key for gpu in known() if gpu.vendor == vendor}
    for key, launchable, different in rows:
        assert int(launchable) > 40_000
        assert int(different) == 0, f"{key}: {done.stderr}"
