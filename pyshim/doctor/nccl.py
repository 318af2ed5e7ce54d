"""NCCL and RCCL: which files a program would take, and of which version."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyshim.doctor import gpus, program
from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.machine import Machine
from pyshim.launch.environment import preloaded
from pyshim.launch.program import cached, library_path

NAMES = ("libnccl.so.2", "librccl.so.1", "librccl.so")
# Below the folders of packages.
_IN_PACKAGES = (("nvidia.nccl", "lib/libnccl.so.2"), ("torch", "lib/libnccl.so.2"), ("torch", "lib/librccl.so"))


def libraries(machine: Machine) -> Iterator[Line]:
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(os.path.realpath(path) for path in _paths(machine)):
        found.setdefault(_version(machine, path), []).append(path)
    if not found:
        yield ok("no NCCL or RCCL is found here; a program may bring its own")
        return
    named = "; ".join(f"{version} ({', '.join(paths)})" for version, paths in found.items())
    if len(found) > 1 and len({version.split()[0] for version in found}) == 1:
        hint = "all ranks must load the same one; after a run, NCCL_DEBUG=VERSION says which it was"
        yield warn(f"several versions: {named}", hint)
    else:
        yield ok(named)


def _paths(machine: Machine) -> Iterator[str]:
    """Yield libraries in the order in which a program would take them."""
    for entry in preloaded(machine.environment.get("LD_PRELOAD", "")):
        if os.path.basename(entry).startswith(NAMES) and os.path.isfile(entry):
            yield entry
    packages = program.packages_of(machine)
    for name, file in _IN_PACKAGES:
        path = os.path.join(packages.get(name, ""), file)
        if name in packages and os.path.isfile(path):
            yield path
    yield from (path for name, path in program.linked(machine).items() if name in NAMES)
    for name in NAMES:
        folders = (*library_path(machine.environment), machine.path("/opt/rocm/lib"))
        yield from (path for folder in folders if os.path.isfile(path := os.path.join(folder, name)))
        yield from (machine.path(path) for path in cached(machine.root) if os.path.basename(path) == name)


def _version(machine: Machine, path: str) -> str:
    """Return `NCCL 2.28.9`, asked of the library itself in a process of its own."""
    library = "RCCL" if "rccl" in os.path.basename(path) else "NCCL"
    number = gpus.ask("nccl", path, machine.environment, machine.patience).version
    return f"{library} {_dotted(number) if number else 'of an unknown version'}"


def _dotted(number: int) -> str:
    """As ncclGetVersion counts: 22809 is 2.28.9, and 2708 was 2.7.8."""
    step = 1000 if number < 10000 else 10000
    return f"{number // step}.{number % step // 100}.{number % 100}"
