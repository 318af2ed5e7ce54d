"""A program of another C library, musl: by musl-gcc where there is one, else with files of Debian's packages."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import debian


def build(source: Path, program: Path) -> Path:
    """Its loader is where it says itself; debian.Missing where there is no musl."""
    compiler = shutil.which("musl-gcc")
    if compiler:
        subprocess.run([compiler, "-O1", "-D_GNU_SOURCE", str(source), "-o", str(program)], check=True)
        return program
    root = debian.fetch(debian.codename(), ["musl", "musl-dev"])
    triple = f"{platform.machine()}-linux-musl"
    parts = root / "usr" / "lib" / triple
    loader = next(path for path in root.rglob(f"{triple}/libc.so") if not path.is_symlink())
    headers = ["-nostdinc", "-isystem", str(root / "usr" / "include" / triple)]
    flags = ["-O1", "-D_GNU_SOURCE", *headers, "-nostdlib", "-no-pie", "-fno-stack-protector"]
    link = [f"-Wl,--dynamic-linker={loader}", *(str(parts / name) for name in ("crt1.o", "crti.o"))]
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags, *link, str(source), str(loader), str(parts / "crtn.o")]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program
