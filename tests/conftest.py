"""What every test may use: the commands as real processes, in an environment that nothing outside has touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parent.parent
_FOREIGN = ("OVERLAP_", "SLURM_", "OMPI_", "PMI", "SIMGPU", "LD_", "TRITON_", "NCCL_")
_ALSO = ("RANK", "WORLD_SIZE", "LOCAL_RANK")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """Ours, without what a launcher, another test or an outer overlap-run has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN) and name not in _ALSO}
    return {**kept, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def overlap_run(clean_environment: dict[str, str]) -> Run:
    return _runner("pyshim.cli.run", clean_environment)


@pytest.fixture(scope="session")
def overlap(clean_environment: dict[str, str]) -> Run:
    return _runner("pyshim", clean_environment)


@pytest.fixture(scope="session")
def library() -> Any:
    """The library's functions; the library must have been built (make setup)."""
    return _native.library()


def _runner(module: str, clean: Mapping[str, str]) -> Run:
    def run(*arguments: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        more.setdefault("timeout", 60)
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**clean, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            **more,
        )

    return run
