"""Whose calls programs make, and how they reach them: tests/programs/windows.c, compiled, and its environment."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyshim.launch import plan
from pyshim.launch.environment import environment
from tools.simgpu.hip.code_object import Kernel, bundle, code_object

ROOT = Path(__file__).resolve().parents[2]

SOURCE = ROOT / "tests" / "programs" / "windows.c"
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror")
# Multiprocessors of the simulated GPU: a wave is few blocks, and simulating it is quick.
MULTIPROCESSORS = 2
CRITICAL = "critical: auto\n"
POLICY = """policy: 1
name: windows
gpu: ["{} *"]
communication: {{priority: inherit}}
compute: [{{match: {{kernel: k}}, shape: {{blocks_per_sm: 1}}}}]
"""
VENDORS = ("nvidia", "amd")
GPUS = {"nvidia": "h100", "amd": "mi250x"}
NAMES = {"nvidia": "NVIDIA", "amd": "AMD"}


class Target(NamedTuple):
    vendor: str = "nvidia"
    proc_address: bool = False
    runtime: int = 7  # of HIP
    critical: bool = False  # streams that somebody waits for are raised

    @property
    def policy(self) -> str:
        return POLICY.format(NAMES[self.vendor]) + (CRITICAL if self.critical else "")

    @property
    def library(self) -> Path:
        """What takes the place of the vendor's."""
        if self.vendor == "nvidia":
            return Path(plan.SIMULATED_DRIVER)
        return next(Path(path) for path in plan.SIMULATED_RUNTIMES if path.endswith(f".{self.runtime}"))

    def flags(self, folder: Path) -> list[str]:
        """Of the compiler, for this vendor; `folder` takes what the program needs besides."""
        if self.vendor == "nvidia":
            return []
        code = folder / "windows.code"
        code.write_bytes(kernels())
        return ["-DVENDOR_AMD", f"-DRUNTIME={self.runtime}", f'-DCODE="{code}"']


CUDA = Target()
# What tests run with. HIP 5 cannot do all that some of them need: test_command.py.
TARGETS = {
    "symbol": CUDA,
    "proc_address": Target(proc_address=True),
    "hip6-symbol": Target("amd", runtime=6),
    "hip7-proc_address": Target("amd", proc_address=True, runtime=7),
}


def kernels() -> bytes:
    """The two of the program, for HIP: one takes what RCCL's takes."""
    both = [
        Kernel("k", arguments=[8, 4]),
        Kernel("ncclDevKernel_Generic_4", vgprs=248, agprs=108, static_shared=19808, arguments=[8, 4]),
    ]
    return bundle({name: code_object(both, name) for name in ("gfx90a", "gfx942")})


def compile_to(folder: Path, target: Target = CUDA) -> Path:
    out = folder / f"windows-{target.vendor}{'-proc' if target.proc_address else ''}"
    linked = "-DWAY_LINKED" if not target.proc_address else "-DWAY_PROC2" if target.vendor == "nvidia" else "-DWAY_PROC"
    link = [] if target.proc_address else [str(target.library)]
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, linked, "-DQUIET", *target.flags(folder), str(SOURCE)]
    subprocess.run([*command, "-o", str(out), *link, "-ldl", "-pthread"], check=True)
    return out


def environment_of(base: Mapping[str, str], folder: Path, target: Target = CUDA) -> dict[str, str]:
    """As overlap-run --policy FILE --report FOLDER --trace would set it, on the simulated GPU."""
    file = folder / "policy.yaml"
    file.write_text(target.policy, encoding="ascii")
    # As on a real GPU, which the launcher does not know: the library finds out whether the policy fits.
    table = plan.make(plan.Request(policy=str(file)), base).settings.table
    asked = plan.Request(policy="observe", simulate=f"{GPUS[target.vendor]},2", trace=True)
    settings = plan.make(asked, base).settings
    settings = settings._replace(table=table, report=str(folder), run_id="0123456789abcdef")
    simulated = {"SIMGPU_MULTIPROCESSORS": str(MULTIPROCESSORS), "SIMGPU_INVALID": "crashes"}
    return {**environment(base, settings), **simulated}
