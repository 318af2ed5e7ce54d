"""PyTorch without a GPU, and what starts it on several processes, in a virtual environment of their own.

They are not among the packages of the tests: on the package index their names stand for builds with CUDA, of gigabytes,
which ask for other versions of NVIDIA's packages than the tests do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("torch==2.13.0+cpu", "accelerate==1.15.0")


class Missing(Exception):
    """One sentence: why it cannot be had here."""


def python() -> Path:
    """The interpreter that has them; beside it are torchrun and accelerate."""
    if sys.version_info < (3, 10):
        raise Missing("PyTorch 2.13 needs Python 3.10")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    name = "-".join(("torch", *(package.partition("==")[2] for package in PACKAGES), *map(str, sys.version_info[:2])))
    folder = Path(base) / "overlap-run" / name
    found = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time, of several test runs
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(found), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
            (folder / "done").touch()
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"needs PyTorch's build for the CPU: {lines[-1]}")
