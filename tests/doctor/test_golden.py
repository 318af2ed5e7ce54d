"""Whole outputs of three situations, and that they fit the screen."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from doctoring import Compile

GOLDEN = Path(__file__).parent / "golden"
OPENS = '#include <dlfcn.h>\nint main(void) { return dlopen("libcuda.so.1", RTLD_NOW) != 0; }'
SITUATIONS = {
    "fine": (["--simulate", "h100,8", "./program", "--steps", "5"], 0, {"TORCH_NCCL_HIGH_PRIORITY": "1"}),
    "wrong": (
        ["--simulate", "a100", "./static"],
        1,
        {
            "OVERLAP_POLICY": "h100-paper",
            "CUDA_VISIBLE_DEVICES": "",
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "CUDA_LAUNCH_BLOCKING": "1",
            "CUDA_INJECTION64_PATH": "libToolsInjection64.so",
            "SLURM_JOB_ID": "4711",
            "SLURM_EXPORT_ENV": "NONE",
        },
    ),
    "amd": (
        ["--simulate", "mi250x,2", "--policy", "mi250x-paper", "./python", "train.py"],
        0,
        {
            "SLURM_JOB_ID": "4711",
            "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_TASKS": "16",
        },
    ),
}


@pytest.fixture(scope="module")
def folder(compiled: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("golden")
    shutil.copy(compiled("program", OPENS, "-ldl"), made)
    shutil.copy(compiled("static", "int main(void) { return 0; }", "-static"), made)
    (made / "torch").mkdir()
    (made / "torch/version.py").write_text("__version__ = '2.9.1+rocm6.4'\ncuda = None\nhip = '6.4.43484'\n")
    (made / "python").write_text(f'#!/bin/sh\nPYTHONPATH={made} exec {sys.executable} -S "$@"\n')
    (made / "python").chmod(0o755)
    (made / "train.py").write_text("")
    return made


def told(overlap: Any, folder: Path, name: str, columns: int) -> str:
    arguments, status, environment = SITUATIONS[name]
    done = overlap("doctor", *arguments, cwd=folder, env={**environment, "HOME": str(folder), "COLUMNS": str(columns)})
    assert (done.returncode, done.stderr) == (status, "")
    return str(done.stdout)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_whole_output_is_golden(overlap: Any, library: Any, folder: Path, name: str) -> None:
    shown = told(overlap, folder, name, 80)
    # What the machine of the test has, and nobody chose.
    shown = re.sub(r"version \S+, layout \d+, glibc \d+\.\d+", "version, layout and glibc", shown)
    shown = re.sub(r"^(ok|warn)\s+(not )?in a container.*(\n\s+.*)*", "(a container, or none)", shown, flags=re.M)
    assert shown == (GOLDEN / f"doctor-{name}.txt").read_text()


@pytest.mark.parametrize("columns", [60, 100])
def test_it_fits_the_screen(overlap: Any, library: Any, folder: Path, columns: int) -> None:
    for name in SITUATIONS if columns == 60 else ("wrong",):
        verdict, *lines = told(overlap, folder, name, columns).splitlines()  # the first is one line in a pipe
        assert verdict.startswith(("nothing is in the way", "in the way: "))
        assert columns - 20 < max(map(len, lines)) <= columns
