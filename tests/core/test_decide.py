"""Launch facts and rules -> decision: every reason, every range, and for which grids an answer may be kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from pyshim import _native
from pyshim.policy.model import HALF, NONE_RAISED, Match, Policy, Rule, Shape
from pyshim.policy.table import compile_table
from pyshim.policy.values import UNLIMITED, Range

NOTHING = 2**32 - 1


class Footprint(NamedTuple):
    threads: int
    registers: int
    static_shared: int
    dynamic_shared: int


GEMM = Footprint(128, 64, 0, 16384)
MATCHED = Rule(Match(), Shape("blocks", 1), 0, "always", 1)
OVERLAPPING = replace(MATCHED, when="overlapping")


class Decider:
    """One launch of `gemm` on an H100 by default: 128 threads, 64 registers, 16 KiB, 10,000 blocks; 8 resident."""

    def __init__(self, lib: Any, gpus: dict[str, Any]) -> None:
        self.lib, self.gpus = lib, gpus

    def __call__(
        self,
        *rules: Rule,
        gpu: str = "h100",
        policy: int = 0,
        kernel: str = "gemm",
        library: str | None = None,
        blocks: int = 10_000,
        flags: int = 0,
        footprint: Footprint = GEMM,
        maximum: int | None = None,
        communication: Footprint | None = None,
        raise_share: int = HALF,
        creators: tuple[str, ...] = (),
        table: bytes | None = None,
    ) -> Any:
        ffi = _native.ffi
        own = Policy("test", rules=rules, raise_share=raise_share, stream_creators=creators)
        data = table or compile_table([own])
        device = self.gpus[gpu]
        limit = max(0, device.shared_optin - footprint.static_shared) if maximum is None else maximum
        launch = ffi.new("struct overlap_launch *", (blocks, flags, limit, footprint))
        beside = ffi.new("struct overlap_footprint *", communication) if communication else ffi.NULL
        decision = ffi.new("struct overlap_decision *")
        name = ffi.NULL if library is None else ffi.new("char[]", library.encode())
        kernel_name = ffi.new("char[]", kernel.encode())
        self.lib.overlap_decide(data, policy, device, kernel_name, name, launch, beside, decision)
        return decision

    def reason(self, *rules: Rule, **facts: Any) -> str:
        return _native.text(self.lib.overlap_reason_name(self(*rules, **facts).reason))


@pytest.fixture(scope="module")
def decide(library: Any, gpus: dict[str, Any]) -> Decider:
    return Decider(library, gpus)


# Everything that this version can answer, each by the smallest change from a launch that is shaped.
CASES: list[tuple[str, list[Rule], dict[str, Any]]] = [
    ("shaped", [MATCHED], {}),
    ("shaped", [MATCHED], {"communication": Footprint(288, 96, 20832, 82240)}),
    ("capped_without_room", [MATCHED], {"communication": Footprint(640, 96, 36800, 100000)}),
    ("room_already", [replace(MATCHED, shape=Shape("blocks", 8))], {}),
    ("room_already", [replace(MATCHED, shape=Shape("percent", 100))], {}),
    ("room_already", [replace(MATCHED, shape=Shape("bytes", 16384))], {}),
    ("no_rule", [replace(MATCHED, match=Match(kernels=("other",)))], {}),
    ("no_rule", [], {}),
    ("rule_leave", [replace(MATCHED, shape=Shape("leave"))], {}),
    ("rule_leave", [replace(MATCHED, shape=Shape("leave"))], {"flags": "COOPERATIVE"}),
    ("observe_only", [], {"raise_share": NONE_RAISED}),
    ("no_rule", [], {"raise_share": 1}),
    ("no_rule", [], {"raise_share": NONE_RAISED, "creators": ("libnccl.so*",)}),
    ("no_rule", [replace(MATCHED, match=Match(kernels=("other",)))], {"raise_share": NONE_RAISED}),
    ("shaped", [MATCHED], {"raise_share": NONE_RAISED}),
    ("observe_only", [MATCHED], {"policy": NOTHING}),
    ("shaped", [OVERLAPPING], {}),
    ("communication", [MATCHED], {"flags": "COMMUNICATION"}),
    ("communication", [MATCHED], {"flags": "COMMUNICATION", "policy": NOTHING}),
    ("one_wave", [MATCHED], {"blocks": 8 * 132}),
    ("one_wave", [MATCHED], {"blocks": 1}),
    ("cooperative", [MATCHED], {"flags": "COOPERATIVE"}),
    ("cluster", [MATCHED], {"flags": "CLUSTER"}),
    ("programmatic", [MATCHED], {"flags": "PROGRAMMATIC"}),
    ("refused", [MATCHED], {"flags": "REFUSED"}),
    ("unknown_footprint", [MATCHED], {"flags": "UNKNOWN"}),
    ("cannot_launch", [MATCHED], {"footprint": Footprint(1024, 128, 0, 0)}),
    ("cannot_launch", [MATCHED], {"footprint": Footprint(2048, 32, 0, 0)}),
    ("below_keep", [replace(MATCHED, keep_at_least=50)], {}),
    ("no_room_shared_memory", [MATCHED], {"maximum": 49152}),
    ("no_room_shared_memory", [replace(MATCHED, shape=Shape("bytes", 232449))], {}),
    ("no_room_shared_memory", [replace(MATCHED, shape=Shape("bytes", 2**32 - 1))], {"maximum": 2**32 - 1}),
]


@pytest.mark.parametrize(("reason", "rules", "facts"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_the_reason(decide: Decider, reason: str, rules: list[Rule], facts: dict[str, Any]) -> None:
    constants = _native.header()
    facts = dict(facts)
    if isinstance(facts.get("flags"), str):
        facts["flags"] = getattr(constants, f"OVERLAP_LAUNCH_{facts['flags']}")
    assert decide.reason(*rules, **facts) == reason
    answer = decide(*rules, **facts)
    asked = facts.get("footprint", Footprint(128, 64, 0, 16384)).dynamic_shared
    shapes = decide.lib.overlap_reason_shapes(answer.reason)
    assert (answer.dynamic_shared > asked) == bool(shapes), "the size changes exactly under the reasons that say so"
    assert answer.dynamic_shared >= asked


@pytest.mark.parametrize(
    ("windowed", "rules", "facts"),
    [
        (0, [MATCHED], {}),
        (1, [OVERLAPPING], {}),
        (1, [OVERLAPPING], {"blocks": 1}),  # also what a launch in a window is left alone for
        (1, [replace(OVERLAPPING, match=Match(kernels=("gemm",))), MATCHED], {}),  # the first rule that matches says so
        (0, [replace(OVERLAPPING, match=Match(kernels=("other",))), MATCHED], {}),
        (0, [MATCHED, OVERLAPPING], {}),
        (0, [replace(OVERLAPPING, match=Match(kernels=("other",)))], {}),
        (0, [OVERLAPPING], {"policy": NOTHING}),
        (0, [], {}),
    ],
)
def test_windows_are_asked_for_by_the_rule(decide: Decider, windowed: int, rules: list[Rule], facts: Any) -> None:
    """Whether the launch is in one is not asked here: the answer is the one that holds inside."""
    answer = decide(*rules, **facts)
    assert answer.windowed == windowed
    inside = decide(*(replace(rule, when="always") for rule in rules), **facts)
    same = ("reason", "dynamic_shared", "rule", "native_blocks", "control", "minimum_blocks", "maximum_blocks")
    assert [getattr(answer, name) for name in same] == [getattr(inside, name) for name in same]
    assert inside.windowed == 0


# test_decide_rules.py: what needs a footprint of communication, or fields that no policy file can say yet.
ELSEWHERE = {
    "priority",
    "no_communication_seen",
    "occupancy_asked",
    "reads_dynamic_size",
    "no_room_registers",
    "no_room_warps",
    "no_room_slots",
    "invalid_as_asked",
    "unknown_limits",
}
# Given after the decision, by who sees the streams.
LATER = {"not_overlapping", "raised", "captured"}


def test_every_reason_is_tested_or_not_there_yet(library: Any) -> None:
    names = set()
    while library.overlap_reason_name(len(names)) != _native.ffi.NULL:
        names.add(_native.text(library.overlap_reason_name(len(names))))
    assert names == {case[0] for case in CASES} | ELSEWHERE | LATER
    assert not {case[0] for case in CASES} & (ELSEWHERE | LATER)


def test_the_first_matching_rule_wins_and_is_named(decide: Decider) -> None:
    rules = [replace(MATCHED, match=Match(kernels=("x",))), replace(MATCHED, shape=Shape("blocks", 2)), MATCHED]
    answer = decide(*rules)
    assert (answer.rule, answer.native_blocks) == (1, 8)
    assert decide(rules[0]).rule == NOTHING


def test_rules_of_another_policy_are_not_looked_at(decide: Decider) -> None:
    table = compile_table([Policy("a", rules=(MATCHED,)), Policy("b", rules=(replace(MATCHED, shape=Shape("leave")),))])
    assert decide(table=table, policy=0).rule == 0
    second = decide(table=table, policy=1)
    assert (second.rule, decide.reason(table=table, policy=1)) == (1, "rule_leave")


SHAPES = [
    (Shape("blocks", 1), 1),
    (Shape("blocks", 3), 3),
    (Shape("percent", 50), 4),
    (Shape("percent", 1), 1),
    (Shape("percent", 62), 4),
    (Shape("percent", 63), 5),
    (Shape("percent", 99), 7),
]


@pytest.mark.parametrize(("shape", "resident"), SHAPES)
def test_a_shape_leaves_so_many_resident(decide: Decider, shape: Shape, resident: int) -> None:
    answer = decide(replace(MATCHED, shape=shape))
    shaped = _native.ffi.new("struct overlap_footprint *", (128, 64, 0, answer.dynamic_shared))
    less = _native.ffi.new("struct overlap_footprint *", (128, 64, 0, answer.dynamic_shared - 1))
    assert decide.lib.overlap_occupancy_of(decide.gpus["h100"], shaped).blocks == resident
    assert decide.lib.overlap_occupancy_of(decide.gpus["h100"], less).blocks > resident, "the smallest such size"


def test_bytes_are_the_larger_of_asked_and_wanted(decide: Decider) -> None:
    assert decide(replace(MATCHED, shape=Shape("bytes", 98304))).dynamic_shared == 98304
    assert decide(replace(MATCHED, shape=Shape("bytes", 4096))).dynamic_shared == 16384


# A launch of 10,000 blocks, 128 threads, 64 registers, 8 resident: 946 per cent of a wave (10,000 / 1,056).
RANGES = [("threads", 128), ("resident_blocks", 8), ("waves_percent", 946)]


@pytest.mark.parametrize(("name", "value"), RANGES)
def test_each_range_is_inclusive_at_both_ends(decide: Decider, name: str, value: int) -> None:
    def matches(low: int, high: int) -> bool:
        return decide.reason(replace(MATCHED, match=Match(**{name: Range(low, high)}))) == "shaped"

    assert matches(0, UNLIMITED) and matches(value, UNLIMITED)
    assert not matches(value + 1, UNLIMITED) and not matches(0, value - 1)
    above = value + 1 if name == "waves_percent" else value  # 946.97
    assert matches(value, above) and matches(0, above)
    assert not matches(UNLIMITED, UNLIMITED) and not matches(0, 0)


@pytest.mark.parametrize("percent", [100, 150, 400])
@pytest.mark.parametrize("away", [-1, 0, 1])
def test_waves_are_exact(decide: Decider, percent: int, away: int) -> None:
    blocks = 8 * 132 * percent // 100 + away
    at_least = replace(MATCHED, match=Match(waves_percent=Range(percent, UNLIMITED)), shape=Shape("leave"))
    at_most = replace(MATCHED, match=Match(waves_percent=Range(0, percent)), shape=Shape("leave"))
    assert (decide.reason(at_least, blocks=blocks) == "rule_leave") == (away >= 0)
    assert (decide.reason(at_most, blocks=blocks) == "rule_leave") == (away <= 0)


def test_kernels_and_libraries(decide: Decider) -> None:
    by_kernel = replace(MATCHED, match=Match(kernels=("nothing", "*gemm")))
    assert decide.reason(by_kernel, kernel="sgemm") == "shaped"
    assert decide.reason(by_kernel, kernel="_Z5sgemm6ParamsPf") == "shaped", "by its plain name"
    assert decide.reason(by_kernel, kernel="gemm2") == "no_rule"
    by_library = replace(MATCHED, match=Match(libraries=("libcublas*",)))
    assert decide.reason(by_library, library="libcublasLt.so.13") == "shaped"
    assert decide.reason(by_library, library="libtorch.so") == decide.reason(by_library, library=None) == "no_rule"
    both = replace(MATCHED, match=Match(kernels=("gemm",), libraries=("lib*",)))
    assert (
        decide.reason(both, kernel="gemm", library="x") == decide.reason(both, kernel="x", library="liby") == "no_rule"
    )


def test_numbers_that_overflow_are_no_numbers(decide: Decider) -> None:
    """The largest grid of three dimensions; ranges whose product with the capacity needs more than 64 bits."""
    huge = replace(MATCHED, match=Match(waves_percent=Range(2**63, UNLIMITED)))
    assert decide.reason(huge, blocks=2**31 * 65535 * 65535) == "no_rule"
    assert decide.reason(MATCHED, blocks=2**64 - 1) == "shaped"
    assert decide.reason(MATCHED, blocks=0) == "one_wave"
    kernel = Footprint(2**32 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    assert decide.reason(MATCHED, footprint=kernel) == "cannot_launch"
