"""Where the programs of tools/gpu are, and a client of the simulated GPU for what needs no real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "gpu"), str(ROOT / "tests" / "programs")]
pytest.register_assert_rewrite("interposing")

from interposing import build, simulated  # noqa: E402

__all__ = ["build", "simulated"]
