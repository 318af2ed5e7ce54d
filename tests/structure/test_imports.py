"""pyshim/ keeps the law of pyproject.toml (layers, cycles, cffi, rich, printing), and `make lint` notices a breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lint(root: Path, *checks: str) -> str:
    command = [sys.executable, "-m", "tools.checks.lint", *checks]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if f" {len(checks)} of {len(checks)} checks passed" in done.stderr else 1), done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "pyshim", tmp_path / "pyshim", ignore=shutil.ignore_patterns("_lib", "__pycache__"))
    (tmp_path / "tools" / "checks").mkdir(parents=True)
    for file in ("tools/__init__.py", "tools/checks/lint.py", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_the_law_is_kept_and_a_breach_is_noticed(tree: Path) -> None:
    pytest.importorskip("importlinter")
    lint(tree, "import-linter", "ruff")
    with (tree / "pyshim/start/plan.py").open("a", encoding="utf-8") as source:
        source.write("\nfrom pyshim.cli import ui\nprint(ui)\n")
    assert "pyshim.start is not allowed to import pyshim.cli" in lint(tree, "import-linter")
    assert "T201" in lint(tree, "ruff")
