"""The keys `streams` and `environment`: what they may say, what the table then holds, where each mistake is told."""

from __future__ import annotations

import pytest

from pyshim import _native
from pyshim.policy.finding import render
from pyshim.policy.model import AUTO, OFF, Policy, as_text
from pyshim.policy.reader import Reading, read_bytes
from pyshim.policy.table import compile_table

HEAD = "policy: 1\nname: mine\n"


def read(text: str) -> Reading:
    return read_bytes((HEAD + text).encode(), "mine.yaml")


def policy(text: str) -> Policy:
    reading = read(text)
    assert reading.policy, render("mine.yaml", reading.source, reading.findings)
    return reading.policy


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("", AUTO, "raise: auto"),
        ("streams: {}\n", AUTO, "raise: auto"),
        ("streams: {created_by: [nccl]}\n", AUTO, "raise: auto"),
        ("streams: {raise: auto}\n", AUTO, "raise: auto"),
        ("streams: {raise: off}\n", OFF, "raise: 'off'"),
        ('streams: {raise: "off"}\n', OFF, "raise: 'off'"),
        ("streams: {raise: {share: 50%}}\n", AUTO, "raise: auto"),
        ("streams: {raise: {share: 1%}}\n", 1, "share: 1%"),
        ("streams:\n  raise:\n    share: 100%\n", 100, "share: 100%"),
    ],
)
def test_how_much_a_raised_stream_carries_at_most(text: str, expected: int, shown: str) -> None:
    found = policy(text)
    assert found.raise_share == expected
    again = as_text(found)
    assert shown in again
    read_again = read_bytes(again.encode(), "again.yaml")
    assert read_again.policy and read_again.policy.raise_share == expected
    ffi, data = _native.ffi, compile_table([found])
    _native.header()
    packed = ffi.cast("struct overlap_policy *", ffi.from_buffer(data) + ffi.sizeof("struct overlap_table"))
    assert packed.raise_share == expected


def test_auto_is_half_of_the_computation() -> None:
    assert (AUTO, OFF) == (50, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("streams: {raise: off}", ()),
        ("streams: {created_by: nccl}", ("libnccl.so*",)),
        ("streams: {created_by: [nccl, rccl]}", ("libnccl.so*", "librccl.so*")),
        ("streams: {created_by: ['libnccl.so*', libmine.so]}", ("libnccl.so*", "libmine.so")),
    ],
)
def test_whose_streams_are_raised_as_they_are_created(text: str, expected: tuple[str, ...]) -> None:
    assert policy(text).stream_creators == expected


def test_what_a_policy_sets_for_the_program() -> None:
    assert policy("environment: {NCCL_DEBUG: INFO, MY_OWN: 1}").environment == {"NCCL_DEBUG": "INFO", "MY_OWN": "1"}
    assert policy("").environment == {}


@pytest.mark.parametrize(
    ("text", "line", "column", "sentence", "hint"),
    [
        ("streams: {raise: yes}", 3, 18, "`yes` is not auto, off or a mapping", "did you mean `auto`?"),
        ("streams: {raise: false}", 3, 18, "`false` is not auto, off or a mapping", "did you mean `off`?"),
        ("streams: {raise: atuo}", 3, 18, "`atuo` is not auto, off or a mapping", "did you mean `auto`?"),
        ("streams: {raise: 40%}", 3, 18, "`40%` is not auto, off or a mapping", "did you mean `{share: 40%}`?"),
        ("streams: {raise: 40}", 3, 18, "`40` is not auto, off or a mapping", "write auto, off or a share"),
        ("streams: {raise: [auto]}", 3, 18, "`raise` must be auto, off or a mapping", "write auto, off or a share"),
        ("streams: {raise: }", 3, 17, "`raise` has no value", "write one, or leave the key out"),
        ("streams: {raise: {}}", 3, 18, "`raise` has no `share`", "add `share: ...`"),
        ("streams: {raise: {share: 0%}}", 3, 26, "`0%` is not between 1% and 100%", "write a percentage in between"),
        ("streams: {raise: {share: 101%}}", 3, 26, "`101%` is not between 1% and 100%", "write a percentage"),
        ("streams: {raise: {share: 25}}", 3, 26, "`25` is not a percentage", "did you mean `25%`?"),
        ("streams: {raise: {share: 2.5%}}", 3, 26, "`2.5%` is not a percentage", "write a whole number"),
        ("streams: {raise: {shar: 25%}}", 3, 19, "unknown key `shar`", "did you mean `share`?"),
        ("streams: off", 3, 10, "`streams` must be a mapping", "its keys are: raise, "),
        ("streams: [nccl]", 3, 10, "`streams` must be a mapping", "its keys are: raise, "),
        ("streams: {created_by: []}", 3, 23, "`created_by` is an empty list", "leave the key out"),
        ("raise: off", 3, 1, "unknown key `raise`", "did you mean `streams: {raise: ...}`?"),
        ("communication: {created_by: nccl}", 3, 17, "unknown key `created_by`", "`streams: {created_by: ...}`"),
    ],
)
def test_each_mistake_is_told_once_at_its_place(text: str, line: int, column: int, sentence: str, hint: str) -> None:
    (finding,) = read(text + "\n").findings
    assert (finding.severity, finding.line, finding.column) == ("error", line, column)
    assert sentence in finding.sentence and hint in finding.hint
