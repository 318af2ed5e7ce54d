"""What drivers and runtimes this machine has besides, and `--simulate GPU[,COUNT]`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.start.program import BUNDLED, NVIDIA_PROC, cached, library_path

HIP = "libamdhip64.so"
_HIP_NUMBERED = re.compile(re.escape(HIP) + r"\.\d+")
MOST = 16  # simulated GPUs


class SimulatedGpu(NamedTuple):
    key: str  # h100
    name: str  # as the driver says it
    architecture: str  # sm_90
    vendor: str
    number: int

    @property
    def value(self) -> str:
        """For the variable SIMGPU."""
        return f"{self.key},{self.number}" if self.number > 1 else self.key


def parse(text: str) -> SimulatedGpu:
    """Parse a --simulate value. Raises OverlapError with 125 where the GPU or the count is not known."""
    from pyshim.policy.gpus import named

    key, comma, number = text.partition(",")
    try:
        gpu = named(key)
    except OverlapError as error:
        error.status = LAUNCHER_FAILED
        if key.startswith((".", "/")) or os.path.isfile(key) or key in BUNDLED:
            error.hint = f"{key} is the program: write the GPU before it: --simulate h100 {key}"
        raise
    if comma and not (number.isascii() and number.isdigit() and len(number) < 4 and 1 <= int(number) <= MOST):
        hint = f"write 1 to {MOST}: --simulate {key},2"
        raise OverlapError(f"{number!r} is not a number of GPUs", hint, LAUNCHER_FAILED)
    return SimulatedGpu(gpu.key, gpu.name, gpu.architecture, gpu.vendor, int(number) if comma else 1)


def version(root: str = "/") -> str | None:
    """Return the version of NVIDIA's kernel module, as 580.159.04. None where the machine does not say, as in WSL."""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", text(os.path.join(root, NVIDIA_PROC[1:])))
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
