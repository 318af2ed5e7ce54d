"""Everything at once in many threads, as ../../fuzz/test_stress.py, on HIP by its exported functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hip_interposing import Hip, World, runtime

from tests.fuzz.test_stress import FLAGS, THREADS_AND_ROUNDS, made_are_counted
from tools.simgpu.hip.image import Kernel, image

POLICY = """compute:
  - {match: {kernel: "*gemm"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "elementwise*"}, shape: make_room, when: overlapping}"""
KERNELS = ("gemm", "asked_gemm", "elementwise", "ncclDevKernel_Generic_2")


@pytest.mark.slow
def test_threads_that_do_everything(world: World, hip: Hip, tmp_path: Path) -> None:
    code = tmp_path / "kernels"
    code.write_bytes(image([Kernel(k, vgprs=256, agprs=8, static_shared=8192, max_threads=256) for k in KERNELS]))
    program = world.build("stress-hip", "../fuzz/stress.c", "-DON_HIP", *FLAGS, link=[runtime("7")])
    done = hip([*THREADS_AND_ROUNDS.split(), code], POLICY, program=program, env={"SIMGPU_MULTIPROCESSORS": "4"})
    made_are_counted(done, 2)
    assert done.totals["shaped"] > 0 and done.totals["refused"] == done.totals["raised"] == 0
