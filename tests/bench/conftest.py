"""The suite of programs, in this process and as a command, and the programs whose instructions are counted."""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

Suite = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def suite(python: Suite, built: None) -> Suite:
    """Run `python -m tools.bench.suites`."""
    return partial(python, "-m", "tools.bench.suites", cwd=ROOT)


@pytest.fixture(scope="session")
def run() -> ModuleType:
    """Return tools/bench/run.py, with the modules beside it."""
    return importlib.import_module("tools.bench.run")


@pytest.fixture(scope="session")
def folder(run: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with its compiled programs."""
    made = tmp_path_factory.mktemp("programs")
    run.compile_all(made)
    return made
