"""Occupancy of AMD's GPUs: what the runtime answers, what the hardware does, and what the planner says of it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

FORMULA = """
import random
random.seed(7)
wrong = []
def up(value, unit): return -(-value // unit) * unit
for index in range(40):
    said, sgprs = random.randrange(1, 257), random.randrange(1, 113)
    static = random.choice([0, random.randrange(65536)])
    image = code_object([Kernel("k", vgprs=said, sgprs=sgprs, static_shared=static)])
    host, = hip.register(image, "k")
    f = hip.function(image, "k")
    for _ in range(20):
        threads, dynamic = random.randrange(1, 1025), random.choice([0, random.randrange(65536)])
        waves = min(8, 512 // up(said, 8), 800 // up(sgprs, 16))
        total = static + dynamic
        blocks = min(4 * waves * 64 // up(threads, 64), 65536 // total if total else 10**9)
        got = [hip.number("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", f, threads, C.c_size_t(dynamic)),
               hip.number("hipOccupancyMaxActiveBlocksPerMultiprocessor", host, threads, C.c_size_t(dynamic))]
        if got != [blocks, blocks]: wrong.append([said, sgprs, static, threads, dynamic, got, blocks])
answer(wrong)
"""


def test_the_runtimes_answer_is_its_own_formula(on_hip: Any, version: int) -> None:
    assert on_hip(FORMULA, version).answer == []


def test_of_an_object_with_several_notes_every_kernel(on_hip: Any) -> None:
    kernels = '[Kernel("f", vgprs=128), Kernel("g", vgprs=256), Kernel("h", vgprs=24)]'
    run = on_hip(
        f"""
image = code_object({kernels}, apart=True)
ask = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
answer([hip.number(ask, hip.function(image, name), 256, C.c_size_t(0)) for name in "fgh"])
"""
    )
    assert run.answer == [4, 2, 8]


def test_which_says_more_than_the_hardware_takes(on_hip: Any) -> None:
    """20 blocks of two waves: the hardware has 16 barriers. 65 bytes: it gives out 512."""
    run = on_hip(
        """
f = hip.function(code_object([Kernel("k", vgprs=24, static_shared=3276)]), "k")
said = hip.number("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", f, 64, C.c_size_t(0))
g = hip.function(code_object([Kernel("g", vgprs=24)]), "g")
other = hip.number("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", g, 65, C.c_size_t(0))
hip.launch(f, 110 * 32, 64); hip.launch(g, 110 * 32, 65); hip.hipDeviceSynchronize()
answer([said, other])
"""
    )
    assert run.answer == [20, 16]
    assert (run.kernel("k")["resident_peak"], run.kernel("g")["resident_peak"]) == (18, 16)


def test_the_descriptor_is_what_the_hardware_obeys_and_metadata_what_the_runtime_says(on_hip: Any) -> None:
    """A kernel written by hand: 128 registers by its metadata, 256 by its descriptor."""
    run = on_hip("""
image = code_object([Kernel("k", vgprs=128, agprs=128, said=128, static_shared=512, max_threads=256)])
host, = hip.register(image, "k")
f = hip.function(image, "k")
attributes = FuncAttributes(); hip.hipFuncGetAttributes(C.byref(attributes), host)
numbers = [hip.number("hipFuncGetAttribute", id, f) for id in (0, 1, 4, 6, 8)]
said = hip.number("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", f, 256, C.c_size_t(0))
hip.launch(f, 1100, 256); hip.hipDeviceSynchronize()
answer([numbers, [attributes.maxThreadsPerBlock, attributes.sharedSizeBytes, attributes.numRegs,
                  attributes.binaryVersion, attributes.maxDynamicSharedSizeBytes], said])
""")
    numbers = [256, 512, 128, 90, 65024]
    assert run.answer == [numbers, numbers, 4]
    assert (run.kernel("k")["resident_peak"], run.kernel("k")["registers"]) == (2, 256)


def test_the_best_block_and_the_room_that_is_left(on_hip: Any) -> None:
    run = on_hip("""
image = code_object([Kernel("k", vgprs=128)])
host, = hip.register(image, "k")
grid, block, room = C.c_int(), C.c_int(), C.c_size_t()
hip.hipOccupancyMaxPotentialBlockSize(C.byref(grid), C.byref(block), host, C.c_size_t(0), 0)
hip.hipOccupancyAvailableDynamicSMemPerBlock(C.byref(room), host, 2, 256)
answer([grid.value, block.value, room.value])
""")
    assert run.answer == [110, 1024, 32768]


def test_hardware_and_planner_agree(tmp_path: Path) -> None:
    """The scheduler's arithmetic against shim/core's, which plans by it, over random footprints."""
    program = tmp_path / "check"
    core = [str(path) for path in sorted((ROOT / "shim/core").glob("*.c"))]
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-D_GNU_SOURCE", "-O2", "-DSIMGPU_HIP=7",
            f"-I{ROOT / 'tools/simgpu'}", f"-I{ROOT / 'shim'}", f"-I{ROOT / 'shim/core'}",
            str(HERE / "hip_occupancy_check.c"), str(ROOT / "tools/simgpu/occupancy.c"), *core, "-o", str(program),
        ],
        check=True,
    )  # fmt: skip
    done = subprocess.run([str(program), "200000"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {"mi250x", "mi300x"}
    for key, launchable, different in rows:
        assert int(launchable) > 50_000
        assert int(different) == 0, f"{key}: {done.stderr}"


def test_blocks_really_stay_resident_as_planned(on_hip: Any) -> None:
    """Footprints at random, through the whole runtime: the most blocks seen on a compute unit."""
    run = on_hip(
        """
import random
random.seed(11)
footprints = []
for index in range(24):
    kernel = Kernel(f"k{index}", vgprs=random.randrange(1, 257), agprs=random.choice([0, random.randrange(1, 257)]),
                    sgprs=random.randrange(1, 103), static_shared=random.choice([0, random.randrange(20000)]))
    threads, dynamic = random.randrange(1, 257), random.choice([0, random.randrange(40000)])
    f = hip.function(code_object([kernel]), kernel.name)
    hip.launch(f, 4 * 32 * 2, threads, dynamic); hip.hipDeviceSynchronize()
    footprints.append([threads, kernel.registers, kernel.sgprs, kernel.static_shared + dynamic])
answer(footprints)
""",
        SIMGPU_MULTIPROCESSORS="4",
    )
    for index, (threads, registers, scalars, shared) in enumerate(run.answer):
        waves = -(-threads // 64)
        by_simd = min(8, 512 // (-(-registers // 8) * 8), 800 // (-(-scalars // 16) * 16))
        blocks = min(
            4 * by_simd // waves, 16 if waves > 1 else 32, 65536 // (-(-shared // 512) * 512) if shared else 32
        )
        assert run.kernel(f"k{index}")["resident_peak"] == blocks, (threads, registers, scalars, shared)
