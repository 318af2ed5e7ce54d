"""What fuzzing has found, and what it could not find in a minute: files that somebody else has made, to crash the
reader, to keep it busy, or to speak to a person's terminal in its name."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy import reader
from pyshim.profiles import open_trace
from tests.fuzz import reports
from tests.fuzz.saying import ask
from tests.traces.made import K, kineto_events, nsys, step

KERNELS = step(1000, [100, 120, 80], [(40, 300)])
ESCAPES = b"\x1b]0;owned\x07\x1b[2J\x9b31m\nfake: line\xe2\x80\xae[red]"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Three good pages, of which the tests change the first."""
    for name, data in reports.PAGES.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def change(folder: Path, **fields: Any) -> None:
    """Of the first page."""
    path = folder / "node1.100.0.page"
    page = _native.ffi.new("struct overlap_page *")
    _native.ffi.buffer(page)[:] = path.read_bytes()
    for name, value in fields.items():
        if isinstance(value, bytes):
            _native.ffi.memmove(getattr(page, name), value, len(value))
        else:
            setattr(page, name, value)
    path.write_bytes(bytes(_native.ffi.buffer(page)))


# ---- pages and runs ----


def test_a_page_of_very_many_ranks(report):
    change(report, world=2**32 - 1)
    for arguments in (("report", str(report)), ("report", str(report), "--json")):
        said = ask(*arguments)
        assert said.status == 0
    assert json.loads(said.out)["totals"]["launches"] > 0


@pytest.mark.parametrize("started", ["1e999", "NaN", "-Infinity", "9" * 400, "9" * 5000, '"x"', "[]", "1e300"])
def test_a_run_that_began_at_no_time(report, started):
    run = {**reports.RUNNING._asdict(), "started": 12345.0, "expected_world_size": 10**30}
    text = json.dumps(run).replace("12345.0", started)
    (report / "run.json").write_text(text, encoding="utf-8")
    for more in ((), ("--json",), ("--full",)):
        assert ask("report", str(report), *more).status == 0


@pytest.mark.parametrize("field", ["host", "program", "library"])
def test_what_a_page_says_reaches_no_terminal_raw(report, field):
    change(report, **{field: ESCAPES})
    for name in ("\x1b[31m\n.7.0.page", "a\nfake: line.page"):
        (report / name).write_bytes(b"x" * 100)
    said = ask("report", "--full", str(report))
    for text in (said.out, said.err):
        assert "\x1b" not in text and not re.search(r"^(overlap: )?fake: line", text, re.M)
    assert "31m" in said.out + said.err


def test_one_sentence_is_one_line(tmp_path):
    said = ask("report", str(tmp_path / "a\noverlap: fine"))
    assert said.status == 2 or said.status == 1
    assert len(said.err.splitlines()) == sum(line.startswith("overlap: ") for line in said.err.splitlines()) <= 2
    assert "a?overlap: fine" in said.err


def test_a_folder_of_odd_files(report):
    os.mkfifo(report / "pipe.1.0.page")
    (report / "zero.1.0.page").symlink_to("/dev/zero")
    (report / "folder.1.0.page").mkdir()
    for number in range(1_000):
        (report / f"x.{number}.0.page").touch()
    before = time.process_time()
    said = ask("report", str(report), "--json")
    assert time.process_time() - before < 5
    assert said.status == 0 and len(json.loads(said.out)["processes"]) == 3
    assert len(said.err) < 2000 and "skipped" in said.err


# ---- traces ----


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_a_trace_that_unpacks_to_very_much(tmp_path):
    zeros = zlib.compressobj(9, wbits=31)
    data = zeros.compress(b"[" + b" " * (100 << 20)) + zeros.flush()
    file = write(tmp_path / "bomb.json.gz", data * 4)
    trace, before = open_trace(file), time.process_time()
    assert list(trace.activity()) == []
    assert "unpacks to more than" in trace.ending and time.process_time() - before < 5


