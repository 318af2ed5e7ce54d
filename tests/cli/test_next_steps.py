"""Every error has a next step, on the line behind it."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests/traces/data/stencil-nccl-events.json.gz"
ANOTHER = "--report DIR names another folder, which you can write to"
IN_PATH = "give the path of the program, or put its folder into PATH"
# Root may do everything unless these are taken away.
UNPRIVILEGED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    (tmp_path / "data").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "app").write_text("#!/bin/sh\n")
    (tmp_path / "built" / "app").chmod(0o755)
    (tmp_path / "st.yaml").write_text("policy: 1\nname: st\n")
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "status", "error", "hint"),
    [
        ("torchrun train.py", 127, "torchrun: program not found", IN_PATH),
        ("nope", 127, "nope: program not found", IN_PATH),
        ("nope --policy h100", 127, "nope: program not found", "options of overlap-run go before PROGRAM"),
        ("nope -p h100", 127, "nope: program not found", "options of overlap-run go before PROGRAM"),
        ("data", 127, "data: program not found", "the file in this folder is ./data"),
        ("./folder", 126, "./folder is a directory", "name a program in it"),
        ("./built", 126, "./built is a directory", "did you mean ./built/app?"),
        ("--report file true", 125, "the report folder {0}/file is not a folder", ANOTHER),
        ("--report= true", 125, "the report folder needs a name", "--report DIR names a folder, which is made"),
        ("--report /proc/x true", 125, "the report folder /proc/x cannot be made: No such file or directory", ANOTHER),
        ("-p ./mime.yaml true", 125, "mime.yaml: error[missing-file]: no such file", "did you mean mine.yaml?"),
        (
            "-p ./x/other.yaml true",
            125,
            "x/other.yaml: error[missing-file]: no such file",
            "overlap policy list names those that ship",
        ),
        (
            "-p ./nothere.yaml true",  # whose suffix alone is that of st.yaml
            125,
            "nothere.yaml: error[missing-file]: no such file",
            "overlap policy list names those that ship",
        ),
        (
            "-p /proc/self/mem true",  # no permission is missing
            125,
            "/proc/self/mem: error[unreadable]: the file cannot be read: Input/output error",
            "name another file; overlap policy list names those that ship",
        ),
        (
            "-p observe,default --simulate h100 true",
            125,
            "the policies `observe` and `default` are both for every GPU",
            "combine policies whose `gpu` differ; one for every GPU stands last",
        ),
    ],
)
def test_of_overlap_run(overlap_run, library, place, words, status, error, hint):
    done = overlap_run(*words.split(), cwd=place)
    assert done.returncode == status
    told = f"overlap: error: {error.format(os.path.realpath(place))}\noverlap: help: {hint}\n"
    assert done.stderr == told


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        ("report folder --force", "--force needs --html FILE", "--html FILE names the page to replace"),
        ("env --report file", "the report folder {0}/file is not a folder", ANOTHER),
        ("tune --limit 30 -- true", "--limit 30: a time has a unit", "30s, 30m or 30h: seconds, minutes or hours"),
        ("policy chek mine.yaml", "no command of overlap policy is called 'chek'", "did you mean check?"),
        ("policy x", "no command of overlap policy is called 'x'", "one of: check, show, list, room, schema"),
        ("env --format dokcer", "--format knows no 'dokcer'", "did you mean docker?"),
    ],
)
def test_of_overlap(overlap, library, place, words, error, hint):
    done = overlap(*words.split(), cwd=place)
    assert done.returncode == 2
    told = f"overlap: error: {error.format(os.path.realpath(place))}\noverlap: help: {hint}\n"
    assert done.stderr == told


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="root takes its own rights away")
@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            "--policy ./closed.yaml true",
            "closed.yaml: error[unreadable]: the file cannot be read: Permission denied",
            "this user may not read the file: chmod u+r closed.yaml",
        ),
        (
            "--policy ./with' 'space.yaml true",
            "with space.yaml: error[unreadable]: the file cannot be read: Permission denied",
            "this user may not read the file: chmod u+r 'with space.yaml'",
        ),
        (
            "--policy ./theirs.yaml true",
            "theirs.yaml: error[unreadable]: the file cannot be read: Permission denied",
            "this user may not read the file: its owner can allow it by chmod a+r theirs.yaml",
        ),
        (
            "--policy ./shut/in.yaml true",
            "shut/in.yaml: error[unreadable]: the file cannot be read: Permission denied",
            "this user may not enter the folder {0}/shut: chmod u+x {0}/shut",
        ),
        ("--report closed/r true", "the report folder {0}/closed/r cannot be made: Permission denied", ANOTHER),
        ("--report closed true", "the report folder {0}/closed cannot be written to", ANOTHER),
    ],
)
def test_what_this_user_may_not_touch(clean_environment, library, place, words, error, hint):
    for name in ("closed.yaml", "with space.yaml", "theirs.yaml"):
        (place / name).write_text("policy: 1\nname: closed\n")
        (place / name).chmod(0)
    os.chown(place / "theirs.yaml", 1, 1)
    (place / "shut").mkdir(mode=0o600)
    (place / "closed").mkdir(mode=0o555)
    command = (*UNPRIVILEGED, sys.executable, "-m", "pyshim.cli.run", *shlex.split(words))
    done = subprocess.run(command, cwd=place, env=clean_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 125
    here = os.path.realpath(place)
    assert done.stderr == f"overlap: error: {error.format(here)}\noverlap: help: {hint.format(here)}\n"


@pytest.mark.parametrize("others", [(), ("notes.json",)])
def test_a_folder_of_traces_is_no_damaged_report(overlap, library, tmp_path, others):
    shutil.copy(TRACE, tmp_path / "rank0.json.gz")
    for name in others:
        (tmp_path / name).write_text("{}")
    done = overlap("report", str(tmp_path))
    assert done.stderr == (
        f"overlap: error: {tmp_path} holds traces of a profiler, and no report of overlap-run\n"
        f"overlap: help: for profilers' traces: overlap explain {tmp_path}\n"
    )
    assert overlap("explain", str(tmp_path)).returncode == 0


def _is_python(path: Path) -> bool:
    return path.suffix == ".py" or path.read_bytes()[:64].startswith(b"#!/usr/bin/env python")


def test_no_error_of_ours_is_without_one():
    scripts = [path for path in (ROOT / "tools").rglob("*") if path.is_file() and _is_python(path)]
    bare = []
    for path in sorted([*(ROOT / "pyshim").rglob("*.py"), *scripts]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "OverlapError":
                continue
            given = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "hint")]
            starred = any(isinstance(argument, ast.Starred) for argument in node.args)
            if not starred and (not given or (isinstance(given[0], ast.Constant) and not given[0].value)):
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert bare == []
