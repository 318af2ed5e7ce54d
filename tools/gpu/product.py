"""The product's two commands for programs of this folder: those of PATH, or those of this checkout, not installed."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"overlap-run": "pyshim.cli.run", "overlap": "pyshim"}


def missing() -> str | None:
    """Why they cannot be used here, or None."""
    if all(map(shutil.which, MODULES)):
        return None
    needed = ("cffi", "yaml", "rich", "psutil")
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    if absent:
        where = "after make setup: PATH=$PWD/.venv/bin:$PATH"
        return f"overlap-run, which needs the Python modules {', '.join(absent)} ({where})"
    if not (ROOT / "pyshim/_lib/liboverlap.so").exists():
        return "overlap-run: not in PATH, and not built in this checkout (make setup, or python3 shim/build.py)"
    return None


def environment(folder: Path) -> dict[str, str]:
    """Ours, with both commands in PATH; where they are not, scripts in `folder` that run them from the checkout."""
    found = dict(os.environ)
    if all(map(shutil.which, MODULES)):
        return found
    folder.mkdir(parents=True, exist_ok=True)
    for command, module in MODULES.items():
        path = os.pathsep.join(filter(None, (str(ROOT), found.get("PYTHONPATH"))))
        words = shlex.join(["env", f"PYTHONPATH={path}", sys.executable, "-P", "-m", module])
        if sys.version_info < (3, 11):
            words = words.replace(" -P ", " ")
        (folder / command).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        (folder / command).chmod(0o755)
    found["PATH"] = os.pathsep.join((str(folder), found.get("PATH", os.defpath)))
    return found
