"""What would change a refusal: each sentence names a setting, and the setting does what the sentence says."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyshim.explain.answer import Explainer

Answer = Callable[..., dict[str, Any]]
RING = "NCCL_NTHREADS=256 with NCCL_ALGO=Ring"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, None),
        ({"comm_threads": 640}, f"{RING} would: k=1, 115,713 to 128,256 bytes"),
        ({"comm_threads": 544}, f"{RING} would: k=1, 115,713 to 128,256 bytes"),
        (
            {"comm_threads": 640, "threads": 512, "registers": 72},
            "NCCL_NTHREADS=128 with NCCL_ALGO=Ring would: communication fits beside the kernel as launched",
        ),
        (
            {"comm_threads": 640, "comm_static_smem": 36800},
            f"{RING} would: communication fits beside 1 of 2 blocks, once the others have ended",
        ),
        ({"comm_static_smem": 36800}, None),
        ({"registers": 32, "dynamic_smem": 0}, "keep_at_least: 6% would: k=1, 115,713 to 128,256 bytes"),
        ({"shape": "blocks_per_sm=1", "keep_at_least": 51}, "keep_at_least: 50% would: k=1, 115,713 bytes"),
        ({"shape": "dynamic_shared_memory=1MiB"}, None),
        ({"threads": 384, "registers": 168}, None),
        ({"blocks": 264}, "a grid of more than 264 blocks would be shaped: 264 are resident at once"),
        ({"blocks": 100, "threads": 384, "registers": 168}, None),  # no larger grid would be
        ({"shape": "leave"}, None),
        ({"kernel": "ncclDevKernel_SendRecv"}, None),
        ({"threads": 1025}, "threads: a block has at most 1,024, and at least one"),
        ({"threads": 0}, "threads: a block has at most 1,024, and at least one"),
        ({"registers": 256}, "registers: a thread has at most 255, a block 65,536"),
        ({"threads": 1024}, "registers: a thread has at most 255, a block 65,536"),
        ({"static_smem": 200_000}, "shared memory: a block has at most 232,448 bytes"),
        ({"barriers": 100}, "barriers and scalar registers: one block asks for more than there are"),
        (
            {"gpu": "mi250x", "threads": 256, "registers": 200, "dynamic_smem": 0, "comm_threads": 256,
             "comm_registers": 356, "comm_static_smem": 19808, "comm_dynamic_smem": 0},
            "RCCL_UNROLL_FACTOR=0 would: k=1, 32,769 to 45,568 bytes",
        ),
    ],
)  # fmt: skip
def test_the_sentence(answer: Answer, changes: dict[str, Any], sentence: str | None) -> None:
    assert answer(**changes)["help"] == sentence


def test_a_rule_that_waits_for_windows_is_answered_as_inside_one(answer: Answer, tmp_path: Any) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('policy: 1\nname: mine\ncompute:\n  - match: {kernel: "*"}\n    shape: {blocks_per_sm: 1}\n')
    found = answer(policy=str(file), kernel="gemm")
    assert (found["help"], found["reason"]) == (None, "shaped")
    assert (found["dynamic_shared_memory"], found["rule"]["when"]) == (115713, "overlapping")


def test_what_is_promised_is_kept(
    explainer: Explainer, random_request: Callable[[random.Random], dict[str, Any]]
) -> None:
    """A request changed as its answer advises gets the answer that was promised."""
    source, followed = random.Random(3), 0
    promise = re.compile(r"(.*) would: k=(\d+), ([\d,]+)(?: to [\d,]+)? bytes")
    for _ in range(6000):
        asked = random_request(source)
        asked.pop("blocks", None)
        found = explainer.answer(asked)
        assert found["help"] is None or found["control"] in ("leave", "priority")
        kept = promise.fullmatch(found["help"] or "")
        if not kept:
            continue
        setting, blocks, size = kept[1], int(kept[2]), int(kept[3].replace(",", ""))
        changed = {
            "NCCL_NTHREADS=256 with NCCL_ALGO=Ring": {"comm_threads": min(288, asked["comm_threads"])},
            "NCCL_NTHREADS=128 with NCCL_ALGO=Ring": {"comm_threads": min(160, asked["comm_threads"])},
            "RCCL_UNROLL_FACTOR=0": {"comm_registers": min(280, asked["comm_registers"])},
        }
        keep = re.fullmatch(r"keep_at_least: (\d+)%", setting)
        then = explainer.answer({**asked, **({"keep_at_least": int(keep[1])} if keep else changed[setting])})
        assert (then["blocks"], then["dynamic_shared_memory"]) == (blocks, size), (asked, found["help"])
        assert then["control"] in ("make_room", "cap")
        followed += 1
    assert followed > 300
