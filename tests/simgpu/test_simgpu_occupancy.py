"""Occupancy is NVIDIA's: every answer equals that of cuda_occupancy.h, from the wheel nvidia-cuda-runtime."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIREMENT = "nvidia-cuda-runtime"


def occupancy_header() -> Path | None:
    try:
        files = importlib.metadata.files(REQUIREMENT) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.name == "cuda_occupancy.h"]
    toolkits = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include/cuda_occupancy.h"]
    return next((path for path in [*found, *toolkits] if path.exists()), None)


def test_equal_to_cuda_occupancy_h(tmp_path: Path) -> None:
    header = occupancy_header()
    if header is None:
        pytest.skip(f"cuda_occupancy.h is in the package {REQUIREMENT}, which is not installed")
    program = tmp_path / "occupancy_check"
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-D_GNU_SOURCE", "-O2", "-w",
            f"-I{ROOT / 'tools/simgpu'}", f"-I{ROOT / 'shim/core'}",
            "-idirafter", str(header.parent), str(HERE / "occupancy_check.c"), str(ROOT / "tools/simgpu/occupancy.c"),
            "-o", str(program),
        ],
        check=True,
    )  # fmt: skip
    done = subprocess.run([str(program), "200000"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} >= {"a40", "a100", "h100"}
    for key, count, launchable, different in rows:
        assert int(count) == 200_000
        assert int(launchable) > 50_000
        assert int(different) == 0, f"{key}: {done.stderr}"


def test_the_drivers_own_answers(simulate: Any) -> None:
    """Blocks, the inverse for dynamic shared memory, and the block size with the most threads."""
    run = simulate(
        """
import random
random.seed(3)
d = Driver()
wrong = []
for r in (24, 40, 96, 168, 255):
    k = d.kernel(cubin([Kernel("k", r, static_shared=1000)]), "k")
    d.cuFuncSetAttribute(k, 8, 232448 - 1000)
    for _ in range(60):
        threads = random.randrange(1, 257)
        most = C.c_int(); d.cuOccupancyMaxActiveBlocksPerMultiprocessor(C.byref(most), k, threads, 0)
        for blocks in range(1, most.value + 1):
            size, here, more = C.c_size_t(), C.c_int(), C.c_int()
            d.cuOccupancyAvailableDynamicSMemPerBlock(C.byref(size), k, blocks, threads)
            d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(C.byref(here), k, threads, size.value, 0)
            d.cuOccupancyMaxActiveBlocksPerMultiprocessor(C.byref(more), k, threads, size.value + 1)
            if here.value < blocks or more.value >= blocks: wrong.append([r, threads, blocks, size.value])
grid, block = C.c_int(), C.c_int()
k = d.kernel(cubin([Kernel("k", 40)]), "k")
d.cuOccupancyMaxPotentialBlockSize(C.byref(grid), C.byref(block), k, None, 0, 0)
answer([wrong, grid.value, block.value])
"""
    )
    assert run.answer == [[], 2 * 132, 768]


def test_handles_of_either_kind_and_no_other(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
n = C.c_int()
answer([d.try_("cuOccupancyMaxActiveBlocksPerMultiprocessor", C.byref(n), x, 32, 0) for x in (P(64), d.stream())])
"""
    )
    assert run.answer == [400, 400]
