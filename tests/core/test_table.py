"""Bytes that nobody may believe: corrupted, cut, random, and counts that try to wrap."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native
from pyshim.policy.model import Match, Policy, Rule, Shape
from pyshim.policy.table import compile_table
from pyshim.policy.values import Range
from pyshim.start import chosen as shipped

Run = Callable[..., str]
HEAD = struct.Struct("<8I")
NAMES = ("magic", "version", "size", "checksum", "policies", "rules", "patterns", "strings")
SMALL = [
    Policy(
        "first",
        gpus=("NVIDIA H100*", "sm_90"),
        kernels=("*my_reduce*", "[a-z]*"),
        libraries=("libmine.so*",),
        raise_share=100,
        stream_creators=("libnccl.so*",),
        rules=(
            Rule(
                Match(("*gemm*", "b"), ("libcublas*",), waves_percent=Range(200, 900)),
                Shape("percent", 50),
                25,
                "always",
                12,
            ),
            Rule(Match(("gemm",)), Shape("blocks", 1), 0, "always", 13),
            Rule(Match(), Shape("bytes", 98304), 0, "always", 14),
        ),
    ),
    Policy("second", gpus=("NVIDIA A40",), rules=(Rule(Match(), Shape(), 0, "overlapping", 5),)),
]


def refusal(library: Any, data: bytes) -> str:
    return _native.text(library.overlap_table_check(data, len(data)))


def signed(data: bytes) -> bytes:
    return data[:12] + struct.pack("<I", zlib.crc32(data[32:])) + data[16:]


def header_of(data: bytes) -> dict[str, int]:
    return dict(zip(NAMES, HEAD.unpack(data[:32])))


def head(data: bytes, **changes: int) -> bytes:
    return HEAD.pack(*{**header_of(data), **changes}.values()) + data[32:]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Small tables, the one that travels by default, and one with rules."""
    folder = tmp_path_factory.mktemp("seeds")
    tables = {
        "small": compile_table(SMALL),
        "empty": compile_table([]),
        "auto": compile_table(shipped.load("auto", {})),
        "paper": compile_table(shipped.load("h100-paper", {})),
    }
    for name, data in tables.items():
        (folder / name).write_bytes(data)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def fuzz(compile_c: Any) -> Path:
    sources = (
        "../fuzz/table_fuzz.c",
        "core/policy_table.c",
        "core/match.c",
        "core/decide.c",
        "core/occupancy.c",
        "core/planner.c",
        "core/gpu.c",
    )
    return compile_c(*sources, flags=("-fsanitize=address,undefined", "-fno-sanitize-recover=all"))


@pytest.mark.parametrize("how", ["corrupt", "truncate"])
def test_rejected_or_harmless(fuzz: Path, seeds: list[Path], run_program: Run, how: str) -> None:
    tried, accepted = map(int, run_program(fuzz, how, *seeds).split())
    total = sum(seed.stat().st_size for seed in seeds)
    assert tried >= total * (10 if how == "corrupt" else 2)
    assert (accepted > 0) == (how == "corrupt"), "no part of a table is a table"


def test_random_changes(fuzz: Path, seeds: list[Path], run_program: Run) -> None:
    tried, accepted = map(int, run_program(fuzz, "mutate", 2, *seeds).split())
    assert tried > 1000 and accepted > 50


def test_good_tables_are_believed(library: Any) -> None:
    for policies in ([], SMALL, SMALL[:1]):
        assert refusal(library, compile_table(policies)) == ""


# Every record with one field made wrong: struct, index, field, value, what the sentence must say.
POLICY, RULE = "overlap_policy", "overlap_rule"
WRONG = [
    (POLICY, "name", 10**6, "name"),
    (POLICY, "hash", 2**32 - 1, "name"),
    *[(POLICY, span, value, "patterns") for span in ("gpus", "kernels", "libraries", "stream_creators", "fixed_size")
      for value in ((0, 10**6), (10**6, 0), (1, 2**32 - 1), (2**32 - 1, 1), (2**31, 2**31))],
    (POLICY, "first_rule", 5, "rules"),
    (POLICY, "first_rule", 2**32 - 1, "rules"),
    (POLICY, "rule_count", 5, "rules"),
    (POLICY, "rule_count", 2**32 - 1, "rules"),
    (POLICY, "raise_share", 201, "share"),
    (POLICY, "raise_share", 2**32 - 1, "share"),
    *[(RULE, span, value, "patterns") for span in ("kernels", "libraries")
      for value in ((0, 10**6), (10**6, 0), (1, 2**32 - 1), (2**32 - 1, 1))],
    (RULE, "shape", 5, "shape"),
    (RULE, "shape", 2**32 - 1, "shape"),
    (RULE, "when", 2, "time"),
    (RULE, "keep_at_least", 101, "keeps"),
]  # fmt: skip


