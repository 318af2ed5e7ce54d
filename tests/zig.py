"""Programs, drivers and the library for other C libraries and processors, by ziglang, which remembers what it made."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
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


def driver(target: str, folder: Path) -> Path:
    """The simulated one; not made for speed."""
    flags = ["-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-Ishim", "-Ishim/core"]
    sources = sorted(TREE.glob("tools/simgpu/*.c"))
    return build(target, folder / "libcuda.so.1", sources, *flags, link=["-lm"])


def library(machine: str, folder: Path) -> Path:
    """The preloaded library, as releases have it."""
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{OLDEST}"]
    made = {**os.environ, "CC": shlex.join([*zig, "-fno-sanitize=undefined"]), "OVERLAP_MACHINE": machine}
    words = [sys.executable, "shim/build.py", "--only", "shim", "--output", str(folder)]
    subprocess.run(words, cwd=TREE, env=made, check=True, capture_output=True)
    return folder / "liboverlap.so"
