"""The key `critical`: what it may say, what the table then holds, and where each mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshim import _native
from pyshim.policy import places, show
from pyshim.policy.finding import render
from pyshim.policy.library import DEFAULTS, load
from pyshim.policy.model import ALL, OFF, Critical
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.table import compile_table

HEAD = "policy: 1\nname: mine\n"


def read(text: str) -> Reading:
    return read_bytes((HEAD + text).encode(), "mine.yaml")


def said(text: str) -> Critical:
    reading = read(text)
    assert reading.policy, render("mine.yaml", reading.source, reading.findings)
    return reading.policy.critical


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("", OFF, 'critical: "off"'),
        ("critical: off\n", OFF, 'critical: "off"'),
        ('critical: "off"\n', OFF, 'critical: "off"'),
        ("critical: auto\n", ALL, "critical: auto"),
        ("critical: {}\n", ALL, "critical: auto"),
        ("critical: {share: 25%}\n", ALL, "critical: auto"),
        ("critical: {share: 100%}\n", Critical(True, True, True, 100), "share: 100%"),
        ("critical: {host_waits: false, feeding: false}\n", Critical(True, False, False, 25), "host_waits: false"),
        ("critical:\n  communication: false\n  share: 1%\n", Critical(False, True, True, 1), "share: 1%"),
    ],
)
def test_what_it_may_say(text: str, expected: Critical, shown: str) -> None:
    assert said(text) == expected
    reading = read(text)
    assert reading.policy
    again = show.as_text(reading.policy, reading.origins)
    assert shown in again
    read_again = read_bytes(again.encode(), "again.yaml")
    assert read_again.policy and read_again.policy.critical == expected


def test_the_table_holds_who_and_how_much() -> None:
    ffi, header = _native.ffi, _native.header()
    for text, kinds, share in (
        ("", 0, 0),
        ("critical: auto\n", 7, 25),
        ("critical: {communication: false, share: 40%}\n", 6, 40),
        ("critical: {feeding: false}\n", 3, 25),
    ):
        reading = read(text)
        assert reading.policy
        data = compile_table([reading.policy])
        packed = ffi.cast("struct overlap_policy *", ffi.from_buffer(data) + ffi.sizeof("struct overlap_table"))
        assert (packed.critical, packed.critical_share) == (kinds, share)
    assert (header.OVERLAP_CRITICAL_COMMUNICATION, header.OVERLAP_CRITICAL_HOST_WAITS) == (1, 2)
    assert header.OVERLAP_CRITICAL_FEEDING == 4


@pytest.mark.hazard("input", "a mistake in `critical` is not told, or not where it is: the policy does something else")
@pytest.mark.parametrize(
    ("text", "line", "column", "sentence", "hint"),
    [
        ("critical: yes", 3, 11, "`yes` is not auto, off or a mapping", "did you mean `auto`?"),
        ("critical: false", 3, 11, "`false` is not auto, off or a mapping", "did you mean `off`?"),
        ("critical: atuo", 3, 11, "`atuo` is not auto, off or a mapping", "did you mean `auto`?"),
        ("critical: 25%", 3, 11, "`25%` is not auto, off or a mapping", "write auto, off, or a mapping: {"),
        ("critical: [communication]", 3, 11, "`critical` must be auto, off or a mapping", "write auto, off, or a"),
        ("critical:", 3, 10, "`critical` has no value", "write one, or leave the key out"),
        ("critical: {share: 0%}", 3, 19, "`0%` is not between 1% and 100%", "write a percentage in between"),
        ("critical: {share: 200%}", 3, 19, "`200%` is not between 1% and 100%", "write a percentage in between"),
        ("critical: {share: 25}", 3, 19, "`25` is not a percentage", "did you mean `25%`?"),
        ("critical: {share: 2.5%}", 3, 19, "`2.5%` is not a percentage", "write a whole number"),
        ("critical: {host_wait: true}", 3, 12, "unknown key `host_wait`", "did you mean `host_waits`?"),
        ("critical: {everything: true}", 3, 12, "unknown key `everything`", "`critical` has: communication, host"),
        ("critical: {feeding: yes}", 3, 21, "`yes` is not true or false", "write true or false"),
        (
            "critical: {communication: false, host_waits: false, feeding: false}",
            3, 12, "`critical` leaves no stream to raise", "write `critical: off`",
        ),
        ("critical: {communication: false, host_waits: false}", 3, 12, "leaves no stream to raise", "`critical: off`"),
        ("critical: off\ncritical: {share: 10%}", 4, 1, "`critical` stands already on line 3", "keep one of them"),
        ("critical: off\n  share: 10%", 4, 8, "a colon where no key can stand", "look for a wrong indentation"),
        (
            "communication:\n  streams: {carrying_communication: true, priority: highest}",
            4, 13, "`streams` has no key `carrying_communication` any more", "write `critical: auto`",
        ),
        (
            "communication:\n  streams:\n    carrying_communication: yes",
            5, 5, "`streams` has no key `carrying_communication` any more", "write `critical: auto`",
        ),
        (
            "communication:\n  streams: {created_by: libnccl.so*, carrying_communication: false, priority: highest}",
            4, 38, "`streams` has no key `carrying_communication` any more", "write `critical: auto`",
        ),
    ],
)  # fmt: skip
def test_each_mistake_is_told_once_at_its_place(text: str, line: int, column: int, sentence: str, hint: str) -> None:
    reading = read(text + "\n")
    (finding,) = reading.findings
    assert (reading.ok, finding.severity, finding.line, finding.column) == (False, "error", line, column)
    assert sentence in finding.sentence and hint in finding.hint


def test_the_own_mapping_is_taken_whole(tmp_path: Path) -> None:
    """Members that are left out are as in auto, whatever the policy says that is extended."""
    base = "policy: 1\nname: base\ncritical: {feeding: false, share: 10%}\n"
    (tmp_path / "base.yaml").write_text(base)
    child = tmp_path / "child.yaml"
    head = "policy: 1\nname: child\nextends: base\n"
    for own, expected in (
        ("", Critical(True, True, False, 10)),
        ("critical: off\n", OFF),
        ("critical: auto\n", ALL),
        ("critical: {host_waits: false}\n", Critical(True, False, True, 25)),
    ):
        child.write_text(head + own)
        reading = read_file(child)
        assert reading.policy and reading.policy.critical == expected
    text = show.as_text(reading.policy, reading.origins)
    origin = {line.split("#")[0].strip(): line.split("# ")[-1] for line in text.splitlines()}
    assert (origin["host_waits: false"], origin["feeding: true"], origin["share: 25%"]) == (
        "child.yaml:4",
        "default",
        "default",
    )


RAISING = ("critical-streams", "streams-and-communication")


@pytest.mark.parametrize("name", places.names({}))
def test_on_in_every_default_and_off_in_the_others(name: str) -> None:
    (policy,) = load(name, {})
    assert policy.critical == (ALL if name.removesuffix("-small-comm") in (*DEFAULTS, *RAISING) else OFF)
