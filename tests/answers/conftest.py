"""The pages' own modules, as tools/answers finds them; and a copy of what they are made of, to change."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"

Answers = Callable[..., "subprocess.CompletedProcess[str]"]
# What the pages are made of and by.
PARTS = (
    "pyshim",
    "docs",
    "policies",
    "shim",
    *(f"tools/{name}" for name in ("answers", "bench", "demo", "footprints", "simgpu")),
)
PARTS += ("tools/gpu/overlap", "tools/gpu/results")


@pytest.fixture(autouse=True)
def built() -> None:
    for path in (_native.SHIM, _native.SIMULATED_DRIVER):
        if not path.exists():
            pytest.skip(f"{path.name} was not built")


@pytest.fixture(scope="session")
def answers(clean_environment: Mapping[str, str]) -> Answers:
    """`python -m tools.answers` of a folder."""

    def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tools.answers", *arguments],
            cwd=root,
            env=dict(clean_environment),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "__init__.py", tmp_path / "tools")
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path
