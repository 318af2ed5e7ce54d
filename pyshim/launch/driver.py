"""Whose drivers are on this machine? Looked for, never opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

NAME = "libcuda.so.1"
PROC = "/proc/driver/nvidia/version"
CACHE = "/etc/ld.so.cache"
AMD_DEVICE = "/dev/kfd"


def found(environment: Mapping[str, str], root: str = "/") -> bool:
    folders = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    triple = f"{os.uname().machine}-linux-gnu"
    usual = (
        f"usr/lib/{triple}",
        f"lib/{triple}",
        "usr/lib64",
        "lib64",
        "usr/lib",
        "usr/lib/wsl/lib",
        "usr/local/nvidia/lib64",
    )
    folders += [os.path.join(root, folder) for folder in usual]
    if os.path.exists(os.path.join(root, PROC[1:])):
        return True
    return any(os.path.exists(os.path.join(folder, NAME)) for folder in folders) or _cached(
        os.path.join(root, CACHE[1:])
    )


def vendors(environment: Mapping[str, str], root: str = "/") -> frozenset[str]:
    """Whose GPUs there may be; empty where no driver was found."""
    amd = os.path.exists(os.path.join(root, AMD_DEVICE[1:]))
    return frozenset(["nvidia"] * found(environment, root) + ["amd"] * amd)


def _cached(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"/" + NAME.encode() + b"\0" in file.read(16 << 20)
    except OSError:
        return False
