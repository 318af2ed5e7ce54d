"""AMD's own HIP runtimes, unmodified, on the simulated GPU: how programs for them are made and run.

The parts are packages of Debian, unpacked (debian.py). Programs find them by their run path, so that their environment
holds nothing but the folder of the simulated thunk, SIMGPU and the log.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import debian
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
THUNK = ROOT / "pyshim" / "_lib" / "simgpu" / "kfd"
LIBRARIES = "usr/lib/x86_64-linux-gnu"

# HIP 5.2.3: the compiler, what it links, and the runtimes, for this machine's C library. 85 MB.
# Not libhsakmt1: the simulated one takes its place.
BOOKWORM = """
    clang-15 clang-tools-15 libclang-common-15-dev libclang-cpp15 libllvm15 lld-15
    libbsd0 libedit2 libffi8 libicu72 libmd0 libxml2 libz3-4
    rocm-device-libs libamd-comgr-dev libamdhip64-dev libhsa-runtime-dev libhsakmt-dev
    libamd-comgr2 libamdhip64-5 libhsa-runtime64-1 libelf1 libnuma1
"""
# HIP 5.7.1 on the HSA runtime of ROCm 6.1, with the C library that they were built for. 70 MB.
TRIXIE = """
    libc6 libgcc-s1 libstdc++6 libamd-comgr2 libamdhip64-5 libhsa-runtime64-1 libhsakmt-dev
    libbsd0 libdrm-amdgpu1 libdrm2 libedit2 libelf1t64 libffi8 libicu76 libllvm17t64 liblzma5 libmd0 libnuma1 libtinfo6
    libxml2 libz3-4 libzstd1 zlib1g
"""
RCCL = "librccl-dev librccl1 librocm-smi64-1"  # 125 MB, the only large one

NCCL, SMALL, LARGE, MFMA = (
    "ncclDevKernel_Generic_2",
    "Cijk_Ailk_Bljk_SB_MT64x64x16",
    "Cijk_Ailk_Bljk_SB_MT128x128x16",
    "Cijk_Ailk_Bljk_SB_MFMA",
)
# Static LDS, and registers of a lane: what programs/kernels.h asks for.
FOOTPRINTS = {NCCL: (19808, 280), SMALL: (8192, 64), LARGE: (12288, 136), MFMA: (8192, 128)}


@dataclass
class Done:
    status: int
    stdout: str
    stderr: str
    packets: list[dict[str, Any]]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]


def parts(suite: str, packages: str) -> Path:
    """The unpacked packages, or a skipped test with the reason."""
    if platform.machine() != "x86_64":
        pytest.skip("the packages of AMD's runtimes are for x86-64")
    if not shutil.which("g++"):
        pytest.skip("needs the headers of C++ and a linker: apt-get install g++")
    if not (THUNK / "libhsakmt.so.1").exists():
        pytest.fail("the simulated thunk is not built: make setup")
    try:
        return debian.fetch(suite, packages.split())
    except debian.Missing as missing:
        pytest.skip(f"needs packages of Debian {suite}: {missing}")


def compile_hip(root: Path, source: Path, output: Path, *flags: str, runtime: Path | None = None) -> Path:
    """What hipcc would run, for gfx90a. `runtime`: where the program finds its libraries, and then its loader too."""
    llvm, libraries = root / "usr/lib/llvm-15", root / LIBRARIES
    command = [str(llvm / "bin/clang++"), "-x", "hip", "--offload-arch=gfx90a", "-D__HIP_PLATFORM_AMD__", "-O2"]
    command += [f"--rocm-path={root}/usr", f"--rocm-device-lib-path={libraries}/amdgcn/bitcode", "-nogpuinc"]
    command += ["-isystem", str(root / "usr/include"), "-Wall", "-Wno-unused-result", "-Wno-deprecated-declarations"]
    command += [str(source), "-o", str(output), *flags]
    if "--cuda-device-only" not in flags:
        command += [f"-L{libraries}", "-lamdhip64", *link(runtime or libraries)]
    run(command, {**os.environ, "LD_LIBRARY_PATH": f"{libraries}:{llvm}/lib"})
    return output


def link(libraries: Path) -> list[str]:
    """A run path by old tags, which hold for libraries of libraries too; and the loader, if the folder has its own."""
    flags = ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{libraries}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    loader = libraries / "ld-linux-x86-64.so.2"
    return [*flags, f"-Wl,-rpath-link,{THUNK}", *([f"-Wl,--dynamic-linker={loader}"] if loader.exists() else [])]


def run(command: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def start(command: list[str | Path], clean: Mapping[str, str], folder: Path, gpu: str = "mi250x", **more: str) -> Done:
    """Runs a program on the simulated GPU and reads the packets that it left."""
    log = folder / "packets.json"
    log.unlink(missing_ok=True)
    environment = {**clean, "LD_LIBRARY_PATH": str(THUNK), "SIMGPU": gpu, "SIMGPU_PACKETS": str(log), **more}
    done = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    packets = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return Done(done.returncode, done.stdout, done.stderr, packets)
