"""AMD's HIP runtimes on this machine: looked for, never opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from pyshim.launch import driver, elf

NAME = "libamdhip64.so"
HSA, THUNK = "libhsa-runtime64.so.1", "libhsakmt.so.1"
_RUNTIME = re.compile(re.escape(NAME) + r"\.\d+")
_CACHE_SIZE = 16 << 20


def installed(environment: Mapping[str, str], root: str = "/") -> dict[str, list[str]]:
    """Return the path of each libamdhip64.so.N, in the loader's order; ROCm's own folder counts, too."""
    found: dict[str, list[str]] = {}
    folders = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*folders, os.path.join(root, "opt/rocm/lib")):
        for path in in_folder(folder):
            _add(found, path)
    for path in _cached(root, NAME):
        _add(found, path)
    return dict(sorted(found.items()))


def in_folder(folder: str, bundled: bool = False) -> Iterator[str]:
    """Yield the runtimes in a folder. bundled: PyTorch's wheels leave the number out of the file's name."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if _RUNTIME.fullmatch(name) or (bundled and name == NAME))


def runs_on_a_thunk(runtime: str, environment: Mapping[str, str], root: str = "/") -> bool:
    """Return whether the HSA runtime needs a library to reach the kernel's driver: Debian's does, AMD's does not."""
    for folder in (os.path.dirname(runtime), *environment.get("LD_LIBRARY_PATH", "").split(":")):
        path = os.path.join(folder, HSA) if folder else ""
        if path and os.path.exists(path):
            return THUNK in elf.inspect(path).needed
    return any(THUNK in elf.inspect(path).needed for path in _cached(root, HSA))


def _add(found: dict[str, list[str]], path: str) -> None:
    places = found.setdefault(os.path.basename(path), [])
    if path not in places:
        places.append(path)


def _cached(root: str, name: str) -> Iterator[str]:
    """Files of a name, whatever stands behind it, that the loader's cache knows."""
    pattern = rb"/[^\0]*/" + re.escape(name.encode()) + rb"(?:\.\d+)*(?=\0)"
    try:
        with open(os.path.join(root, driver.CACHE.lstrip("/")), "rb") as file:
            data = file.read(_CACHE_SIZE)
    except OSError:
        return
    for match in re.findall(pattern, data):
        path = os.fsdecode(match)
        if name != NAME or _RUNTIME.fullmatch(os.path.basename(path)):
            yield path
