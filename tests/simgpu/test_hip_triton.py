"""Triton runs on the simulated HIP runtime as it is: its own driver module, real code objects, hipGetProcAddress."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parent / "hip_triton_client.py"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton: make setup")
@pytest.mark.parametrize(("gpu", "architecture"), [("mi250x", "gfx90a"), ("mi300x", "gfx942")])
def test_triton(runtimes: dict[int, Path], tmp_path: Path, gpu: str, architecture: str) -> None:
    log = tmp_path / "launches"
    environment = {
        **os.environ,
        "SIMGPU": gpu,
        "SIMGPU_LAUNCHES": str(log),
        "TRITON_LIBHIP_PATH": str(runtimes[7]),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    done = subprocess.run(
        [sys.executable, CLIENT], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"add_kernel {architecture} True\n"), done.stderr
    (row,) = map(json.loads, log.read_text().splitlines())
    assert (row["entry"], row["kernel"], row["blocks"], row["threads"]) == (
        "hipModuleLaunchKernel", "add_kernel", 4096, 256,
    )  # fmt: skip
