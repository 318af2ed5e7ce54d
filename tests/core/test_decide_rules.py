"""What a rule may say of room, kernels that read their own size, and the order of refusals.

Tables are built here byte by byte, from the header alone.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim import _native

NO_RULE = 2**32 - 1
MANY = 100_000
EVERYTHING = (0, 2**64 - 1)
RANGES = ("threads", "waves_percent", "resident_blocks")
SHAPES = {"leave": 0, "blocks": 1, "percent": 2, "bytes": 3, "make_room": 4}
COOPERATIVE, CLUSTER, PROGRAMMATIC, SMALL, UNKNOWN, REFUSED, ASKED, COMMUNICATION = (1 << n for n in range(8))

GEMM = 128, 224, 0, 49152  # 2 resident on an H100, 264 blocks in one wave
NCCL = 288, 96, 20832, 82240

Rule = dict[str, Any]


def rule(shape: str = "make_room", value: int = 0, **fields: Any) -> Rule:
    """One that matches everything, always."""
    ranges = dict.fromkeys(RANGES, EVERYTHING)
    return {**ranges, "shape": SHAPES[shape], "value": value, "when": 1, **fields}


def table(*rules: Rule, fixed: tuple[str, ...] = (), **policy: Any) -> bytes:
    """One policy. fixed: kernels that read their own dynamic size; they are the table's only patterns."""
    ffi, lib = _native.ffi, _native.header()
    strings, patterns = b"\0test\0", []
    for text in fixed:
        patterns.append(len(strings))
        strings += text.encode() + b"\0"
    policy = {"name": 1, "rule_count": len(rules), "raise_share": 50, "fixed_size": (0, len(fixed)), **policy}
    body = bytes(ffi.buffer(ffi.new("struct overlap_policy *", policy)))
    body += bytes(ffi.buffer(ffi.new("struct overlap_rule[]", list(rules)))) if rules else b""
    body += struct.pack(f"<{len(patterns)}I", *patterns) + strings
    head = (lib.OVERLAP_TABLE_MAGIC, lib.OVERLAP_ABI_VERSION, 32 + len(body), zlib.crc32(body), 1, len(rules))
    return struct.pack("<8I", *head, len(patterns), len(strings)) + body


class Decider:
    def __init__(self, lib: Any, gpus: dict[str, Any]) -> None:
        self.lib, self.gpus = lib, gpus

    def __call__(
        self,
        data: bytes,
        gpu: str = "h100",
        kernel: str = "gemm",
        blocks: int = MANY,
        flags: int = 0,
        footprint: tuple[int, ...] = GEMM,
        communication: tuple[int, ...] | None = NCCL,
        policy: int = 0,
    ) -> Any:
        ffi = _native.ffi
        assert _native.text(self.lib.overlap_table_check(data, len(data))) == ""
        limit = max(0, self.gpus[gpu].shared_optin - footprint[2])
        launch = ffi.new("struct overlap_launch *", (blocks, flags, limit, footprint))
        beside = ffi.new("struct overlap_footprint *", communication) if communication else ffi.NULL
        decision = ffi.new("struct overlap_decision *")
        self.lib.overlap_decide(data, policy, self.gpus[gpu], kernel.encode(), ffi.NULL, launch, beside, decision)
        return decision

    def reason(self, *arguments: Any, **facts: Any) -> str:
        return _native.text(self.lib.overlap_reason_name(self(*arguments, **facts).reason))


@pytest.fixture(scope="module")
def decide(library: Any, gpus: dict[str, Any]) -> Decider:
    return Decider(library, gpus)


def test_the_constants_here_are_those_of_the_header() -> None:
    lib = _native.header()
    assert all(getattr(lib, f"OVERLAP_SHAPE_{name.upper()}") == value for name, value in SHAPES.items())
    assert (lib.OVERLAP_LAUNCH_OCCUPANCY_ASKED, lib.OVERLAP_LAUNCH_COMMUNICATION) == (ASKED, COMMUNICATION)
    assert lib.OVERLAP_LAUNCH_SMALL_CARVEOUT == SMALL


# ---- Room ----

