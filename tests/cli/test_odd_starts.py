"""Commands that are started in a deleted folder, or without a stdin that can be read: an error, no traceback."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pyshim.tune.setup import WORDS

GONE = "the working directory has been deleted"


def gone(folder: Path):  # type: ignore[no-untyped-def]  # an argument of subprocess.run
    def enter() -> None:
        folder.mkdir()
        os.chdir(folder)
        folder.rmdir()

    return enter


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--quiet"]], ids=str)
def test_a_report_below_a_deleted_folder_is_125(overlap_run, tmp_path, options):
    done = overlap_run(*options, "--report", "out", "echo", "started", preexec_fn=gone(tmp_path / "x"))
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    assert GONE in done.stderr and "Traceback" not in done.stderr and "mistake" not in done.stderr


def test_in_a_deleted_folder_a_program_runs_and_a_report_elsewhere_is_kept(overlap_run, tmp_path):
    out = tmp_path / "out"
    done = overlap_run("--report", str(out), "echo", "started", preexec_fn=gone(tmp_path / "x"))
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert (out / "last" / "run.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        *("env --report out", "explain demo-stencil --html page.html", "policy check ./x.yaml", "policy show ./x.yaml"),
        *("tune --try A=1,2 -- true", "tune --resume {run}"),
    ],
)
def test_a_relative_path_in_a_deleted_folder_is_an_error_without_a_traceback(overlap_run, overlap, tmp_path, command):
    run = tmp_path / "run"
    assert overlap_run("--report", str(run), "true").returncode == 0
    (run / "tune.jsonl").write_text(
        json.dumps(dict.fromkeys(("command", "directory", "gpu", *WORDS), 0) | {"version": 1}) + "\n"
    )
    done = overlap(*command.format(run=run).split(), preexec_fn=gone(tmp_path / "x"))
    said = done.stdout + done.stderr
    assert done.returncode in (1, 2), said
    assert "error" in said and "Traceback" not in said and "mistake in" not in said


def test_doctor_in_a_deleted_folder_makes_no_mistake(overlap, tmp_path):
    done = overlap("doctor", "--json", sys.executable, "train.py", preexec_fn=gone(tmp_path / "x"))
    assert done.returncode in (0, 1) and "made a mistake" not in done.stdout, done.stdout


@pytest.mark.parametrize("descriptor", [0, 2])
def test_doctor_finds_the_same_without_a_stdin_or_a_stderr(overlap, descriptor):
    done = overlap("doctor", preexec_fn=lambda: os.close(descriptor))
    assert "ok    the library loads into programs" in done.stdout, done.stdout


@pytest.mark.parametrize("verb", ["check", "show"])
def test_a_policy_from_a_stdin_that_cannot_be_read_is_a_finding(overlap, verb):
    """It is closed, or can only be written, as nohup leaves it."""
    with open(os.devnull, "wb") as stdin:
        closed = overlap("policy", verb, "-", preexec_fn=lambda: os.close(0))
        for done, why in ((closed, "it is closed"), (overlap("policy", verb, "-", stdin=stdin), "Bad file descriptor")):
            said = done.stdout + done.stderr
            assert done.returncode == 1, said
            assert f"<stdin>: error[unreadable]: stdin cannot be read: {why}" in said
