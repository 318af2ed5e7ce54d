"""What a program needs of the machine, and whether it is there."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess

from tools.gpu import product

PROGRAMS = ("nvcc", "compute-sanitizer")
VARIABLES = {
    "$FOREIGN": "the variable FOREIGN, which names the folder of the programs (tools/gpu/README.md)",
}
MODULES = ("torch", "cupy", "jax")


@functools.cache
def gpus() -> tuple[tuple[str, str], ...]:
    """(name, architecture such as sm_90) of each, as nvidia-smi says."""
    query = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    split = (line.rsplit(", ", 1) for line in lines if ", " in line)
    return tuple((name, "sm_" + capability.replace(".", "")) for name, capability in split)


def missing(needs: tuple[str, ...], count: int = 1) -> list[str]:
    """Those of `needs` that are not here, in words; count: of GPUs."""
    found = []
    if len(gpus()) < count:
        found.append(f"{count} GPU{'s' * (count > 1)} ({len(gpus())} here)")
    for need in needs:
        if need in PROGRAMS and shutil.which(need) is None:
            found.append(need)
        elif need in MODULES and importlib.util.find_spec(need) is None:
            found.append(f"the Python module {need}")
        elif need == "overlap-run":
            found += filter(None, [product.missing()])
        elif need in VARIABLES and not os.environ.get(need[1:]):
            found.append(VARIABLES[need])
        elif need not in (*PROGRAMS, *MODULES, *VARIABLES):
            raise ValueError(f"{need}: no such need")
    return found