CASES = [
    ("shaped", "make_room", GEMM, NCCL),
    ("room_already", "make_room", (128, 112, 0, 100_000), (160, 96, 0, 20_000)),
    ("priority", "make_room", GEMM, (288, 96, 36800, 82240)),
    ("no_communication_seen", "make_room", GEMM, None),
    ("no_room_registers", "make_room", (384, 168, 0, 0), NCCL),
    ("no_room_shared_memory", "make_room", (128, 64, 0, 200_000), NCCL),
]


@pytest.mark.parametrize(("reason", "shape", "footprint", "communication"), CASES)
def test_the_decision_is_the_planners(
    decide: Decider, reason: str, shape: str, footprint: tuple[int, ...], communication: tuple[int, ...] | None
) -> None:
    ffi = _native.ffi
    gpu = decide.gpus["h100"]
    for keep in (0, 40, 41, 50, 100):
        data = table(rule(shape, keep_at_least=keep))
        decision = decide(data, footprint=footprint, communication=communication)
        plan, launch = ffi.new("struct overlap_plan *"), ffi.new("struct overlap_launch *")
        launch.maximum_dynamic, launch.footprint = gpu.shared_optin - footprint[2], footprint
        beside = ffi.new("struct overlap_footprint *", communication) if communication else ffi.NULL
        decide.lib.overlap_plan_of(gpu, launch, beside, SHAPES[shape], 0, keep, plan)
        assert (decision.reason, decision.control, decision.dynamic_shared, decision.native_blocks) == (
            plan.reason,
            plan.control,
            plan.dynamic_shared,
            plan.native_blocks,
        )
    assert decide.reason(table(rule(shape)), footprint=footprint, communication=communication) == reason


@pytest.mark.parametrize(("key", "reason"), [("a40", "no_room_warps"), ("h100", "no_room_registers")])
def test_what_leaves_no_room(decide: Decider, key: str, reason: str) -> None:
    big = (1024, 32, 0, 0) if key == "a40" else (1024, 64, 0, 0)
    assert decide.reason(table(rule()), gpu=key, footprint=big, communication=(1024, 16, 0, 0)) == reason


def test_barriers_count_as_slots(decide: Decider) -> None:
    reason = decide.reason(table(rule()), footprint=(32, 16, 0, 0, 40), communication=(32, 16, 0, 0, 25))
    assert reason == "no_room_slots"


# ---- What forbids to shape ----


@pytest.mark.parametrize("shape", ["blocks", "percent", "bytes", "make_room"])
def test_kernels_that_read_their_own_size(decide: Decider, shape: str) -> None:
    data = table(rule(shape, 1), fixed=("*sort*", "scan"))
    for kernel in ("radix_sort_7", "scan", "_Z4scanPf", "_ZN3cub4scanE"):
        assert decide.reason(data, kernel=kernel) == "reads_dynamic_size"
    for kernel in ("gemm", "scanner", "_Z7scannerPf", ""):
        assert decide.reason(data, kernel=kernel) != "reads_dynamic_size"
    assert decide.reason(table(rule("leave"), fixed=("*",))) == "rule_leave"


def test_a_small_carveout_has_no_room_to_make(decide: Decider) -> None:
    """What is counted on is not there, and fewer blocks stay than a number of them says; bytes are the user's word."""
    decision = decide(table(rule()), flags=SMALL)
    reason = _native.text(decide.lib.overlap_reason_name(decision.reason))
    assert (reason, decision.dynamic_shared) == ("no_room_shared_memory", 49152)
    assert decide.reason(table(rule()), flags=SMALL, communication=None) == "no_communication_seen"
    for shape, value in (("blocks", 1), ("percent", 50)):
        assert decide.reason(table(rule(shape, value)), flags=SMALL) == "no_room_shared_memory"
    assert decide.reason(table(rule("bytes", 120_000)), flags=SMALL) == "capped_without_room"


# From the first to the last question, each with what makes it the answer.
ORDER: list[tuple[str, dict[str, Any]]] = [
    ("communication", {"flags": COMMUNICATION}),
    ("observe_only", {"policy": NO_RULE}),
    ("unknown_footprint", {"flags": UNKNOWN}),
    ("rule_leave", {"rule": {"shape": SHAPES["leave"]}}),
    ("cooperative", {"flags": COOPERATIVE}),
    ("cluster", {"flags": CLUSTER}),
    ("programmatic", {"flags": PROGRAMMATIC}),
    ("occupancy_asked", {"flags": ASKED}),
    ("reads_dynamic_size", {"fixed": ("gemm",)}),
    ("refused", {"flags": REFUSED}),
    ("cannot_launch", {"footprint": (2000, 32, 0, 0)}),
    ("one_wave", {"blocks": 1}),
    ("no_communication_seen", {"communication": None}),
    ("below_keep", {"rule": {"keep_at_least": 51}}),
    ("shaped", {}),
]


