"""The suite of programs, in this process and as a command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tools" / "bench"

Suite = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def suite(clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """`tools/bench/suite`, from a folder of no meaning."""
    for path in (_native.SHIM, _native.SIMULATED_DRIVER):
        if not path.exists():
            pytest.skip(f"{path.name} was not built")
    folder = tmp_path_factory.mktemp("elsewhere")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(BENCH / "suite"), *arguments],
            cwd=folder,
            env=dict(clean_environment),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
