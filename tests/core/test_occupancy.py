"""Residency arithmetic: NVIDIA's own header, brute force, and the published tables as judges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native

Run = Callable[..., str]
NO_SIZE = 2**32 - 1
KEYS = ["a40", "l40s", "a100", "h100", "h200", "b200"]


def footprint(threads: int, registers: int, static: int = 0, dynamic: int = 0) -> Any:
    return _native.ffi.new("struct overlap_footprint *", (threads, registers, static, dynamic))


def test_equal_to_nvidias_header(compile_c: Any, cuda_headers: Path, run_program: Run) -> None:
    program = compile_c("occupancy_compare.c", flags=("-isystem", str(cuda_headers)))
    rows = [line.split() for line in run_program(program, _native.SHIM, 120_000, 7).splitlines()]
    assert [row[0] for row in rows] == KEYS
    assert all(int(compared) == 120_000 and int(launchable) > 10_000 for _, compared, launchable in rows), rows


def test_size_for_blocks_is_the_smallest_of_all(compile_c: Any, run_program: Run) -> None:
    compared, found = map(int, run_program(compile_c("size_brute.c"), _native.SHIM, 60, 3).split())
    assert compared == 60 * 40 * len(KEYS)
    assert found > 500


def beside(gpu: Any, computation: Any, communication: Any) -> int:
    """The same question, by placing blocks one after another with their warps spread evenly over four partitions."""

    def takes(f: Any) -> tuple[int, int, int]:
        warps = -(-f.threads // 32)
        spread = -(-warps // 4)
        return (
            spread,
            spread * (-(-f.registers * 32 // 256) * 256),
            -(-(f.static_shared + f.dynamic_shared + 1024) // 128) * 128,
        )

    def fits(*blocks: tuple[int, int, int]) -> bool:
        warps, registers, shared = (sum(part) for part in zip(*blocks))
        slots = gpu.threads // 32 // 4
        return len(blocks) <= gpu.blocks and warps <= slots and registers <= gpu.registers // 4 and shared <= gpu.shared

    k, c = takes(computation), takes(communication)
    count = 0
    while count < 64 and fits(*[k] * (count + 1), c):
        count += 1
    return count


@pytest.mark.parametrize("key", KEYS)
def test_blocks_beside_communication(library: Any, gpus: dict[str, Any], key: str) -> None:
    gpu, source = gpus[key], random.Random(key)
    seen = set()
    for _ in range(3000):
        k = footprint(
            source.randint(1, 1024), source.randint(1, 255), source.randint(0, 48000), source.randint(0, 60000)
        )
        c = footprint(
            source.choice([32, 160, 288, 544, 640]),
            source.choice([32, 96, 128]),
            source.randint(0, 37000),
            source.choice([0, 82240]),
        )
        alone = library.overlap_occupancy_of(gpu, k).blocks
        got = library.overlap_blocks_beside(gpu, k, c)
        if library.overlap_occupancy_of(gpu, c).blocks == 0:
            assert got == -1
        else:
            assert got == min(alone, beside(gpu, k, c)), (key, k[0], c[0])
        seen.add(got)
    assert len(seen) > 5


def test_a_slot_is_kept_for_communication(library: Any, gpus: dict[str, Any]) -> None:
    """No GPU of today runs out of slots first; one with four would."""
    gpu = _native.ffi.new("struct overlap_gpu *", gpus["h100"][0])
    gpu.blocks = 4
    small = footprint(32, 16)
    assert library.overlap_occupancy_of(gpu, small).blocks == 4
    assert library.overlap_blocks_beside(gpu, small, small) == 3


def test_communication_that_fits_nowhere(library: Any, gpus: dict[str, Any]) -> None:
    assert library.overlap_blocks_beside(gpus["a40"], footprint(32, 16), footprint(1024, 128)) == -1


# From the analysis of the published method: bytes of communication up to which a size exists for k blocks beside it.
WINDOWS = {
    "a40": [51072, 34048, 25216, 19968],
    "l40s": [51072, 34048, 25216, 19968],
    "a100": [83840, 55808, 41600, 33280],
    "h100": [116608, 77568, 57984, 46592],
    "b200": [116608, 77568, 57984, 46592],
}


@pytest.mark.parametrize("key", WINDOWS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_window_exists_up_to_the_published_size_and_no_further(
    library: Any, gpus: dict[str, Any], key: str, k: int
) -> None:
    gpu, limit = gpus[key], WINDOWS[key][k - 1]
    launch = _native.ffi.new("struct overlap_launch *")
    launch.footprint = (32, 16, 0, 0)
    launch.maximum_dynamic = gpu.shared_optin
    size = library.overlap_size_for_blocks(gpu, launch, k)
    shaped = footprint(32, 16, 0, size)
    assert library.overlap_occupancy_of(gpu, shaped).blocks == k
    assert library.overlap_blocks_beside(gpu, shaped, footprint(32, 16, 0, limit - 1024)) == k
    assert library.overlap_blocks_beside(gpu, shaped, footprint(32, 16, 0, limit - 1023)) == k - 1


def test_what_stops_one_more_block(library: Any, gpus: dict[str, Any]) -> None:
    constants = _native.header()
    gpu = gpus["h100"]
    cases = [
        (footprint(32, 16), constants.OVERLAP_LIMIT_SLOTS, 32),
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