def test_of_two_reasons_the_first_is_given(decide: Decider) -> None:
    for first, second in itertools.combinations(ORDER, 2):
        facts: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        flags = 0
        for _, more in (second, first):
            flags |= more.get("flags", 0)
            fields.update(more.get("rule", {}))
            facts.update({key: value for key, value in more.items() if key not in ("flags", "rule")})
        data = table({**rule(), **fields}, fixed=facts.pop("fixed", ()))
        assert decide.reason(data, flags=flags, **facts) == first[0], f"beside {second[0]}"
        is_left = decide(data, flags=flags, **facts).control == decide.lib.OVERLAP_CONTROL_LEAVE
        assert is_left or first[0] == "below_keep", first[0]  # for which priority may still do something


# ---- For which grids an answer holds ----

edges = st.sampled_from([0, 1, 263, 264, 265, 528, 10_000, 2**32, 2**63, 2**64 - 1]) | st.integers(0, 40_000)
rules = st.builds(
    lambda shape, value, **fields: rule(shape, value % 100 + 1 if shape == "percent" else value, **fields),
    st.sampled_from(list(SHAPES)),
    st.integers(1, 200_000) | st.integers(1, 8),
    threads=st.sampled_from([EVERYTHING, EVERYTHING, (0, 128), (129, 2**64 - 1)]),
    waves_percent=st.just(EVERYTHING) | st.tuples(st.integers(0, 500), st.just(2**64 - 1) | st.integers(0, 3000)),
    resident_blocks=st.sampled_from([EVERYTHING, EVERYTHING, (2, 2**64 - 1), (1, 1)]),
    when=st.sampled_from([1, 1, 1, 0]),
    keep_at_least=st.integers(0, 100),
)
footprints = st.sampled_from([GEMM, (128, 96, 0, 30000), (384, 168, 0, 0), (2000, 32, 0, 0)]) | st.tuples(
    st.integers(1, 1024), st.integers(1, 255), st.integers(0, 20_000), st.integers(0, 60_000)
)


@settings(max_examples=500)
@given(
    some=st.lists(rules, max_size=4),
    fixed=st.sampled_from([(), (), ("gemm",), ("other",)]),
    footprint=footprints,
    communication=st.sampled_from([None, NCCL, (288, 96, 36800, 82240), (160, 96, 0, 0)]),
    flags=st.sampled_from([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 130, 256]),
    grid=edges,
    others=st.lists(edges, min_size=4, max_size=8),
    gpu=st.sampled_from(["a40", "a100", "h100", "mi250x"]),
)
def test_every_grid_of_the_interval_gets_the_same_answer(
    decide: Decider,
    some: list[Rule],
    fixed: tuple[str, ...],
    footprint: tuple[int, ...],
    communication: tuple[int, ...] | None,
    flags: int,
    grid: int,
    others: list[int],
    gpu: str,
) -> None:
    data = table(*some, fixed=fixed)

    def answer(blocks: int) -> Any:
        return decide(data, gpu=gpu, blocks=blocks, flags=flags, footprint=footprint, communication=communication)

    def facts(decision: Any) -> tuple[int, ...]:
        return (
            decision.reason,
            decision.dynamic_shared,
            decision.rule,
            decision.native_blocks,
            decision.control,
            decision.windowed,
        )

    first = answer(grid)
    low, high = first.minimum_blocks, first.maximum_blocks
    assert low <= grid <= high
    for blocks in {low, high, low + (high - low) // 2, *(low + other % (high - low + 1) for other in others), *others}:
        if low <= blocks <= high:
            assert facts(answer(blocks)) == facts(first), (blocks, low, high)
    assert first.dynamic_shared >= footprint[3]
    if first.dynamic_shared > footprint[3]:
        assert low > first.native_blocks * decide.gpus[gpu].multiprocessors, "no grid of one wave among them"
