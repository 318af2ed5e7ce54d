"""The keys `streams` and `environment`: what they may say, what the table then holds, where each mistake is told."""

from __future__ import annotations

import pytest

from pyshim import _native
from pyshim.policy.finding import render
from pyshim.policy.model import HALF, NONE_RAISED, Policy, as_text
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
        ("", HALF, "raise: auto"),
        ("streams: {}\n", HALF, "raise: auto"),
        ("streams: {created_by: [nccl]}\n", HALF, "raise: auto"),
        ("streams: {raise: auto}\n", HALF, "raise: auto"),
        ("streams: {raise: off}\n", NONE_RAISED, "raise: 'off'"),
        ('streams: {raise: "off"}\n', NONE_RAISED, "raise: 'off'"),
        ("streams: {raise: {share: 50%}}\n", HALF, "raise: auto"),
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
