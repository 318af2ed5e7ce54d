"""The SPANK plugin: built, and the site folder that it reads."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import debian

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tools" / "slurm" / "spank"
HEADER = Path("/usr/include/slurm/spank.h")
NAME = "liboverlap.so"


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def headers() -> None:
    """Raises debian.Missing where they are not and cannot be installed."""
    debian.install(["libslurm-dev"], [str(HEADER)])


def build(folder: Path, include: Path | None = None) -> Path:
    """The plugin, by its own Makefile, of a copy of its sources."""
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("*.so"))
    words = [f"CC={shlex.join(compiler())}", f"DESTDIR={folder}", "PREFIX=/made", f"SLURM={include or ''}"]
    subprocess.run(["make", "-s", "-C", str(folder), "install", *words], check=True, capture_output=True)
    return folder / "made" / "lib" / "slurm" / "overlap.so"


def policy(prefix: Path, name: str, *lines: str) -> str:
    """An env/NAME.env; the table tells which policy it is."""
    table = f"UlZQ{name.encode().hex()}"
    text = [f"export LD_PRELOAD={prefix}/lib/{NAME}", f"export OVERLAP_TABLE={table}", *lines]
    (prefix / "env" / f"{name}.env").write_text("".join(f"{line}\n" for line in text))
    return table


def site(prefix: Path, names: Iterable[str]) -> dict[str, str]:
    """A site folder with these policies; the tables by name."""
    for folder in ("lib", "env"):
        (prefix / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(_native.SHIM, prefix / "lib" / NAME)
    return {name: policy(prefix, name, f"export TORCH_NCCL_OF={name}") for name in names}


def foreign(library: Path) -> None:
    """Makes it one of another architecture."""
    overwrite(library, 18, {"x86_64": 183}.get(platform.machine(), 62).to_bytes(2, "little"))


def overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as target:
        target.seek(offset)
        target.write(data)
