"""Answers: the keys that are promised, the published numbers, and the same decisions as the library's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.explain.answer import Explainer
from pyshim.explain.planner import CONTROLS, LIMITS
from pyshim.explain.request import Mistake

Answer = Callable[..., dict[str, Any]]
RCCL = {"comm_threads": 256, "comm_registers": 280, "comm_static_smem": 19808, "comm_dynamic_smem": 0}


def test_the_keys_and_their_values(answer: Answer) -> None:
    assert answer() == {
        "gpu": "h100",
        "native_blocks": 2,
        "limit": "registers",
        "windows": [{"blocks": 1, "minimum": 115713, "maximum": 128256, "inflates": True}],
        "beside_after_drain": 1,
        "binding": None,
        "control": "make_room",
        "dynamic_shared_memory": 115713,
        "blocks": 1,
        "reason": "shaped",
        "rule": {"policy": None, "line": None, "shape": "make_room", "keep_at_least": 50, "when": "always"},
        "help": None,
    }


def test_names_are_the_headers(library: Any) -> None:
    for prefix, names in (("CONTROL", CONTROLS), ("LIMIT", LIMITS)):
        for index, name in enumerate(names):
            word = {None: "NONE", "shared_memory": "SHARED"}.get(name, str(name).upper())
            assert getattr(library, f"OVERLAP_{prefix}_{word}") == index


def test_every_gpu(answer: Answer, gpu_keys: list[str]) -> None:
    for key in gpu_keys:
        assert answer(gpu=key, **(RCCL if key.startswith("mi") else {}))["gpu"] == key
    assert answer(gpu="H100") == answer()


@pytest.mark.parametrize(
    ("changes", "control", "size", "reason"),
    [
        ({"comm_static_smem": 36800}, "priority", 49152, "priority"),
        ({"threads": 384, "registers": 168}, "leave", 49152, "no_room_registers"),
        ({"comm_threads": 32, "comm_registers": 32, "comm_dynamic_smem": 0}, "room_already", 49152, "room_already"),
        ({"registers": 32, "dynamic_smem": 0}, "priority", 0, "below_keep"),
        ({"registers": 32, "dynamic_smem": 0, "keep_at_least": 6}, "make_room", 115713, "shaped"),
        ({"threads": 2000}, "leave", 49152, "cannot_launch"),
        ({"threads": 0}, "leave", 49152, "cannot_launch"),
        ({"dynamic_smem": 300_000}, "leave", 300_000, "cannot_launch"),
        ({"dynamic_smem": 2**40}, "leave", 2**40, "cannot_launch"),
        ({"dynamic_smem": 10**30}, "leave", 10**30, "cannot_launch"),
        ({"threads": 10**30}, "leave", 49152, "cannot_launch"),
        ({"comm_threads": 10**30}, "leave", 49152, "no_room_warps"),
        ({"shape": "leave"}, "leave", 49152, "rule_leave"),
        ({"shape": "blocks_per_sm=1"}, "cap", 115713, "shaped"),
        ({"shape": "blocks_per_sm=2"}, "leave", 49152, "room_already"),
        ({"shape": "dynamic_shared_memory=120000"}, "cap", 120_000, "shaped"),
        ({"shape": "blocks_per_sm=50%", "comm_static_smem": 36800}, "cap", 115713, "capped_without_room"),
        ({"blocks": 264}, "leave", 49152, "one_wave"),
        ({"blocks": 265}, "make_room", 115713, "shaped"),
        ({"kernel": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}, "leave", 49152, "communication"),
        ({"kernel": "gemm"}, "make_room", 115713, "shaped"),
        ({"gpu": "mi250x", "threads": 256, "registers": 64, "static_smem": 8192, "dynamic_smem": 0, **RCCL},
         "priority", 0, "below_keep"),
        ({"gpu": "mi250x", "threads": 256, "registers": 64, "static_smem": 8192, "dynamic_smem": 0,
          "keep_at_least": 25, **RCCL}, "make_room", 13313, "shaped"),
        ({"gpu": "mi250x", "threads": 256, "registers": 256, "dynamic_smem": 0, **RCCL},
         "leave", 0, "no_room_registers"),
    ],
)  # fmt: skip
def test_what_is_done(answer: Answer, changes: dict[str, Any], control: str, size: int, reason: str) -> None:
    found = answer(**changes)
    assert (found["control"], found["dynamic_shared_memory"], found["reason"]) == (control, size, reason)
    if reason == "cannot_launch":
        assert (found["native_blocks"], found["limit"], found["windows"]) == (0, None, [])


def test_barriers_and_scalar_registers(answer: Answer) -> None:
    many = {"threads": 32, "registers": 16, "dynamic_smem": 0, "barriers": 40}
    few = {"comm_threads": 32, "comm_registers": 16, "comm_static_smem": 0, "comm_dynamic_smem": 0}
    assert answer(**many, **few, comm_barriers=25)["reason"] == "no_room_slots"
    assert answer(**many, **few, comm_barriers=24)["control"] == "room_already"
    amd = {"gpu": "mi250x", "threads": 1024, "registers": 32, "dynamic_smem": 0, "sgprs": 112}
    amd = {**amd, "comm_threads": 1024, "comm_registers": 32, "comm_static_smem": 0, "comm_dynamic_smem": 0}
    assert answer(**amd, comm_sgprs=112)["reason"] == "no_room_registers"
    assert answer(**amd)["control"] == "room_already"


def test_without_a_policy_it_is_what_a_policy_of_that_rule_would_do(
    explainer: Explainer, random_request: Callable[[random.Random], dict[str, Any]]
) -> None:
    """The short way (the planner alone) and the library's decision about a launch of many waves are the same."""
    source = random.Random(5)
    for _ in range(3000):
        asked = random_request(source)
        asked.pop("blocks", None)
        assert explainer.answer(asked) == explainer.answer({**asked, "blocks": 2**48}), asked


