"""The programs of tests/programs, and ways to run them; see interposing.py there."""

from __future__ import annotations

from interposing import bare, build, library, preloaded, simulated, table_of
from iterating import iterations

__all__ = ["bare", "build", "iterations", "library", "preloaded", "simulated", "table_of"]
