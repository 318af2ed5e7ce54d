"""Programs, drivers and the library for other C libraries and processors, by ziglang, which remembers what it made."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).resolve().parent.parent
OLDEST = "2.17"  # the glibc that releases are built for
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-w", "-fno-sanitize=undefined")


def command(target: str) -> list[str]:
    """The compiler for x86_64-linux-gnu.2.17, say; skips where there is none."""
    package = importlib.util.find_spec("ziglang")
    if not package or not package.origin:
        pytest.skip("needs ziglang: make setup")
    return [str(Path(package.origin).with_name("zig")), "cc", "-target", target, *FLAGS]


def build(target: str, out: Path, sources: Sequence[Any], *flags: str, link: Sequence[Any] = ()) -> Path:
    """Flags go before the sources, libraries behind them."""
    out.parent.mkdir(parents=True, exist_ok=True)
    dynamic = ["-dynamic"] if "musl" in target and "-shared" not in flags else []
    words = [*command(target), *dynamic, *flags, *map(str, [*sources, "-o", out, *link]), "-ldl", "-pthread"]
    subprocess.run(words, cwd=TREE, check=True)
    return out


def driver(target: str) -> Path:
    """The simulated one; not made for speed."""
    flags = ["-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-Ishim", "-Ishim/core"]
    sources = sorted(TREE.glob("tools/simgpu/*.c"))

    def make(folder: Path) -> Path:
        return build(target, folder / "libcuda.so.1", sources, *flags, link=["-lm"])

    return once(f"driver-{target}", make)


def library(machine: str) -> Path:
    """The preloaded library, as releases have it, without a warning."""

    def make(folder: Path) -> Path:
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{OLDEST}"]
        compiler = shlex.join([*zig, "-fno-sanitize=undefined"])
        made = {**os.environ, "CC": compiler, "OVERLAP_MACHINE": machine, "CFLAGS": "-Werror"}
        words = [sys.executable, "shim/build.py", "--only", "shim", "--output", str(folder)]
        done = subprocess.run(words, cwd=TREE, env=made, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / "liboverlap.so"

    return once(f"library-{machine}", make)


def once(name: str, make: Callable[[Path], Path]) -> Path:
    """What a run builds for all of its workers. TMPDIR is one folder of the run (tests/conftest.py)."""
    folder = Path(tempfile.gettempdir()) / "zig-built" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made"
        if not made.exists():
            made.write_text(str(make(folder)), encoding="utf-8")
        return Path(made.read_text(encoding="utf-8"))
