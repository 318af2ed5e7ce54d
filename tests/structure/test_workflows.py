""".github/workflows runs what .ci/run runs, on the Pythons, compilers and processors that we promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    return found


def runs(job: dict[str, Any]) -> list[str]:
    return [line.strip() for step in job["steps"] for line in step.get("run", "").splitlines()]


def test_every_command_is_a_target_of_make_or_the_script_of_ci(jobs: dict[str, Any]) -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {target for line in phony for target in line.split()}
    made = [line.split()[1:] for job in jobs.values() for line in runs(job) if line.startswith("make ")]
    assert made and all(set(words) <= targets for words in made)
    assert ".ci/run" in runs(jobs["all"])


def test_oldest_and_newest_python_both_compilers_both_processors(jobs: dict[str, Any]) -> None:
    matrix = jobs["test"]["strategy"]["matrix"]
    needed = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert needed and matrix["python"][0] == needed[1]
    assert set(matrix["compiler"]) == {"gcc", "clang"}
    assert {runner.endswith("-arm") for runner in matrix["runner"]} == {False, True}
    assert "make test" in runs(jobs["test"])


def test_ci_runs_everything_that_contributors_are_told() -> None:
    (line,) = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert line in (ROOT / "CONTRIBUTING.md").read_text()
    assert {"test", "lint", "test-all", "fuzz", "SYSTEM=1"} == {w for w in line.split() if not w.startswith("READERS=")}
