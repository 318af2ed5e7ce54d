"""The bytes of a table, read back through the header's own structs."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy.kernel_sets import FUSED, SETS
from pyshim.policy.layout import decode, encode
from pyshim.policy.model import NONE_RAISED, Match, Policy, Rule, Shape
from pyshim.policy.table import compile_table, fingerprint
from pyshim.policy.values import UNLIMITED, Range

FIRST = Policy(
    name="first",
    gpus=("NVIDIA H100*", "sm_90"),
    kernels=("*my_reduce*",),
    libraries=("libmine.so*",),
    raise_share=40,
    stream_creators=("libnccl.so*",),
    fixed_size=("*staged*",),
    rules=(
        Rule(
            Match(
                kernels=("*gemm*", "b"),
                libraries=("libcublas*",),
                threads=Range(3, 4),
                waves_percent=Range(7, 8),
                resident_blocks=Range(9, UNLIMITED),
            ),
            Shape("percent", 50),
            25,
            "always",
            12,
            "max",
        ),
        Rule(Match(), Shape("leave"), 0, "overlapping", 14),
    ),
)
_SIZE = Rule(Match(), Shape("bytes", 98304), 0, "always", 5)
SECOND = Policy(name="second", gpus=("NVIDIA A40",), raise_share=NONE_RAISED, rules=(_SIZE,))


class Table:
    """A table taken apart as the C side does it."""

    def __init__(self, data: bytes) -> None:
        _native.header()
        ffi = _native.ffi
        self.data = data
        self._at = 0
        self._heads = self._take("struct overlap_table", 1)  # owns what head looks at
        self.head = self._heads[0]
        self.policies = self._take("struct overlap_policy", self.head.policy_count)
        self.rules = self._take("struct overlap_rule", self.head.rule_count)
        self.patterns = self._take("uint32_t", self.head.pattern_count)
        self.strings = data[self._at :]
        assert len(self.strings) == self.head.string_size
        assert ffi.sizeof("struct overlap_table") == 32

    def _take(self, kind: str, count: int) -> Any:
        size = _native.ffi.sizeof(kind) * count
        part = _native.ffi.new(f"{kind}[]", count)
        _native.ffi.buffer(part)[:] = self.data[self._at : self._at + size]
        self._at += size
        return part

    def string(self, offset: int) -> str:
        return self.strings[offset : self.strings.index(b"\0", offset)].decode()

    def span(self, span: Any) -> list[str]:
        return [self.string(self.patterns[span.first + i]) for i in range(span.count)]


def test_the_header_describes_the_table() -> None:
    data = compile_table([FIRST, SECOND])
    head = Table(data).head
    constants = _native.header()
    assert (head.magic, head.version) == (constants.OVERLAP_TABLE_MAGIC, constants.OVERLAP_ABI_VERSION)
    assert head.size == len(data)
    assert head.checksum == zlib.crc32(data[32:])
    assert (head.policy_count, head.rule_count) == (2, 3)


def test_a_policy_arrives_whole() -> None:
    table = Table(compile_table([FIRST, SECOND]))
    first, second = table.policies[0], table.policies[1]
    assert [table.string(policy.name) for policy in (first, second)] == ["first", "second"]
    assert table.string(first.hash) == fingerprint(FIRST)
    assert table.span(first.gpus) == ["NVIDIA H100*", "sm_90"]
    assert table.span(first.kernels) == ["*my_reduce*"]
    assert table.span(first.libraries) == ["libmine.so*"]
    assert table.span(first.stream_creators) == ["libnccl.so*"]
    assert (first.first_rule, first.rule_count, second.first_rule, second.rule_count) == (0, 2, 2, 1)
    assert (first.raise_share, second.raise_share) == (40, 0)
    assert (table.span(first.fixed_size), table.span(second.fixed_size)) == (["*staged*"], [])


def test_a_rule_arrives_whole() -> None:
    table = Table(compile_table([FIRST, SECOND]))
    first, leave, size = table.rules
    constants = _native.header()
    assert table.span(first.kernels) == ["*gemm*", "b"]
    assert table.span(first.libraries) == ["libcublas*"]
    ranges = [first.threads, first.waves_percent, first.resident_blocks]
    assert [(r.minimum, r.maximum) for r in ranges] == [(3, 4), (7, 8), (9, UNLIMITED)]
    assert (first.shape, first.value) == (constants.OVERLAP_SHAPE_PERCENT, 50)
    assert (first.when, first.keep_at_least, first.line) == (constants.OVERLAP_WHEN_ALWAYS, 25, 12)
    assert (leave.shape, leave.when, leave.line) == (
        constants.OVERLAP_SHAPE_LEAVE,
        constants.OVERLAP_WHEN_OVERLAPPING,
        14,
    )
    assert (leave.threads.minimum, leave.threads.maximum) == (0, UNLIMITED)
    assert (size.shape, size.value) == (constants.OVERLAP_SHAPE_BYTES, 98304)
    assert leave.kernels.count == 0


def test_a_shape_without_a_number() -> None:
    table = Table(compile_table([Policy(name="auto", rules=(Rule(Match(), Shape("make_room"), 50, "always", 1),))]))
    (rule,) = table.rules
    assert (rule.shape, rule.value) == (_native.header().OVERLAP_SHAPE_MAKE_ROOM, 0)


def test_a_set_is_its_patterns_and_what_only_looks_like_it_is_spared_first() -> None:
    rules = (
        Rule(Match(sets=("norm",)), Shape(), 0, "always", 3),
        Rule(Match(kernels=("mine",), sets=("gemm", "norm")), Shape("make_room"), 50, "always", 5),
        Rule(Match(sets=("gemm",)), Shape("make_room"), 50, "always", 8),
    )
    table = Table(compile_table([SECOND, Policy(name="sets", rules=rules), SECOND]))
    policy = table.policies[1]
    assert (policy.first_rule, policy.rule_count, table.policies[2].first_rule) == (1, 4, 5)
    leave, guard, first, second = (table.rules[1 + i] for i in range(4))
    assert table.span(leave.kernels) == list(SETS["norm"])
    assert table.span(guard.kernels) == list(FUSED)
    assert guard.shape == _native.header().OVERLAP_SHAPE_LEAVE
    assert table.span(first.kernels) == ["mine", *SETS["gemm"], *SETS["norm"]]
    assert table.span(second.kernels) == list(SETS["gemm"])


def test_equal_strings_are_stored_once_and_the_empty_one_first() -> None:
    strings = Table(compile_table([FIRST, replace(FIRST, name="other")])).strings
    assert strings[:1] == b"\0"
    assert strings.count(b"*gemm*\0") == 1


def test_no_policy_is_a_table_too() -> None:
    table = Table(compile_table([]))
    assert (table.head.policy_count, table.strings) == (0, b"\0")


def test_the_fingerprint_sees_everything_but_the_lines() -> None:
    moved = replace(FIRST, rules=tuple(replace(rule, line=rule.line + 7) for rule in FIRST.rules))
    assert fingerprint(moved) == fingerprint(FIRST)
    assert len(fingerprint(FIRST)) == 16
    others = [
        replace(FIRST, name="third"),
        replace(FIRST, raise_share=41),
        replace(FIRST, stream_creators=()),
        replace(FIRST, rules=FIRST.rules[::-1]),
        replace(FIRST, rules=(replace(FIRST.rules[0], keep_at_least=26), FIRST.rules[1])),
        replace(FIRST, gpus=FIRST.gpus[:1]),
        replace(FIRST, environment={"A": "1"}),
    ]
    assert len({fingerprint(policy) for policy in [FIRST, *others]}) == len(others) + 1


def test_the_fingerprint_does_not_depend_on_the_policies_beside_it() -> None:
    table = Table(compile_table([SECOND, FIRST]))
    assert table.string(table.policies[1].hash) == fingerprint(FIRST)


def test_a_table_that_does_not_fit_is_refused_with_a_sentence() -> None:
    policy = Policy(
        name="big", rules=tuple(Rule(Match(kernels=("x" * 999 + str(i),)), Shape(), 0, "always", i) for i in range(60))
    )
    with pytest.raises(OverlapError, match="holds 65,536"):
        compile_table([policy])


def test_the_text_for_the_environment_and_back() -> None:
    data = compile_table([FIRST])
    assert decode(encode(data)) == data
    assert set(encode(data)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    with pytest.raises(OverlapError, match="not base64"):
        decode("a b")


def test_the_library_believes_the_table(library: Any) -> None:
    for policies in ([], [FIRST], [FIRST, SECOND]):
        data = compile_table(policies)
        assert _native.text(library.overlap_table_check(data, len(data))) == ""
    data = compile_table([FIRST, SECOND])
    assert library.overlap_policy_for(data, b"NVIDIA A40", b"sm_86") == 1
    assert library.overlap_policy_for(data, b"NVIDIA H200", b"sm_90") == 0
    assert library.overlap_policy_for(data, b"NVIDIA T4", b"sm_75") == 2**32 - 1
    assert _native.text(library.overlap_table_check(data[:-1], len(data) - 1)) != ""
