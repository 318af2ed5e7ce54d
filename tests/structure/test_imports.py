"""`make lint` fails where pyshim/ breaks the law of pyproject.toml: its layers, cycles, cffi, rich and printing."""

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


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("pyshim/policy/model.py", "import cffi", "pyshim is not allowed to import cffi"),
        ("pyshim/report/tables.py", "from rich import table", "pyshim is not allowed to import rich"),
        ("pyshim/cli/policy.py", "import rich", "pyshim is not allowed to import rich"),
        ("pyshim/launch/plan.py", "from pyshim.cli import ui", "pyshim.launch is not allowed to import pyshim.cli"),
        ("pyshim/report/tables.py", "from ..cli.ui import say", "pyshim.report is not allowed to import pyshim.cli"),
        ("pyshim/stats/page.py", "import pyshim.policy", "pyshim.stats is not allowed to import pyshim.policy"),
        (
            "pyshim/policy/table.py",
            "def later() -> None:\n    from pyshim.launch import plan",
            "No cycles are allowed in pyshim",
        ),
        (
            "pyshim/report/collect.py",
            "if TYPE_CHECKING:\n    from pyshim.report.tables import Kind",
            "No cycles are allowed in pyshim.report",
        ),
    ],
)
def test_an_import_that_breaks_the_law_is_noticed(file: str, line: str, says: str, tree: Path) -> None:
    pytest.importorskip("importlinter")
    with (tree / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    assert says in lint(tree, "import-linter")


@pytest.mark.parametrize(
    ("file", "line", "says"),
    [
        ("pyshim/policy/model.py", "print('x')", "T201"),
        ("pyshim/stats/page.py", "import sys; sys.stderr.write('x')", "only pyshim/cli prints"),
        ("pyshim/doctor/machine.py", "import os; os.write(2, b'x')", "only pyshim/cli prints"),
    ],
)
def test_printing_outside_of_the_command_line_is_noticed(file: str, line: str, says: str, tree: Path) -> None:
    with (tree / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    assert says in lint(tree, "ruff")


def test_the_law_is_kept(tree: Path) -> None:
    pytest.importorskip("importlinter")
    lint(tree, "import-linter", "ruff")