def test_one_wrong_field_of_the_first_or_last_record_is_named(library: Any) -> None:
    ffi, good = _native.ffi, compile_table(SMALL)
    policies = 2 * ffi.sizeof("struct overlap_policy")
    for kind, field, value, says in WRONG:
        size = ffi.sizeof(f"struct {kind}")
        first, last = (32, 32 + policies - size) if kind == POLICY else (32 + policies, 32 + policies + 3 * size)
        for at in (first, last):
            record = ffi.from_buffer(f"struct {kind} *", data := bytearray(good[at : at + size]))
            setattr(record, field, value)
            assert says in refusal(library, signed(good[:at] + data + good[at + size :])), (kind, field, value, at)


@pytest.mark.parametrize("share", [0, 1, 25, 50, 60, 99, 100])
def test_every_percentage_is_a_share(library: Any, share: int) -> None:
    data = bytearray(compile_table(SMALL))
    at = 32 + _native.ffi.offsetof("struct overlap_policy", "raise_share")
    data[at : at + 4] = struct.pack("<I", share)
    assert refusal(library, signed(bytes(data))) == ""


@pytest.mark.parametrize(("shape", "value"), [(1, 0), (2, 0), (2, 101), (2, 2**32 - 1)])
def test_values_that_no_shape_can_have(library: Any, shape: int, value: int) -> None:
    data = bytearray(compile_table(SMALL))
    at = 32 + 2 * _native.ffi.sizeof("struct overlap_policy") + _native.ffi.offsetof("struct overlap_rule", "shape")
    data[at : at + 8] = struct.pack("<II", shape, value)
    assert "rule asks for" in refusal(library, signed(bytes(data)))


def test_strings_must_begin_empty_and_end(library: Any) -> None:
    data = compile_table(SMALL)
    strings = len(data) - header_of(data)["strings"]
    for at in (strings, len(data) - 1):
        assert "terminated" in refusal(library, signed(data[:at] + b"x" + data[at + 1 :]))


def test_a_pattern_outside(library: Any) -> None:
    data = compile_table(SMALL)
    now = header_of(data)
    count, strings = now["patterns"], now["strings"]
    for index in (0, count - 1):
        at = len(data) - strings - 4 * count + 4 * index
        for offset in (strings, 2**32 - 1):
            wrong = data[:at] + struct.pack("<I", offset) + data[at + 4 :]
            assert "pattern lies outside" in refusal(library, signed(wrong))


def test_the_header_is_checked_first(library: Any) -> None:
    data = compile_table(SMALL)
    assert "not a policy table" in refusal(library, head(data, magic=0))
    for away in (-1, 1):
        other = head(data, version=_native.header().OVERLAP_ABI_VERSION + away)
        assert "another version" in refusal(library, other)
    assert "cut or extended" in refusal(library, head(data, size=len(data) + 1))
    assert "cut or extended" in refusal(library, data + b"\0")
    assert "checksum" in refusal(library, head(data, checksum=0))
    assert "checksum" in refusal(library, data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    assert "impossible size" in refusal(library, data[:31])
    assert "impossible size" in refusal(library, b"")
    assert "impossible size" in refusal(library, head(data + bytes(65536), size=len(data) + 65536))


@pytest.mark.parametrize("field", NAMES[4:])
def test_counts_cannot_wrap(library: Any, field: str) -> None:
    """Every count by which some product or sum of 32 or 64 bits would come back to the size that is there."""
    data = compile_table(SMALL)
    now = header_of(data)
    policy, rule = (_native.ffi.sizeof(f"struct {name}") for name in (POLICY, RULE))
    record = {"policies": policy, "rules": rule, "patterns": 4, "strings": 1}[field]
    wraps = {now[field] + (2**32 // record) * k for k in range(1, record + 1)}
    wraps |= {now[field] + 2**k for k in range(32)} | {2**32 - 1, 2**31, 2**32 - now[field]}
    wraps = {count for count in wraps if count < 2**32}
    assert wraps
    for count in wraps:
        assert "do not add up" in refusal(library, head(data, **{field: count})), count


def test_two_counts_that_cancel_out(library: Any) -> None:
    data = compile_table(SMALL)
    now = header_of(data)
    patterns, strings = now["patterns"], now["strings"]
    for more in (1, 3):
        wrong = signed(head(data, patterns=patterns + more, strings=strings - 4 * more))
        assert refusal(library, wrong) != ""
    assert "do not add up" in refusal(library, head(data, **dict.fromkeys(NAMES[4:], 2**32 - 1)))
    only_patterns = head(data, strings=0, patterns=patterns + strings // 4)
    assert "do not add up" in refusal(library, signed(only_patterns))
