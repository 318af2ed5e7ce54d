"""The planner's own answers for real footprints, and the numbers that they are made of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyshim.policy.gpus import known
from pyshim.room.room import usual_block
from tools.docs import planned
from tools.docs.planned import Kernel, Sizes

RESERVED = 1024  # of shared memory, for each block
COMPUTE = json.loads(planned.COMPUTE.read_text(encoding="utf-8"))


def test_sizes_on_h100() -> None:
    """M / 2 < s_K <= M - s_C, less the 1,024 bytes of the system: 233,472 / 2 = 116,736 and 233,472 - 104,192."""
    gpu = planned.known_gpu("h100")
    gemm = Kernel("", 128, 224, 0, 49152)
    small, whole = (Kernel("", threads, 96, 20832, 82240) for threads in (288, 544))
    assert planned.answer(gpu, gemm, small).rooms == (Sizes(1, 115_713, 128_256, True),)
    never = planned.answer(gpu, gemm, whole)
    assert (never.control, never.binding) == ("never together", "registers")
    assert planned.answer(gpu, gemm, Kernel("", 32, 32, 0, 0)).control == "room already"
    assert planned.answer(gpu, gemm, Kernel("", 32, 32, 0, 999_999)).control == "communication fits nowhere"


def test_what_priority_alone_can_do() -> None:
    """Registers, in a quarter of an A40: 16,384 less 3 x 3,072 of NCCL's 9 warps, in portions of 32 x 32."""
    gpu, collective = planned.known_gpu("a40"), Kernel("", 288, 96, 6176, 82240)
    found = planned.answer(gpu, Kernel("", 128, 27, 0, 0), collective)
    assert (found.control, found.after) == ("priority only", 7)
    never = planned.answer(gpu, Kernel("", 128, 146, 49152, 32768), collective)
    assert (never.control, never.binding) == ("never together", "shared memory")


def test_what_a_block_of_nccl_takes_on_h100() -> None:
    """The sizes that decide whether a capped computation leaves room, in granules of 128 bytes; and NCCL's formula."""
    taken = {
        one.version: one.kernel.static + (one.kernel.dynamic or 0) + RESERVED + 127 & ~127
        for one in planned.communication("sm_90")
    }
    assert [taken[version] for version in ("2.21", "2.28", "2.30", "2.32")] == [104192, 104832, 120064, 120064]
    assert planned.NCCL_DYNAMIC == 640 // 32 * (8 * 32 + 1) * 16
    assert {one.version for one in planned.communication("sm_100")} == {"2.27", "2.28", "2.30", "2.32"}


@pytest.mark.parametrize("gpu", known(), ids=lambda gpu: gpu.key)
def test_room_is_made_for_the_newest_of_them(gpu: Any) -> None:
    name, takes = usual_block(gpu)
    *_, newest = (one for one in planned.communication(gpu.architecture) if one.usual and one.path != "hipLaunchKernel")
    kernel = newest.kernel
    assert takes[:4] == (kernel.threads, kernel.registers, kernel.static, kernel.dynamic)
    assert name.startswith(f"{planned.library_of(gpu.architecture)} {newest.version}.")
    assert gpu.vendor == "nvidia" or f" {kernel.name} by {newest.path}" in name


@pytest.mark.parametrize("row", COMPUTE["rows"], ids=lambda row: f"{row['name']} {row['gpus'][0]}")
def test_each_number_of_a_kernel_says_where_it_is_from(row: dict[str, Any]) -> None:
    numbers = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
    assert list(row) == ["name", "set", "gpus", *numbers, "row", "evidence"]
    assert set(row["evidence"].values()) <= set(COMPUTE["evidence"])
    assert {name for name in numbers if row[name] is not None} == set(row["evidence"])
    assert (row["row"] is None) == (set(row["evidence"].values()) == {"assumed"})


def test_a_gpu_that_nobody_knows() -> None:
    with pytest.raises(SystemExit, match="no GPU is called h1000"):
        planned.known_gpu("h1000")
