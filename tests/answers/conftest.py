"""`tools.docs.write` of the tree, and of a copy of what it reads, to change."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"

Answers = Callable[..., "subprocess.CompletedProcess[str]"]
# What the pages are made of and by.
PARTS = (
    "pyshim",
    "docs",
    "policies",
    "shim",
    *(f"tools/{name}" for name in ("bench", "checks", "demo", "docs", "simgpu")),
)
PARTS += ("tools/gpu/results",)


@pytest.fixture(autouse=True)
def _built(built: None) -> None:
    pass


@pytest.fixture(scope="session")
def answers(python: Answers) -> Answers:
    """Run `python -m tools.docs.write` in a folder."""
    return lambda root, *arguments: python("-m", "tools.docs.write", *arguments, cwd=root)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "__init__.py", tmp_path / "tools")
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path