POLICY = """policy: 1
name: mine
gpu: ["NVIDIA H100*", sm_80]
communication:
  kernels: [all, "my_reduce*", "ns::ring"]
  libraries: ["libmycomm.so*"]
compute:
  - match: {kernel: "later*"}
    shape: {blocks_per_sm: 1}
  - match: {kernel: "gemm*", waves: ">=2"}
    shape: {blocks_per_sm: 50%}
    when: always
  - match: {kernel: "*", library: "libcublas*"}
    shape: {dynamic_shared_memory: 128KiB}
    keep_at_least: 50%
    when: always
  - match: {kernel: "left*"}
    shape: leave
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "mine.yaml").write_text(POLICY)
    return str(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("changes", "control", "size", "reason", "line"),
    [
        ({"kernel": "gemm"}, "cap", 115713, "shaped", 10),
        ({"kernel": "_Z5gemm2Pf"}, "cap", 115713, "shaped", 10),
        ({"kernel": "gemm", "blocks": 528}, "cap", 115713, "shaped", 10),
        ({"kernel": "gemm", "blocks": 527}, "leave", 49152, "no_rule", None),
        ({"kernel": "other", "library": "libcublasLt.so.13"}, "cap", 131072, "capped_without_room", 13),
        ({"kernel": "other", "library": "libcublasLt.so.13", "blocks": 200}, "leave", 49152, "one_wave", 13),
        ({"kernel": "other"}, "leave", 49152, "no_rule", None),
        ({}, "leave", 49152, "no_rule", None),
        ({"kernel": "left"}, "leave", 49152, "rule_leave", 17),
        ({"kernel": "later"}, "cap", 115713, "shaped", 8),
        ({"kernel": "gemm", "gpu": "a40"}, "leave", 49152, "observe_only", None),
        ({"kernel": "gemm", "gpu": "a100"}, "cap", 82945, "capped_without_room", 10),
        ({"kernel": "my_reduce_7"}, "leave", 49152, "communication", None),
        ({"kernel": "_ZN2ns4ringEv"}, "leave", 49152, "communication", None),
        ({"kernel": "gemm", "library": "libmycomm.so.2"}, "leave", 49152, "communication", None),
        ({"kernel": "ncclDevKernel_SendRecv"}, "leave", 49152, "communication", None),
    ],
)
def test_a_policy_decides_as_in_the_library(
    answer: Answer, policy: str, changes: dict[str, Any], control: str, size: int, reason: str, line: int | None
) -> None:
    found = answer(policy=policy, **changes)
    assert (found["control"], found["dynamic_shared_memory"], found["reason"]) == (control, size, reason)
    assert (found["rule"] or {"line": None})["line"] == line
    if line == 10:
        assert found["rule"] == {
            "policy": "mine", "line": 10, "shape": "blocks_per_sm=50%", "keep_at_least": 0, "when": "always"
        }  # fmt: skip
    assert (
        found["native_blocks"]
        == answer(**{name: changes[name] for name in ("gpu",) if name in changes})["native_blocks"]
    )


def test_a_policy_does_not_say_what_communication_takes(answer: Answer, policy: str) -> None:
    nothing = dict.fromkeys(("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem"))
    for more in ({}, {"comm_threads": 32}):
        with pytest.raises(Mistake, match="missing required option"):
            answer(policy=policy, kernel="gemm", **{**nothing, **more})


def test_a_policy_and_a_shape_exclude_each_other(answer: Answer, policy: str) -> None:
    for name, value in (("shape", "leave"), ("keep_at_least", 50)):
        with pytest.raises(Mistake, match="goes without a policy"):
            answer(policy=policy, kernel="gemm", **{name: value})


def test_a_policy_that_is_not_there(answer: Answer) -> None:
    with pytest.raises(OverlapError, match="there is no policy"):
        answer(policy="no-such")


def test_a_plan_of_the_library_and_the_answer_are_one(
    explainer: Explainer, library: Any, random_request: Callable[[random.Random], dict[str, Any]]
) -> None:
    source, ffi = random.Random(9), _native.ffi
    plan, launch = ffi.new("struct overlap_plan *"), ffi.new("struct overlap_launch *")
    for _ in range(2000):
        asked = random_request(source)
        asked = {name: value for name, value in asked.items() if name not in ("shape", "blocks")}
        found = explainer.answer(asked)
        gpu = next(one for one in _native.gpus() if _native.text(one.key) == asked["gpu"])
        launch.footprint = tuple(asked[name] for name in ("threads", "registers", "static_smem", "dynamic_smem")) + (
            0,
            0,
        )
        launch.maximum_dynamic = max(0, gpu.shared_optin - asked["static_smem"])
        names = ("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem")
        communication = ffi.new("struct overlap_footprint *", [asked[name] for name in names])
        library.overlap_plan_of(gpu, launch, communication, library.OVERLAP_SHAPE_MAKE_ROOM, 0, 50, plan)
        assert found["native_blocks"] == plan.native_blocks
        assert found["beside_after_drain"] == plan.beside_after_drain
        assert (CONTROLS[plan.control], plan.dynamic_shared, plan.blocks) == (
            found["control"], found["dynamic_shared_memory"], found["blocks"]
        )  # fmt: skip
        assert [tuple(window.values()) for window in found["windows"]] == [
            (w.blocks, w.minimum, w.maximum, bool(w.inflates)) for w in plan.windows[0 : plan.window_count]
        ]
        assert json.loads(json.dumps(found)) == found
