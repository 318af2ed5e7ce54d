"""The analyzer of gcc finds nothing in the library's sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).resolve().parents[2] / "shim"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fanalyzer", "-Wall", "-Wextra", "-Wconversion", f"-I{SHIM}")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("source", sorted(str(path.relative_to(SHIM)) for path in SHIM.rglob("*.c")))
def test_nothing_is_found(source: str, tmp_path: Path) -> None:
    command = ["gcc", *FLAGS, "-c", str(SHIM / source), "-o", str(tmp_path / "analyzed.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
