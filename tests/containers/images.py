"""Images as folders, without an engine: programs of this machine, the libraries that they need, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pyshim.start import plan

# What every image has, or its engine makes.
FOLDERS = ("bin", "dev", "driver", "etc", "home", "opt", "proc", "report", "run", "sys", "tmp", "usr", "var/tmp")
FILES = ("etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf")
# A shell, what task-prolog starts, and what tests ask.
PROGRAMS = ("sh", "cat", "dd", "env", "id", "od", "readlink", "uname")


def bare(folder: Path) -> Path:
    """One with nothing to run."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).touch()
    return folder


def make(folder: Path, client: Path) -> Path:
    """With programs of this machine, the client among them, and in /driver the simulated driver."""
    bare(folder)
    copy(folder, Path(plan.SIMULATED_DRIVER), "driver/libcuda.so.1")
    copy(folder, client, "bin/client")
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, name
        copy(folder, Path(found), f"bin/{name}")
    return folder


def copy(folder: Path, program: Path, place: str) -> None:
    shutil.copy(program, folder / place)
    for path in libraries(program):
        inside = folder / str(path)[1:]
        if not inside.exists():
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, inside)


def libraries(program: Path) -> Iterator[Path]:
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return map(Path, re.findall(r"(/\S+) \(0x", said))
