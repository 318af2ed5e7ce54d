"""AMD's HIP runtimes on this machine: looked for, never opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pyshim.launch import driver, elf

NAME = "libamdhip64.so"
HSA, THUNK = "libhsa-runtime64.so.1", "libhsakmt.so.1"
_RUNTIME = re.compile(re.escape(NAME) + r"\.\d+")


def installed(environment: Mapping[str, str], root: str = "/") -> dict[str, list[str]]:
    """Return the path of each libamdhip64.so.N, in the loader's order, ROCm's own folder included."""
    found: dict[str, list[str]] = {}
    folders = (*driver.library_path(environment), os.path.join(root, "opt/rocm/lib"))
    paths = [os.path.join(folder, name) for folder in folders for name in driver.names(folder)]
    for path in filter(lambda path: _RUNTIME.fullmatch(os.path.basename(path)), (*paths, *driver.cached(root))):
        places = found.setdefault(os.path.basename(path), [])
        if path not in places:
            places.append(path)
    return dict(sorted(found.items()))


def runs_on_a_thunk(runtime: str, environment: Mapping[str, str], root: str = "/") -> bool:
    """Return whether the HSA runtime needs a library to reach the kernel's driver: Debian's does, AMD's does not."""
    for folder in (os.path.dirname(runtime), *driver.library_path(environment)):
        path = os.path.join(folder, HSA)
        if os.path.exists(path):
            return THUNK in elf.inspect(path).needed
    cached = (path for path in driver.cached(root) if os.path.basename(path).startswith(HSA))
    return any(THUNK in elf.inspect(path).needed for path in cached)
