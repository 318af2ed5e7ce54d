"""Programs of nvcc's: as it compiles them where it is installed, and the same by hand; and what they print."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from interposing import Build

from pyshim.start import plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = Path(plan.SIMULATED_DRIVER).parent
FATBIN = ROOT / "tests" / "simgpu" / "data" / "kernels.fatbin"
END = 3  # what the program ends with if all went well
# Calls that launch, and launches of graphs.
LAUNCHES, GRAPH_LAUNCHES = 13, 2
# How a launch of stub.c gets into the runtime: nvcc 12, nvcc 13, and either with per-thread default streams.
STUBS = {
    "nvcc12": ("-DRUNTIME=12",),
    "nvcc13": ("-DRUNTIME=13",),
    "per_thread12": ("-DRUNTIME=12", "-DPER_THREAD"),
    "per_thread13": ("-DRUNTIME=13", "-DPER_THREAD"),
}
EXPECTED = """\
1 of NVIDIA H100 80GB HBM3, 9.0, 132 multiprocessors, runtime {version}
saxpy: 10 registers, 1024 bytes, 8 blocks
memory 0 4
unfinished: cudaErrorNotReady cudaErrorNotReady, last error: cudaSuccess
priorities 0 to -5, -5; time passed: 1
graph of 2
no block: cudaErrorInvalidConfiguration
too much: cudaErrorInvalidValue cudaErrorInvalidValue cudaSuccess
allowed: cudaSuccess
end
"""

Nvcc = Callable[..., Path]


def stub(build: Build, kind: str, image: Path = FATBIN, folder: Path = OURS, *flags: str) -> Path:
    """stub.c as nvcc would have compiled it; folder: whose runtime it is linked with."""
    more = STUBS[kind]
    version = more[0][-2:]
    name = f"stub-{kind}-{image.stem}" + "".join(flags).replace("/", "_").replace(",", "_")
    link = [folder / f"libcudart.so.{version}"]
    return build(name, str(HERE / "runtime" / "stub.c"), *more, *flags, f'-DIMAGE="{image}"', link=link)


@pytest.fixture
def nvcc(tmp_path: Path) -> Nvcc:
    """Compiles program.cu with the nvcc of this machine."""
    found = shutil.which("nvcc")
    if not found:
        pytest.skip("needs nvcc of a CUDA toolkit, 12 or 13")

    def compiled(*flags: str) -> Path:
        out = tmp_path / "program"
        command = [str(found), "-cudart", "shared", *flags, str(HERE / "runtime" / "program.cu"), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and "Unsupported gpu architecture" in done.stderr:
            pytest.skip(f"this nvcc does not know {' '.join(flags)}")
        assert done.returncode == 0, done.stderr
        return out

    return compiled
