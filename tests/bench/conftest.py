"""The suite of programs, in this process and as a command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tools" / "bench"

Suite = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def suite(python: Suite, built: None, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """Run `tools/bench/suite` from an empty folder."""
    return partial(python, str(BENCH / "suite"), cwd=tmp_path_factory.mktemp("elsewhere"))
