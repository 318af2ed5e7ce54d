"""The programs of tests/programs, and ways to run them; see interposing.py there."""

from __future__ import annotations

from pathlib import Path

from interposing import bare, build, library, preloaded, simulated, table_of
from iterating import iterations

TESTS = Path(__file__).resolve().parent.parent

__all__ = ["bare", "build", "iterations", "library", "preloaded", "simulated", "table_of"]
