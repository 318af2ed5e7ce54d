"""The tool's modules, and what other tests make files with, as they find each other."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("tools", "tests", "tests/fuzz", "tests/footprints", "tests/traces", "tools/simgpu", "tools/simgpu/hip")
sys.path[:0] = [str(ROOT / place) for place in PLACES]
