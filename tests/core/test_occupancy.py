"""Residency arithmetic: NVIDIA's own header, HIP's formula, brute force, and the published tables as judges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Callable

import pytest
from gpu_def import AMD, KEYS, NVIDIA

from pyshim import _native

Run = Callable[..., str]
NO_SIZE = 2**32 - 1


def footprint(threads: int, registers: int, static: int = 0, dynamic: int = 0, scalars: int = 0) -> Any:
    return _native.ffi.new("struct overlap_footprint *", (threads, registers, static, dynamic, 0, scalars))


def test_equal_to_nvidias_header(compile_c: Any, cuda_headers: Path, run_program: Run) -> None:
    program = compile_c("occupancy_compare.c", flags=("-isystem", str(cuda_headers)))
    rows = [line.split() for line in run_program(program, _native.SHIM, 120_000, 7).splitlines()]
    assert [row[0] for row in rows] == NVIDIA
    assert all(int(compared) == 120_000 and int(launchable) > 10_000 for _, compared, launchable in rows), rows


def hip(threads: int, vector: int, scalar: int, static: int, dynamic: int) -> int:
    """Workgroups on a compute unit of gfx90a or gfx942 by the formula of the HIP runtime, and by two rules that it
    leaves out: LDS is given out in 512 bytes, and of workgroups with several waves there are 16."""
    if not 1 <= threads <= 1024 or vector > 512 or static + dynamic > 65536:
        return 0
    waves_per_simd = 8
    if vector:
        waves_per_simd = min(waves_per_simd, 512 // ((vector + 7) // 8 * 8))
    if scalar:
        waves_per_simd = min(waves_per_simd, 800 // ((scalar + 15) // 16 * 16))
    lanes = 4 * 64 * waves_per_simd
    groups = lanes // ((threads + 63) // 64 * 64)
    if static + dynamic:
        groups = min(groups, 65536 // ((static + dynamic + 511) // 512 * 512))
    return min(groups, 16 if threads > 64 else 32)


@pytest.mark.parametrize("key", AMD)
def test_equal_to_hips_formula(library: Any, gpus: dict[str, Any], key: str) -> None:
    gpu, source, launchable, f = gpus[key], random.Random(key), 0, footprint(0, 0)
    slots = library.OVERLAP_LIMIT_SLOTS
    for _ in range(100_000):
        near = 65536 // source.randint(1, 32) + source.randint(-600, 600)
        static, dynamic = source.choice([(source.randint(0, 66_000), 0), (source.randint(0, 30_000), near), (0, near)])
        threads = source.choice([source.randint(0, 1100), 64 * source.randint(1, 17), source.randint(1, 130)])
        vector, scalar = source.randint(0, 520), source.choice([0, 112, source.randint(1, 260)])
        f[0] = (threads, vector, static, max(0, dynamic), 0, scalar)
        answer, expected = library.overlap_occupancy_of(gpu, f), hip(threads, vector, scalar, static, max(0, dynamic))
        assert answer.blocks == expected, (threads, vector, scalar, static, dynamic)
        assert (answer.limit == slots) <= (answer.blocks == 32)
        launchable += expected > 0
    assert launchable > 50_000


def test_scalar_registers_limit_nothing_unless_known(library: Any, gpus: dict[str, Any]) -> None:
    """With 112, which is what a compiler may take, 7 waves a SIMD instead of 8; NVIDIA has none."""
    for scalars, blocks in ((0, 32), (96, 32), (97, 28), (112, 28)):
        assert library.overlap_occupancy_of(gpus["mi250x"], footprint(64, 32, scalars=scalars)).blocks == blocks
    assert library.overlap_occupancy_of(gpus["h100"], footprint(64, 32, scalars=112)).blocks == 32


@pytest.mark.parametrize("key", KEYS)
def test_size_for_blocks_is_the_smallest_of_all(library: Any, gpus: dict[str, Any], key: str) -> None:
    """The judge is the number of resident blocks, which never grows with the size."""
    gpu, source, found = gpus[key], random.Random(key), 0
    launch, shaped = _native.ffi.new("struct overlap_launch *"), footprint(0, 0)
    for _ in range(100):
        threads, registers = (1 + source.randrange(source.choice(most)) for most in ((256, 1024), (64, 255)))
        static, asked = source.randrange(source.choice((2000, 49152))), source.choice((0, source.randrange(20_000)))
        most = source.choice((1, 1, 1, source.random())) * (gpu.shared_optin - static)
        launch.footprint, launch.maximum_dynamic = (threads, registers, static, asked), int(most)
        shaped[0] = launch.footprint

        def resident(size: int) -> int:
            shaped.dynamic_shared = size
            return int(library.overlap_occupancy_of(gpu, shaped).blocks)

        native = resident(asked)
        for blocks in range(40):
            least, end = asked, launch.maximum_dynamic + 1
            while least < end:
                middle = (least + end) // 2
                least, end = (least, middle) if resident(middle) <= blocks else (middle + 1, end)
            # At least one: nobody wants a launch that fails. As it stands, where there are no more than wanted.
            exists = least <= launch.maximum_dynamic and resident(least) > 0
            expected = asked if native <= blocks else least if exists else NO_SIZE
            got = library.overlap_size_for_blocks(gpu, launch, blocks)
            assert got == expected, ((threads, registers, static, asked), launch.maximum_dynamic, blocks)
            if native > blocks and exists:
                found += 1
                for limit, wanted in ((least, least), (least - 1, NO_SIZE)):
                    launch.maximum_dynamic = limit
                    assert library.overlap_size_for_blocks(gpu, launch, blocks) == wanted
                launch.maximum_dynamic = int(most)
    assert found > 60


def test_a_slot_is_kept_for_communication(library: Any, gpus: dict[str, Any]) -> None:
    """No GPU of today runs out of slots first; one with four would."""
    gpu = _native.ffi.new("struct overlap_gpu *", gpus["h100"][0])
    gpu.blocks = 4
    small = footprint(32, 16)
    assert library.overlap_occupancy_of(gpu, small).blocks == 4
    assert library.overlap_blocks_beside(gpu, small, small) == 3


def test_what_stops_one_more_block(library: Any, gpus: dict[str, Any]) -> None:
    constants = _native.header()
    gpu = gpus["h100"]
    barriers = _native.ffi.new("struct overlap_footprint *", (32, 16, 0, 0, 16))
    cases = [
        (footprint(32, 16), constants.OVERLAP_LIMIT_SLOTS, 32),
        (barriers, constants.OVERLAP_LIMIT_BARRIERS, 4),
        (footprint(1024, 16), constants.OVERLAP_LIMIT_WARPS, 2),
        (footprint(384, 168), constants.OVERLAP_LIMIT_REGISTERS, 1),
        (footprint(128, 32, 0, 100_000), constants.OVERLAP_LIMIT_SHARED, 2),
        (footprint(0, 16), constants.OVERLAP_LIMIT_NONE, 0),
        (footprint(1025, 16), constants.OVERLAP_LIMIT_NONE, 0),
        (footprint(800, 80), constants.OVERLAP_LIMIT_NONE, 0),  # 25 warps take the registers of 28
        (footprint(32, 256), constants.OVERLAP_LIMIT_NONE, 0),
        (footprint(32, 16, 0, 232449), constants.OVERLAP_LIMIT_NONE, 0),
        (footprint(32, 16, NO_SIZE, NO_SIZE), constants.OVERLAP_LIMIT_NONE, 0),
        (footprint(NO_SIZE, NO_SIZE, NO_SIZE, NO_SIZE), constants.OVERLAP_LIMIT_NONE, 0),
    ]
    for kernel, limit, blocks in cases:
        answer = library.overlap_occupancy_of(gpu, kernel)
        assert (answer.blocks, answer.limit) == (blocks, limit)


def test_the_table_of_gpus_ends(library: Any, gpus: dict[str, Any]) -> None:
    assert list(gpus) == KEYS
    untouched = _native.ffi.new("struct overlap_gpu *")
    assert library.overlap_gpu_known(len(KEYS), untouched) == library.overlap_gpu_known(NO_SIZE, untouched) == 0
    assert bytes(_native.ffi.buffer(untouched)) == b"\0" * _native.ffi.sizeof("struct overlap_gpu")
