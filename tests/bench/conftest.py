"""The programs whose instructions are counted."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest


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
