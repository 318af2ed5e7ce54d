"""Tools of this repository as modules: the reader of ELF files, and the table of the runtime's names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "tools" / "simgpu" / "runtime"


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


check_exports = _load(ROOT / "tools" / "check_exports.py")
names = _load(RUNTIME / "names.py")
