"""Short options, and --quiet, which every command takes."""

from __future__ import annotations

import pytest

from pyshim.cli.run import split


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


def test_quiet_leaves_out_notes(overlap, tmp_path):
    words = ("explain", "demo-stencil", "--html")
    assert "the page is a.html" in overlap(*words, "a.html", cwd=tmp_path).stderr
    assert "the page" not in overlap(*words, "b.html", "-q", cwd=tmp_path).stderr
    assert (tmp_path / "b.html").exists()
    assert "no command is called" in overlap("-q", "nope").stderr
