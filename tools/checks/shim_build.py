"""shim/build.py as a module: by its path, because others are called `build`, too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(root: Path = ROOT) -> ModuleType:
    """That of a tree."""
    spec = importlib.util.spec_from_file_location("shim_build", root / "shim" / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