@pytest.mark.parametrize(
    "value", ["[]", "{}", "null", '"x"', "9" * 4000, "-1e999", "NaN", "[" * 400 + "]" * 400, "true"]
)
def test_a_trace_with_odd_numbers(tmp_path, value):
    text = json.dumps(kineto_events(KERNELS))
    for key in ("pid", "tid", "ts", "dur", "device", "stream", "registers per thread", "grid"):
        changed = re.sub(rf'"{key}": (\[[^]]*\]|[^,}}]+)', lambda _, key=key: f'"{key}": {value}', text)
        assert changed != text
        file = write(tmp_path / "trace.json", changed)
        ask("explain", file, "--json")
    head = '[{"name": "process_name", "args": {"name": "simulated, rule fifo"}}, '
    head += '{"name": "x", "ph": "X", "ts": 1, "dur": 1, '
    ask("explain", write(tmp_path / "simulated", f'{head}"pid": {value}, "tid": {value}, "args": {value}}}]'))


def endless(path: Path) -> None:
    """A view that has rows without end in place of a table of a database of nsys."""
    with closing(sqlite3.connect(path)) as made:
        made.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO others")
        made.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE more(start) AS (SELECT 1 UNION ALL "
            "SELECT start + 1 FROM more) "
            "SELECT start, start + 1 AS end, 0 AS deviceId, 7 AS streamId, 1 AS shortName FROM more"
        )
        made.commit()


def test_a_database_without_end(tmp_path):
    path = nsys(tmp_path / "views.sqlite", KERNELS)
    endless(path)
    before = time.process_time()
    said = ask("explain", str(path))
    assert time.process_time() - before < 15
    assert said.status in (1, 2) and "far longer to read than those of any recording" in said.err


def test_a_database_whose_tables_are_no_text(tmp_path):
    path = nsys(tmp_path / "odd.sqlite", KERNELS)
    data, refused = path.read_bytes(), 0
    tables = data.index(b"CREATE TABLE")
    for place in range(tables, tables + 200, 20):
        trace = open_trace(write(path, data[:place] + b"\x93" + data[place + 1 :]))
        try:
            list(trace.activity())
        except OverlapError:
            refused += 1
    assert refused


def test_what_a_trace_says_reaches_no_terminal_raw(tmp_path):
    name = ESCAPES.decode("latin-1") + "gemm<x>"
    events = json.dumps(kineto_events([K(name, 1000, 50), *KERNELS]))
    file = write(tmp_path / "a\x1b[31m\nfake: line.json", events)
    said = ask("explain", file)
    assert said.status in (0, 1) and "31m\n" not in said.err  # long lines are wrapped anywhere
    packed = write(tmp_path / "x.json.gz", gzip.compress(events.encode()))
    assert ask("explain", packed, "--json").status == 0


# ---- policies ----


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 3000 + "x", "x" * 300 + ".yaml"])
def test_a_name_that_no_file_can_have(tmp_path, name):
    reading = reader.read_bytes(f"policy: 1\nname: a\nextends: {name}\n".encode(), str(tmp_path / "a.yaml"))
    assert [finding.code for finding in reading.findings] == ["missing-policy"]
    for arguments in (("policy", "check", name), ("policy", "show", name), ("explain", name)):
        assert ask(*arguments).status in (1, 2)


def test_a_policy_that_extends_what_is_no_file_is_told_where_it_says_so(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("./pipe.yaml", "/dev/zero", "../", str(tmp_path)):
        text = f"policy: 1\nname: a\nextends: {name}\n"
        reading = reader.read_bytes(text.encode(), str(tmp_path / "a.yaml"))
        assert [(finding.code, finding.line, finding.file) for finding in reading.findings] == [("not-a-file", 3, "")]


def test_the_name_of_a_policy_file_is_shown_and_not_obeyed(tmp_path):
    for name, text in (("good", "policy: 1\nname: a\n"), ("bad", "policy: 1\nnam: a\n")):
        (tmp_path / f"{name}\x1b]0;x\x07\nfake: line.yaml").write_text(text, encoding="utf-8")
    said = ask("policy", "check", str(tmp_path))
    assert said.status == 1 and "good?]0;x??fake: line.yaml: ok" in said.out
    shown = ask("policy", "show", str(next(tmp_path.glob("good*")))).out
    assert "fake" in shown and reader.read_bytes(shown.encode(), "shown.yaml").ok
