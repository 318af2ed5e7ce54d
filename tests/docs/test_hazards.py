"""docs/data/hazards.csv has a row for every hazard that a test is marked with, and its results."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tools.verify import hazards

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, with one test file."""
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(hazards, "ROOT", tmp_path)
    return tmp_path / "tests" / "test_one.py"


def test_the_table_is_of_today() -> None:
    assert list(hazards.findings()) == []


def test_every_mark_is_a_row(tree: Path) -> None:
    tree.write_text(
        '@pytest.mark.hazard("loader", "it hangs", source="https://x")\ndef test_a(): ...\n'
        '@pytest.mark.hazard("files", "it is gone")\ndef test_b(): ...\n'
    )
    found = hazards.declared()
    assert {tuple(hazard) for hazard in found} == {("loader", "it hangs", "https://x"), ("files", "it is gone", "")}
    assert set.union(*found.values()) == {"tests/test_one.py"}


@pytest.mark.parametrize("words", ['"loaders", "it hangs"', '"loader", f"it {1}"', '"loader"'])
def test_a_mark_that_the_table_cannot_hold_is_said_with_its_place(words: str, tree: Path) -> None:
    tree.write_text(f"\n@pytest.mark.hazard({words})\ndef test_a(): ...\n")
    with pytest.raises(SystemExit, match=r"hazards: tests/test_one\.py:2: "):
        hazards.declared()


def test_what_is_not_measured_and_what_is_gone_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    real = hazards.declared()
    gone, new = sorted(real)[0], hazards.Hazard("loader", "something new", "")
    others = {hazard: files for hazard, files in real.items() if hazard != gone}
    monkeypatch.setattr(hazards, "declared", lambda: {**others, new: {"tests/test_new.py"}})
    told = "\n".join(hazards.findings())
    assert "'something new' was never measured" in told
    assert f"no test shows {gone.what!r} any more" in told


def test_results_are_counted_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    hazard = hazards.Hazard("loader", "it hangs", "")
    results = [
        {"environment": "here", "outcome": "passed", "why": "", "tests": 3},
        {"environment": "musl", "outcome": "failed", "why": "", "tests": 1},
        {"environment": "musl", "outcome": "passed", "why": "", "tests": 2},
        {"environment": "glibc 9", "outcome": "skipped", "why": "no such thing", "tests": 1},
    ]
    monkeypatch.setattr(hazards, "declared", lambda: {hazard: {"tests/test_one.py"}})
    written = hazards.table({"hazards": [{**hazard._asdict(), "results": results}]})
    rows = list(csv.DictReader(written.splitlines()))
    counts = [tuple(row[name] for name in ("environment", "passed", "failed", "skipped")) for row in rows]
    assert counts == [("here", "3", "0", "0"), ("musl", "2", "1", "0"), ("glibc 9", "0", "0", "1")]
    assert rows[2]["why_skipped"] == "no such thing"
    assert {row["tests"] for row in rows} == {"tests/test_one.py"}


def test_a_hazard_without_a_test_has_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [{"environment": "here", "outcome": "passed", "why": "", "tests": 3}]
    gone = {"group": "files", "what": "it is gone", "source": "", "results": results}
    monkeypatch.setattr(hazards, "declared", dict)
    assert hazards.table({"hazards": [gone]}).splitlines() == [",".join(hazards.HEADS)]


def test_groups_are_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "limits.md").read_text(encoding="utf-8")
    assert [group for group in hazards.GROUPS if f"| `{group}` |" not in page] == []
