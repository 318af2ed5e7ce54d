"""Every reader of what somebody else may have made, fed with bytes that are almost what it reads: reading.py says how.

A finding of `make fuzz` becomes an @example, or, where it needs a folder, a test of test_findings.py.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from pyshim.start import program as elf
from tests.fuzz import policies, profiles, reports
from tests.fuzz.reading import FUZZ, Reader, almost

PROGRAM = Path("/bin/true").read_bytes()[: 1 << 16]
WORDS = (
    b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x01\x01", b"#!/bin/sh\n", b"#! /usr/bin/env -S python3 -u\n",
    b"\x02\0\0\0", b"\x08\0\0\0", b"\x07\0\0\0", b"\xff" * 8, b"\0" * 8,
)  # fmt: skip
POLICIES, TRACES = policies.seeds(), profiles.seeds()
of_policies, of_traces, of_reports, of_programs = Reader(10.0), Reader(20.0), Reader(30.0), Reader(10.0)


@FUZZ
@given(almost(POLICIES, policies.WORDS))
@example(b'"\\UFFFFFFFF"')
@example(b"%YAML 1.1.1\n---\na")
@example(b"\xff\xfe\x00")
@example(b"a: " + b"{{" * 4000)
@example(b"policy: 1\nname: circle\nextends: ../ ")
def test_policies(data: bytes) -> None:
    of_policies(policies.read, data[: policies.LONGEST])


def test_every_seed_of_policies() -> None:
    assert sum(map(policies.read, POLICIES)) > 15


@FUZZ
@given(almost(TRACES, profiles.WORDS))
@example(gzip.compress(b"[" + b" " * (1 << 22)))
@example(b"[" * 100_000)
@example(
    b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "\x1b]0;x\x07", "ts": 1e999, "dur": NaN, "args": {}}]}'
)
def test_traces(tmp_path: Path, data: bytes) -> None:
    of_traces(lambda data: profiles.read(data, str(tmp_path / "trace")), data[: 1 << 17])


def test_every_seed_of_traces(tmp_path: Path) -> None:
    assert sum(profiles.read(data, str(tmp_path / "trace")) for data in TRACES) >= len(TRACES) // 2


@FUZZ
@given(way=st.sampled_from(reports.WAYS), changes=reports.CHANGES)
@example(way="full", changes=[("text", "node1.100.0.page", leaf, reports.HOSTILE[0]) for leaf in reports.TEXTS])
@example(way="json", changes=[("number", "node1.100.0.page", leaf, (1 << 64) - 1) for leaf in reports.NUMBERS])
def test_reports(tmp_path: Path, way: str, changes: Sequence[reports.Change]) -> None:
    folder, room = tmp_path / "report", tmp_path / "room"
    room.mkdir(exist_ok=True)

    def read(changes: Sequence[reports.Change]) -> bool:
        folder.mkdir()
        try:
            reports.make(folder, changes)
            return reports.look(folder, way, room) == 0
        finally:
            shutil.rmtree(folder)

    of_reports(read, changes)


@FUZZ
@given(almost([PROGRAM, b"#!/usr/bin/env python3 -u\n"], WORDS))
def test_programs(tmp_path: Path, data: bytes) -> None:
    """What overlap-run reads of the program that it starts: any bytes are of some kind."""
    file = tmp_path / "program"

    def read(data: bytes) -> bool:
        file.write_bytes(data)
        found = elf.inspect(str(file))
        assert found.kind in (elf.UNKNOWN, elf.ELF, elf.SCRIPT)
        return bool(found.kind == elf.ELF)

    of_programs(read, data)
