"""The GPUs of shim/core/gpu.def, in its order: what tests compare with what the library and the commands know."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_ROWS = re.findall(r"^(GPU|AMD)\((\w+),", (ROOT / "shim" / "core" / "gpu.def").read_text(encoding="ascii"), re.M)
NVIDIA = [key for kind, key in _ROWS if kind == "GPU"]
AMD = [key for kind, key in _ROWS if kind == "AMD"]
KEYS = NVIDIA + AMD
