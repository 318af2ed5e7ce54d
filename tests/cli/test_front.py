"""`overlap run`, `overlap help`, short options, and the options that every command takes."""

from __future__ import annotations

import json
import os

import pytest

from pyshim.cli import COMMANDS
from pyshim.cli.run import split


def test_overlap_run_is_overlap_run(overlap, overlap_run, library):
    for words in (("--version",), ("--help",), ("sh", "-c", "echo out; exit 7"), ("--nope", "true"), ("nosuch",)):
        one, other = overlap("run", *words), overlap_run(*words)
        assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)
    assert overlap("run", "sh", "-c", "exit 7").returncode == 7


def test_options_in_front_of_run_hold(overlap, library, tmp_path):
    noisy = ("--simulate", "h100", "sh", "-c", "echo out")
    assert "simulated" in overlap("run", *noisy).stderr
    for words in (("-q", "run"), ("--quiet", "--color", "never", "run"), ("run", "-q")):
        done = overlap(*words, *noisy)
        assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")
    done = overlap("-o", "run", "run", "true", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "--output does not go with run" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert overlap("--version", "run", "true").stdout.startswith("overlap 0")


@pytest.mark.parametrize("command", [*COMMANDS, "policy check", "run"])
def test_help_of_a_command_is_its_help(command, overlap, library):
    words = command.split()
    asked, told = overlap(*words, "--help"), overlap("help", *words)
    assert (told.returncode, told.stdout, told.stderr) == (0, asked.stdout, "")


def test_help_alone_is_that_of_overlap(overlap, library):
    assert overlap("help").stdout == overlap("--help").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no_room_registers"], "reason no_room_registers"),
        (["capped_without_room"], "reason capped_without_room"),
        (["share"], "key streams.raise.share"),
        (["streams.created_by"], "key streams.created_by"),
        (["raised", "stream"], "something waits for it"),
        (["drain"], "hold, drain, backfill"),
        (["raise"], "key streams.raise"),
        (["left a page"], "left a page"),
    ],
)
def test_every_word_on_the_screen_has_help(overlap, library, words, expected):
    """Without saying first whether it is a reason, a key or neither."""
    done = overlap("help", *words)
    assert done.returncode == 0 and expected in " ".join(done.stdout.split()), done.stderr


def test_reasons_and_keys_have_help(overlap, library):
    every = overlap("help", "reasons").stdout
    one = overlap("help", "reasons", "captured").stdout
    assert one.startswith("captured  ") and len(every.splitlines()) > 30
    assert "Default: " in overlap("help", "keys", "communication.kernels").stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["reprot"], "did you mean `report`?"),
        (["reasons", "captred"], "did you mean `captured`?"),
        (["keys", "zzz"], "overlap help keys lists all"),
    ],
)
def test_a_topic_that_is_none(words, hint, overlap, library):
    done = overlap("help", *words)
    assert (done.returncode, done.stdout) == (2, "") and f"help: {hint}" in done.stderr


@pytest.mark.parametrize(
    ("words", "ours", "program"),
    [
        (["-p", "h100", "-n", "a", "-p"], ["--policy", "h100", "--dry-run"], ["a", "-p"]),
        (["-ph100", "-o", "out", "a"], ["--policy=h100", "--report", "out"], ["a"]),
        (["-nqo", "out", "a"], ["--dry-run", "--quiet", "--report", "out"], ["a"]),
        (["-q", "--", "-n"], ["--quiet"], ["-n"]),
        (["-qz", "a"], ["--quiet", "-z"], ["a"]),
        (["-h"], ["-h"], []),
        (["-p"], ["--policy"], []),
        (["-", "-n"], [], ["-", "-n"]),
        (["--dry_run", "--policy=x", "a"], ["--dry-run", "--policy=x"], ["a"]),
    ],
)
def test_short_options_are_the_long_ones(words, ours, program):
    assert split(words) == (ours, program)


def test_short_options_act(overlap_run, library, tmp_path):
    done = overlap_run("-nqp", "observe", "--simulate", "h100", "-o", str(tmp_path / "out"), "true")
    assert done.returncode == 0 and f"would keep a report in {tmp_path}/out" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_answer_goes_into_a_new_file(overlap, library, tmp_path):
    printed = overlap("gpus", "--json").stdout
    for number, words in enumerate((("gpus", "--json", "-o"), ("gpus", "--json", "--output"))):
        done = overlap(*words, f"{number}.json", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / f"{number}.json").read_text() == printed
    assert overlap("-o", "2", "--color", "always", "gpus", cwd=tmp_path).returncode == 0
    assert "\x1b[" in (tmp_path / "2").read_text()


def test_no_file_is_replaced_and_none_is_left_by_halves(overlap, library, tmp_path):
    (tmp_path / "there").write_text("mine")
    os.symlink("nowhere", tmp_path / "link")
    for name in ("there", "link"):
        done = overlap("gpus", "-o", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and f"{name} already exists" in done.stderr
    assert (tmp_path / "there").read_text() == "mine"
    assert overlap("policy", "show", "nosuch", "-o", "new", cwd=tmp_path).returncode != 0
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


@pytest.mark.parametrize("words", [["gpus"], ["policy", "show", "h100"], ["explain", "--from", "demo-step"]])
def test_a_file_is_replaced_with_force(overlap, library, tmp_path, words):
    (tmp_path / "there").write_text("mine")
    done = overlap(*words, "-o", "there", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith("help: name another file, or replace it: --force\n")
    assert (tmp_path / "there").read_text() == "mine"
    done = overlap(*words, "-o", "there", "--force", cwd=tmp_path)
    assert done.returncode == 0 and len((tmp_path / "there").read_text()) > 100, done.stderr


def test_findings_are_written_as_well(overlap, library, tmp_path):
    (tmp_path / "bad.yaml").write_text("policy: 1\nnaem: x\n")
    done = overlap("policy", "check", "bad.yaml", "--output-format", "json", "-o", "found", cwd=tmp_path)
    assert done.returncode == 1 and json.loads((tmp_path / "found").read_text())
    asked = overlap("policy", "check", "bad.yaml", "--json", cwd=tmp_path)
    assert (asked.returncode, asked.stdout) == (1, (tmp_path / "found").read_text())


def test_quiet_leaves_out_notes(overlap, overlap_run, tmp_path):
    assert overlap_run("--report", "run", "true", cwd=tmp_path).returncode == 0
    words = ("report", "run", "--html")
    assert "the page is a.html" in overlap(*words, "a.html", cwd=tmp_path).stderr
    assert "the page" not in overlap(*words, "b.html", "-q", cwd=tmp_path).stderr
    assert (tmp_path / "b.html").exists()
    assert "no command is called" in overlap("-q", "nope").stderr
