"""The simulated HIP runtimes: the package has 7.2, of which 5.7 is made here, once.

It has another number in its name, by which it also knows what the last error is (tools/simgpu/hip/error.c), and lacks
the names that came later: these are hidden under names of no function.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pyshim.start import plan
from tools.simgpu.hip import names

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = (5, 7)
FOLDER = ROOT / ".tests" / "hip"
LATER = ("hip_6", "hip_7", "hip_8")  # version nodes
UNMANGLED = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")  # in 5.7 by their names in C++ alone


def exported(version: int) -> list[str]:
    return [
        one.name for one in names.read() if version > 5 or not (one.node.startswith(LATER) or one.name in UNMANGLED)
    ]


@cache
def runtime(version: int) -> Path:
    """Return the file. Several processes of the tests may make it: each its own, of which the last one stays."""
    newest = Path(plan.SIMULATED_RUNTIME)
    if version == VERSIONS[-1]:
        return newest
    data, soname = newest.read_bytes(), newest.name.encode()
    assert data.count(soname) > 1, "in its dynamic section, and in error.c"
    data = data.replace(soname, soname[:-1] + b"%d" % version)
    for name in set(exported(VERSIONS[-1])) - set(exported(version)):
        symbol = b"\0%s\0" % name.encode()
        assert symbol in data, name
        data = data.replace(symbol, symbol[:-2] + b"@\0")
    folder = FOLDER / f"hip{version}"
    folder.mkdir(parents=True, exist_ok=True)
    path, made = folder / f"libamdhip64.so.{version}", folder / f"{os.getpid()}"
    if not path.exists() or path.read_bytes() != data:
        made.write_bytes(data)
        made.chmod(0o755)
        made.replace(path)
    return path
