"""docs/hazards.md has a row for every hazard that a test is marked with, and says of each what came out of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hazards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("hazards", ROOT / "tools" / "hazards.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hazards", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(hazards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, with one test file."""
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(hazards, "ROOT", tmp_path)
    return tmp_path / "tests" / "test_one.py"


def test_the_page_is_of_today(hazards: Any) -> None:
    assert list(hazards.findings()) == []


def test_every_mark_is_a_row(hazards: Any, tree: Path) -> None:
    tree.write_text(
        '@pytest.mark.hazard("loader", "it hangs", source="https://x")\ndef test_a(): ...\n'
        '@pytest.mark.hazard("files", "it is gone")\ndef test_b(): ...\n'
    )
    found = hazards.declared()
    assert {tuple(hazard) for hazard in found} == {("loader", "it hangs", "https://x"), ("files", "it is gone", "")}
    assert set.union(*found.values()) == {"tests/test_one.py"}


@pytest.mark.parametrize("words", ['"loaders", "it hangs"', '"loader", f"it {1}"', '"loader"'])
def test_a_mark_that_the_table_cannot_hold_is_said_with_its_place(words: str, hazards: Any, tree: Path) -> None:
    tree.write_text(f"\n@pytest.mark.hazard({words})\ndef test_a(): ...\n")
    with pytest.raises(SystemExit, match=r"hazards: tests/test_one\.py:2: "):
        hazards.declared()


def test_what_is_not_measured_and_what_is_gone_are_findings(hazards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = hazards.declared()
    gone, new = sorted(real)[0], hazards.Hazard("loader", "something new", "")
    others = {hazard: files for hazard, files in real.items() if hazard != gone}
    monkeypatch.setattr(hazards, "declared", lambda: {**others, new: {"tests/test_new.py"}})
    told = "\n".join(hazards.findings())
    assert "'something new' was never measured" in told
    assert f"no test shows {gone.what!r} any more" in told


def test_results_are_told_by_environment_and_failures_stand_out(hazards: Any) -> None:
    hazard = hazards.Hazard("loader", "it hangs", "")

    def row(**outcomes: tuple[str, int]) -> str:
        results = [
            {
                "environment": name.replace("_", " ") if name != "here" else "here",
                "outcome": what,
                "why": "no such thing",
                "tests": count,
            }
            for name, (what, count) in outcomes.items()
        ]
        rows = [{**hazard._asdict(), "results": results}]
        return "\n".join([*hazards.group_table(rows, {hazard: {"tests/test_one.py"}}), *hazards.environments(rows)])

    assert "| it hangs | pass (3) | [one](../tests/test_one.py) |" in row(here=("passed", 3))
    assert "**fails** (1 of 1)" in row(here=("failed", 1))
    assert "not run: no such thing" in row(here=("skipped", 1))
    several = row(here=("passed", 1), musl=("passed", 2), glibc_9=("failed", 1))
    assert "pass (1); [2 environments](#by-environment)" in several
    assert "| what would happen | glibc 9 | musl |" in several
    assert "| it hangs | **fails** (1 of 1) | pass (2) |" in several
