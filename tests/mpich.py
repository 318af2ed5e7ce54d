"""MPICH, whose package holds compiled programs only, below .tests/downloads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytorch

PACKAGE = "mpich==5.0.2"
Missing = pytorch.Missing


def mpiexec() -> Path:
    def make(folder: Path) -> None:
        pytorch.install(Path(sys.executable), "--no-deps", "--target", str(folder), PACKAGE)

    return pytorch.once("mpich", (PACKAGE,), make) / "bin" / "mpiexec"
