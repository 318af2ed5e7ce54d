"""A program of another C library, musl: by musl-gcc where there is one, else with files of Debian's packages."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import debian


def build(source: Path, program: Path, image: Path | None = None) -> Path:
    """image: of the root of a file system, which gets the loader; else that is where the program says. debian.Missing
    where there is no musl."""
    compiler = shutil.which("musl-gcc")
    if compiler and not image:
        subprocess.run([compiler, "-O1", "-D_GNU_SOURCE", str(source), "-o", str(program)], check=True)
        return program
    root = debian.fetch(debian.codename(), ["musl", "musl-dev"])
    triple = f"{platform.machine()}-linux-musl"
    parts = root / "usr" / "lib" / triple
    loader = next(path for path in root.rglob(f"{triple}/libc.so") if not path.is_symlink())
    recorded = str(loader)
    if image:
        recorded = f"/lib/ld-musl-{platform.machine()}.so.1"
        (image / "lib").mkdir(exist_ok=True)
        shutil.copy(loader, f"{image}{recorded}")
    headers = ["-nostdinc", "-isystem", str(root / "usr" / "include" / triple)]
    flags = ["-O1", "-D_GNU_SOURCE", *headers, "-nostdlib", "-no-pie", "-fno-stack-protector"]
    link = [f"-Wl,--dynamic-linker={recorded}", *(str(parts / name) for name in ("crt1.o", "crti.o"))]
    compile_ = [*shlex.split(os.environ.get("CC", "cc")), *flags, *link, str(source)]
    command = [*compile_, f"-L{loader.parent}", "-lc", str(parts / "crtn.o")]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program
