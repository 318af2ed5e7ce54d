"""The planner: published tables and corners. test_plan_brute.py has a judge that tries every size."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from gpu_def import KEYS

from pyshim import _native

HUGE = 2**32 - 1

Footprint = tuple[int, ...]  # threads, registers, static, dynamic, then barriers and scalar registers


def nccl(static: int, threads: int = 288, dynamic: int = 82240) -> Footprint:
    return threads, 96, static, dynamic


NCCL_21, NCCL_27, NCCL_30 = nccl(20832), nccl(21568), nccl(36800)  # sm_90: 2.21, 2.27 to 2.28, 2.29 and newer
RCCL = 256, 280, 19808, 0  # of ROCm 7.2.4, unroll 1
GEMM = 128, 224, 0, 49152  # 128x128 tiles


class Planner:
    """plan(gpu, computation, communication) -> struct overlap_plan, of a rule {shape: make_room} by default."""

    def __init__(self, lib: Any, gpus: dict[str, Any]) -> None:
        self.lib, self.gpus = lib, gpus

    def __call__(
        self,
        gpu: Any,
        computation: Footprint,
        communication: Footprint | None,
        shape: str = "make_room",
        value: int = 0,
        keep: int = 0,
        maximum: int | None = None,
    ) -> Any:
        ffi = _native.ffi
        device = self.gpus[gpu] if isinstance(gpu, str) else gpu
        limit = max(0, device.shared_optin - computation[2]) if maximum is None else maximum
        launch = ffi.new("struct overlap_launch *", (1, 0, limit, computation))
        beside = ffi.NULL if communication is None else ffi.new("struct overlap_footprint *", communication)
        plan = ffi.new("struct overlap_plan *")
        kind = getattr(self.lib, f"OVERLAP_SHAPE_{shape}".upper())
        self.lib.overlap_plan_of(device, launch, beside, kind, value, keep, plan)
        return plan

    def answer(self, *facts: Any, **more: Any) -> tuple[str, str, int]:
        plan = self(*facts, **more)
        controls = ("leave", "room_already", "make_room", "priority", "cap")
        reason = _native.text(self.lib.overlap_reason_name(plan.reason))
        return controls[plan.control], reason, plan.dynamic_shared


def windows(plan: Any) -> list[tuple[int, int, int]]:
    return [(w.blocks, w.minimum, w.maximum) for w in plan.windows[0 : plan.window_count]]


@pytest.fixture(scope="module")
def plan(library: Any, gpus: dict[str, Any]) -> Planner:
    return Planner(library, gpus)


# ---- The published numbers ----

# Bytes that a block of communication may take, as given out, for which a size exists beside k = 1, 2, 3, 4 blocks.
LARGEST = {
    "a40": [51072, 34048, 25216, 19968],
    "l40s": [51072, 34048, 25216, 19968],
    "a100": [83840, 55808, 41600, 33280],
    "h100": [116608, 77568, 57984, 46592],
    "h200": [116608, 77568, 57984, 46592],
    "b200": [116608, 77568, 57984, 46592],
    "mi250x": [32256, 21504, 14848, 12288],
    "mi300x": [32256, 21504, 14848, 12288],
}


@pytest.mark.parametrize("key", LARGEST)
def test_a_window_exists_up_to_the_published_size_and_no_further(plan: Planner, key: str) -> None:
    gpu, ffi, small = plan.gpus[key], _native.ffi, (32, 16, 0, 0)
    for k, largest in enumerate(LARGEST[key], 1):
        asked = largest - gpu.shared_reserved
        fits, exceeds = (plan(key, small, (32, 16, 0, size)) for size in (asked, asked + 1))
        assert k in [blocks for blocks, _, _ in windows(fits)]
        assert all(blocks < k for blocks, _, _ in windows(exceeds)), f"larger communication, {k} blocks"
        # The functions that a cap uses return the same numbers.
        launch = ffi.new("struct overlap_launch *", (1, 0, gpu.shared_optin, small))
        shaped = ffi.new("struct overlap_footprint *", (*small[:3], plan.lib.overlap_size_for_blocks(gpu, launch, k)))
        assert plan.lib.overlap_occupancy_of(gpu, shaped).blocks == k
        for size, beside in ((asked, k), (asked + 1, k - 1)):
            communication = ffi.new("struct overlap_footprint *", (32, 16, 0, size))
            assert plan.lib.overlap_blocks_beside(gpu, shaped, communication) == beside


@pytest.mark.parametrize(
    ("key", "computation", "communication", "expected"),
    [
        ("h100", GEMM, NCCL_21, [(1, 115713, 128256)]),
        ("h200", GEMM, NCCL_21, [(1, 115713, 128256)]),
        ("b200", GEMM, NCCL_21, [(1, 115713, 128256)]),
        ("h100", GEMM, NCCL_27, [(1, 115713, 127616)]),
        ("h100", (128, 32, 0, 0), nccl(20832, 544), [(1, 115713, 128256)]),  # elementwise
        ("h100", GEMM, NCCL_30, []),
        ("a100", GEMM, nccl(6176), []),
        ("a100", GEMM, nccl(6176, dynamic=9 * 4112), [(1, 82945, 122624)]),
        ("a100", (256, 230, 0, 147456), nccl(6176), []),
        ("a40", (256, 40, 2048, 0), nccl(6176), []),
        ("mi250x", (256, 64, 8192, 0), RCCL, [(2, 13313, 14336), (1, 24577, 37376)]),
        ("mi250x", (256, 136, 32768, 0), RCCL, [(1, 1, 12800)]),
        ("mi250x", (256, 136, 32768, 0), (256, 356, 19808, 0), [(1, 1, 12800)]),
        ("mi250x", (256, 256, 0, 0), RCCL, []),
        ("mi300x", (64, 8, 0, 0), (256, 512, 19808, 0), []),
    ],
)
def test_the_published_examples(
    plan: Planner, key: str, computation: Footprint, communication: Footprint, expected: list[tuple[int, int, int]]
) -> None:
    assert windows(plan(key, computation, communication)) == expected


def test_what_the_examples_come_to(plan: Planner) -> None:
    assert plan("h100", GEMM, NCCL_21).binding == plan.lib.OVERLAP_LIMIT_NONE
    assert plan("h100", GEMM, NCCL_30).binding == plan.lib.OVERLAP_LIMIT_SHARED
    assert plan.answer("h100", GEMM, NCCL_21, keep=50) == ("make_room", "shaped", 115713)
    assert plan.answer("h100", (128, 32, 0, 0), nccl(20832, 544), keep=50) == ("priority", "below_keep", 0)
    assert plan.answer("mi250x", (256, 64, 8192, 0), RCCL, keep=25) == ("make_room", "shaped", 13313)
    assert plan.answer("mi250x", (256, 64, 8192, 0), RCCL, keep=26) == ("priority", "below_keep", 0)
    assert plan.answer("mi250x", (256, 136, 32768, 0), RCCL, keep=50) == ("make_room", "shaped", 1)
    assert plan.answer("mi250x", (256, 256, 0, 0), RCCL) == ("leave", "no_room_registers", 0)
    assert plan.answer("mi300x", (64, 1, 0, 0), (256, 512, 19808, 0)) == ("leave", "no_room_registers", 0)
    assert plan.answer("a100", GEMM, nccl(6176), keep=50) == ("priority", "priority", 49152)
    assert plan("a100", GEMM, nccl(6176)).beside_after_drain == 1
    assert plan.answer("a100", (256, 230, 0, 147456), nccl(6176)) == ("leave", "no_room_registers", 147456)


def test_a_warp_specialised_gemm_leaves_no_registers(plan: Planner) -> None:
    for communication in [(32, 96, 0, 0), (160, 96, 20832, 82240), NCCL_21, nccl(36800, 640)]:
        gemm = 384, 168, 0, 200_000
        answer = plan("h100", gemm, communication)
        assert windows(answer) == []
        assert (answer.native_blocks, answer.beside_after_drain) == (1, 0)
        assert answer.binding == plan.lib.OVERLAP_LIMIT_REGISTERS
        assert plan.answer("h100", gemm, communication)[:2] == ("leave", "no_room_registers")


def test_settings_that_shrink_communication(plan: Planner) -> None:
    ffi, lib = _native.ffi, plan.lib

    def knobs(key: str, communication: Footprint) -> list[tuple[str, int, int]]:
        before, after, found = (
            ffi.new("struct overlap_footprint *", communication),
            ffi.new("struct overlap_footprint *"),
            [],
        )
        while (name := lib.overlap_knob(len(found), plan.gpus[key], before, after)) != ffi.NULL:
            found.append((_native.text(name), after.threads, after.registers))
            assert (after.static_shared, after.dynamic_shared) == (before.static_shared, before.dynamic_shared)
        return found

    ring = "with NCCL_ALGO=Ring"
    assert knobs("h100", nccl(0, 640)) == [
        (f"NCCL_NTHREADS=256 {ring}", 288, 96),
        (f"NCCL_NTHREADS=128 {ring}", 160, 96),
    ]
    assert knobs("a40", nccl(0, 200)) == [
        (f"NCCL_NTHREADS=256 {ring}", 200, 96),
        (f"NCCL_NTHREADS=128 {ring}", 160, 96),
    ]
    assert knobs("mi250x", (256, 356, 0, 0)) == [("RCCL_UNROLL_FACTOR=0", 256, 280)]
    assert (
        lib.overlap_knob(
            HUGE, plan.gpus["h100"], ffi.new("struct overlap_footprint *"), ffi.new("struct overlap_footprint *")
        )
        == ffi.NULL
    )


# ---- Corners ----


@pytest.mark.parametrize(
    "computation",
    [
        (0, 32, 0, 0),
        (1025, 32, 0, 0),
        (HUGE, 32, 0, 0),
        (128, HUGE, 0, 0),
        (1024, 129, 0, 0),
        (128, 32, 300_000, 0),
        (128, 32, HUGE, HUGE),
        (128, 32, 0, HUGE),
        (HUGE, HUGE, HUGE, HUGE, HUGE, HUGE),
    ],
)
def test_a_kernel_that_cannot_be_launched_is_left_alone(plan: Planner, computation: Footprint) -> None:
    for key, shape in product(KEYS, ("leave", "make_room", "blocks", "percent", "bytes")):
        answer = plan(key, computation, (32, 16, 0, 0), shape, 1)
        assert (answer.native_blocks, answer.blocks, answer.window_count) == (0, 0, 0)
        assert plan.answer(key, computation, (32, 16, 0, 0), shape, 1) == ("leave", "cannot_launch", computation[3])


@pytest.mark.parametrize(
    ("communication", "reason"),
    [
        ((0, 96, 0, 0), "no_room_warps"),
        ((1056, 16, 0, 0), "no_room_warps"),
        ((128, HUGE, 0, 0), "no_room_registers"),
        ((1024, 160, 0, 0), "no_room_registers"),
        ((128, 32, 240_000, 0), "no_room_shared_memory"),
        ((128, 32, HUGE, HUGE), "no_room_shared_memory"),
        ((HUGE, HUGE, HUGE, HUGE), "no_room_warps"),
    ],
)
def test_communication_that_fits_nowhere(plan: Planner, communication: Footprint, reason: str) -> None:
    for key in KEYS:
        answer = plan(key, (128, 32, 0, 8192), communication)
        assert (answer.beside_after_drain, answer.window_count) == (-1, 0)
        assert plan.answer(key, (128, 32, 0, 8192), communication) == ("leave", reason, 8192)


def test_without_communication_only_the_users_own_numbers_are_used(plan: Planner) -> None:
    assert plan.answer("h100", GEMM, None) == ("leave", "no_communication_seen", 49152)
    assert plan.answer("h100", GEMM, None, "blocks", 1) == ("cap", "shaped", 115713)
    assert plan.answer("h100", GEMM, None, "leave") == ("leave", "rule_leave", 49152)
    assert plan("h100", GEMM, None).beside_after_drain == -1


def test_slots_and_barriers_are_given_out_too(plan: Planner) -> None:
    gpu = _native.ffi.new("struct overlap_gpu *", plan.gpus["h100"][0])
    gpu.blocks = 1
    assert plan.answer(gpu, (32, 16, 0, 0), (32, 16, 0, 0)) == ("leave", "no_room_slots", 0)
    many = 32, 16, 0, 0, 40
    answer = plan("h100", many, (32, 16, 0, 0, 25))
    assert (answer.native_blocks, answer.native_limit) == (1, plan.lib.OVERLAP_LIMIT_BARRIERS)
    assert answer.binding == plan.lib.OVERLAP_LIMIT_BARRIERS
    assert plan.answer("h100", many, (32, 16, 0, 0, 25)) == ("leave", "no_room_slots", 0)
    assert plan.answer("h100", many, (32, 16, 0, 0, 24))[0] == "room_already"
    assert plan.answer("a100", many, (32, 16, 0, 0, 25))[0] == "make_room", "they are not counted before sm_90"
    # AMD counts for itself who needs one: what the footprint says means nothing there.
    assert plan.answer("mi250x", (128, 16, 0, 0, 40), (64, 16, 0, 0, 40)) == plan.answer(
        "mi250x", (128, 16, 0, 0), (64, 16, 0, 0)
    )


def test_the_users_own_numbers(plan: Planner) -> None:
    assert plan.answer("h100", GEMM, NCCL_21, "blocks", 1) == ("cap", "shaped", 115713)
    assert plan.answer("h100", GEMM, NCCL_30, "blocks", 1) == ("cap", "capped_without_room", 115713)
    assert plan.answer("h100", GEMM, NCCL_21, "percent", 50) == ("cap", "shaped", 115713)
    assert plan.answer("h100", GEMM, NCCL_21, "bytes", 120_000) == ("cap", "shaped", 120_000)
    assert plan.answer("h100", GEMM, NCCL_21, "bytes", 129_000) == ("cap", "capped_without_room", 129_000)
    assert plan.answer("h100", GEMM, NCCL_21, "bytes", 232_449) == ("leave", "no_room_shared_memory", 49152)
    assert plan.answer("h100", GEMM, NCCL_21, "blocks", 2) == ("leave", "room_already", 49152)
    assert plan.answer("h100", GEMM, NCCL_21, "blocks", 1, keep=51) == ("leave", "below_keep", 49152)
    assert plan.answer("h100", GEMM, NCCL_21, "blocks", 1, keep=50) == ("cap", "shaped", 115713)
    assert plan("h100", GEMM, NCCL_21, "blocks", 1).blocks == 1
