"""The tool's modules, as they find each other; and files to read that no compiler is needed for."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools" / "footprints"), str(Path(__file__).resolve().parent)]
