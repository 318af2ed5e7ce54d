"""What tests of other people's failures share: drivers like theirs, and libraries of theirs, from Debian's packages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import debian
import pytest
from interposing import PROGRAMS, Build, glibc
from nvidia_packages import runtime_library

from pyshim.start import plan

ROOT = PROGRAMS.parents[1]
RELEASE, RELEASE_GLIBC = "bookworm", (2, 36)


def forwarding_driver(build: Build, kind: str, without: str = "") -> Path:
    """A driver that is only a doorway to the simulated one. EARLY: it opens that when it is loaded, LATE: when it is
    used; TELLS: it loads profilers, too. without: it has no functions whose names begin so."""
    table = build.folder / f"driver-functions{without}.def"
    if not table.exists():
        symbols = re.findall(r"^ENTRY\((\w+)", (ROOT / "tools/simgpu/api.def").read_text(), re.M)
        there = (symbol for symbol in symbols if not without or not symbol.startswith(without))
        table.write_text("".join(f"FUNCTION({symbol})\n" for symbol in there))
    inner = build.folder / "libcuda.so.1.1"  # named as WSL's is
    if not inner.exists():
        inner.symlink_to(plan.SIMULATED_DRIVER)
    flags = [f'-DFUNCTIONS="{table}"', f'-DINNER="{inner}"', "-O0", f"-D{kind}"]
    return build.library(f"forwarding-{kind}{without}/libcuda.so.1", "forwarding_driver.c", *flags)


def third_party(package: str, name: str) -> Path:
    """A library of Debian's; a test that needs one that cannot be had is skipped."""
    if glibc() < RELEASE_GLIBC:
        pytest.skip(f"{name} of Debian's {RELEASE} needs glibc {'.'.join(map(str, RELEASE_GLIBC))}")
    try:
        root = debian.fetch(RELEASE, [package])
    except debian.Missing as missing:
        pytest.skip(str(missing))
    return next(path.resolve() for path in sorted(root.rglob(name)))


# Of the driver API: before CUDA 12, of driver 570 (12.8), 580 (13.0) and 595, and one that is not there yet.
DRIVER_VERSIONS = ("11080", "12000", "12080", "13000", "13020", "14000")


def nvidia_runtimes() -> dict[str, Callable[[], Path]]:
    """CUDA runtimes: ours, and NVIDIA's where the package index has put them (a test is skipped where it has not)."""
    ours = Path(plan.SIMULATED_DRIVER).parent
    return {
        "simulated 12": lambda: ours / "libcudart.so.12",
        "simulated 13": lambda: ours / "libcudart.so.13",
        "NVIDIA's 12": lambda: runtime_library(12),
        "NVIDIA's 13": lambda: runtime_library(13),
    }
