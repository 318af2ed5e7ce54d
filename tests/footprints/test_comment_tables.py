"""The planner's own answers, for real footprints."""

from __future__ import annotations

from typing import Any

import pytest

from pyshim.footprints import collectives
from tools.footprints import tables


def test_sizes_on_h100(library: Any) -> None:
    """M / 2 < s_K <= M - s_C, less the 1,024 bytes of the system: 233,472 / 2 = 116,736 and 233,472 - 104,192."""
    gpu = tables.known_gpu("h100")
    gemm = tables.Kernel("", 128, 224, 0, 49152)
    small, whole = (tables.Kernel("", threads, 96, 20832, 82240) for threads in (288, 544))
    assert tables.answer(gpu, gemm, small).text == "room at 1 with 115,713 to 128,256"
    assert tables.answer(gpu, gemm, whole).text == "never together: registers"
    assert tables.answer(gpu, gemm, tables.Kernel("", 32, 32, 0, 0)).text == "room already"
    assert tables.answer(gpu, gemm, tables.Kernel("", 32, 32, 0, 999999)).text == "communication fits nowhere"


def test_what_priority_alone_can_do(library: Any) -> None:
    """Registers, in a quarter of an A40: 16,384 less 3 x 3,072 of NCCL's 9 warps, in portions of 32 x 32."""
    gpu, collective = tables.known_gpu("a40"), tables.Kernel("", 288, 96, 6176, 82240)
    answer = tables.answer(gpu, tables.Kernel("", 128, 27, 0, 0), collective)
    assert answer.text == "priority only: 7 beside it after the others have ended"
    gemm = tables.Kernel("", 128, 146, 49152, 32768)
    assert tables.answer(gpu, gemm, collective).text == "never together: shared memory"


@pytest.mark.parametrize(
    ("architecture", "image"),
    [
        ("sm_80", "sm_80"),
        ("sm_86", "sm_80"),
        ("sm_90", "sm_90"),
        ("sm_100", "sm_100f"),
        ("sm_70", None),
        ("gfx90a", None),
    ],
)
def test_the_image_that_a_gpu_runs(architecture: str, image: str | None) -> None:
    assert collectives.image_for(architecture, {"sm_80", "sm_89", "sm_90", "sm_100", "sm_100f"}) == image
