"""The bugs that tools/mutants plants: code moves, and a row whose text is not there plants none."""

from __future__ import annotations

from pathlib import Path

from tools.mutants import __main__ as planting

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {file: (ROOT / file).read_text() for one in planting.mutants() for file, _, _ in one.changes}


def test_each_bug_can_be_planted() -> None:
    stale = [one.name for one in planting.mutants() for file, old, _ in one.changes if old not in TEXTS[file]]
    assert TEXTS and stale == []


def test_each_bug_has_tests_that_are_there() -> None:
    named = {test.partition("::")[0] for one in planting.mutants() for test in one.tests if test.endswith(".py")}
    assert named and [name for name in named if not (ROOT / name).exists()] == []
