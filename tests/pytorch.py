"""PyTorch without a GPU, and what starts it on several processes, in a virtual environment below .tests/downloads.

They are not among the packages of the tests: on the package index their names stand for builds with CUDA, of gigabytes,
which ask for other versions of NVIDIA's packages than the tests do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs

PACKAGES = ("torch==2.13.0+cpu", "accelerate==1.15.0")
# What starts its ranks, without what trains: by themselves, because some of them ask for another PyTorch.
DEEPSPEED = (
    *("deepspeed==0.19.8", "annotated-types==0.8.0", "einops==0.8.2", "hjson==3.1.0", "msgpack==1.2.4"),
    *("numpy==2.4.6", "packaging==26.3", "psutil==7.2.2", "py-cpuinfo==9.0.0", "pydantic==2.14.3"),
    *("pydantic-core==2.50.4", "tqdm==4.70.1", "typing-inspection==0.4.5"),
)


class Missing(Exception):
    """One sentence: why it cannot be had here."""


def python() -> Path:
    """The interpreter that has them; beside it are torchrun and accelerate."""
    if sys.version_info < (3, 10):
        raise Missing("PyTorch 2.13 needs Python 3.10")

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        install(folder / "bin" / "python", *PACKAGES)

    return once("torch", PACKAGES, make) / "bin" / "python"


def deepspeed() -> Path:
    """The folder that has it, for python(): to be in PYTHONPATH; bin/deepspeed in it."""
    if sys.version_info < (3, 11):
        raise Missing("its packages need Python 3.11")
    own = python()
    return once("deepspeed", DEEPSPEED, lambda folder: install(own, "--no-deps", "--target", str(folder), *DEEPSPEED))


def once(what: str, packages: tuple[str, ...], make: Callable[[Path], None]) -> Path:
    """A folder that is made at the first use, and kept. Another choice of packages is another folder."""
    needs.allow(*packages)
    versions = (package.partition("==")[2] for package in packages[:2])
    name = "-".join((what, *versions, *map(str, sys.version_info[:2])))
    folder = needs.DOWNLOADS / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time, of several test runs
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / "done").touch()
    return folder


def install(own: Path, *words: str) -> None:
    # Thousands of modules, few of which are imported: these are compiled then.
    options = ("--quiet", "--no-cache-dir", "--no-compile", "--disable-pip-version-check")
    _run([str(own), "-m", "pip", "install", *options, *words])


def _run(command: list[str]) -> None:
    environment = {**os.environ, "DS_BUILD_OPS": "0"}  # of DeepSpeed: no kernels
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"{' '.join(command[2:5])}: {lines[-1]}")
