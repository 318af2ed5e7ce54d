"""Where the programs of tools/gpu are, and a client of the simulated GPU for what needs no real one."""

from __future__ import annotations

from pathlib import Path

from interposing import build, simulated

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["build", "simulated"]
