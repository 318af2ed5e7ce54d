"""Whose drivers and runtimes are on this machine? Looked for, never opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

NAME = "libcuda.so.1"
PROC = "/proc/driver/nvidia/version"
CACHE = "/etc/ld.so.cache"
_CACHE_SIZE = 16 << 20  # bytes; a larger file is no cache
AMD_DEVICE = "/dev/kfd"
HIP = "libamdhip64.so"
_HIP_NUMBERED = re.compile(re.escape(HIP) + r"\.\d+")


def library_path(environment: Mapping[str, str]) -> list[str]:
    """Return the folders of LD_LIBRARY_PATH, without empty entries."""
    return [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]


def found(environment: Mapping[str, str], root: str = "/") -> bool:
    """Return whether NVIDIA's driver is on this machine, or a library of its name where programs find it."""
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
    if os.path.exists(os.path.join(root, PROC[1:])):
        return True
    folders = [*library_path(environment), *(os.path.join(root, folder) for folder in usual)]
    if any(os.path.exists(os.path.join(folder, NAME)) for folder in folders):
        return True
    return any(os.path.basename(path) == NAME for path in cached(root))


def cached(root: str = "/") -> list[str]:
    """Return the paths in the loader's cache, in its order; none if it cannot be read."""
    try:
        with open(os.path.join(root, CACHE[1:]), "rb") as file:
            data = file.read(_CACHE_SIZE)
    except OSError:
        return []
    return [os.fsdecode(path) for path in re.findall(rb"(?<=\0)/[^\0]+(?=\0)", data)]


def vendors(environment: Mapping[str, str], root: str = "/") -> frozenset[str]:
    """Return whose GPUs there may be; empty where no driver was found."""
    amd = os.path.exists(os.path.join(root, AMD_DEVICE[1:]))
    return frozenset(["nvidia"] * found(environment, root) + ["amd"] * amd)


def version(root: str = "/") -> str | None:
    """Return the version of NVIDIA's kernel module, as 580.159.04. None where the machine does not say, as in WSL."""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", text(os.path.join(root, PROC[1:])))
    return found[1] if found else None


def text(path: str) -> str:
    """Return the first MiB of a file; "" where it cannot be read."""
    try:
        with open(path, "rb", opener=at_once) as file:
            return (file.read(1 << 20) or b"").decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def names(folder: str) -> list[str]:
    """Return the names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def at_once(path: str, flags: int) -> int:
    """Open a file for open(): a named pipe must not hold us up."""
    return os.open(path, flags | os.O_NONBLOCK)


def hip_runtimes(environment: Mapping[str, str], root: str = "/") -> dict[str, list[str]]:
    """Return the path of each libamdhip64.so.N, in the loader's order, ROCm's own folder included."""
    found: dict[str, list[str]] = {}
    folders = (*library_path(environment), os.path.join(root, "opt/rocm/lib"))
    paths = [os.path.join(folder, name) for folder in folders for name in names(folder)]
    for path in filter(lambda path: _HIP_NUMBERED.fullmatch(os.path.basename(path)), (*paths, *cached(root))):
        places = found.setdefault(os.path.basename(path), [])
        if path not in places:
            places.append(path)
    return dict(sorted(found.items()))
