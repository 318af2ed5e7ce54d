"""A site folder, as an administrator makes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def install(prefix: Path, *arguments: str) -> Path:
    command = [sys.executable, str(ROOT / "tools" / "deploy" / "install"), str(prefix), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return prefix


def belongs_to(copy: Path, prefix: Path) -> None:
    """The files of a copy of this folder name the copy instead."""
    for path in [*(copy / "env").iterdir(), *(copy / "modulefiles").glob("*/*")]:
        path.write_text(path.read_text().replace(str(prefix), str(copy)))
