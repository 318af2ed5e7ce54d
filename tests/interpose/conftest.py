"""The programs of tests/programs, and ways to run them; see interposing.py there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "programs"), str(TESTS), str(TESTS / "clients"), str(TESTS.parent / "tools")]
pytest.register_assert_rewrite("interposing", "iterating")

from interposing import bare, build, library, preloaded, simulated, table_of  # noqa: E402
from iterating import iterations  # noqa: E402

__all__ = ["bare", "build", "iterations", "library", "preloaded", "simulated", "table_of"]
