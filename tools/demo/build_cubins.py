"""Build the cubins of kernels.cu and stencil.cu. They are committed: run this after a change of either.

    python tools/demo/build_cubins.py [--nvcc NVCC] [--ptxas PTXAS]

A cubin is for drivers of the CUDA major version of the ptxas that made it, and newer ones. The committed ones were made
by nvcc 13.0 and ptxas 12.9, so they are for drivers of CUDA 12 and 13; the PTX is marked as version 7.8, the first that
knows sm_90, which ptxas would refuse if the kernels used anything newer.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PTX_VERSION = "7.8"
ELF_ABI_BYTE = 8  # in e_ident: 7 up to CUDA 12, 8 from CUDA 13 on
ARCHITECTURES = ("80", "90")
# What the demo relies on: registers and static shared memory of each kernel.
EXPECTED = {
    "80": {"sgemm_128x64_nn": (80, 24576), "ncclDevKernel_AllReduce_Sum_f32_RING_LL": (96, 14144)},
    "90": {"sgemm_128x64_nn": (80, 24576), "ncclDevKernel_AllReduce_Sum_f32_RING_LL": (96, 36800)},
}


# A source, and how its cubins begin.
SOURCES = {"kernels.cu": "demo", "stencil.cu": "stencil"}


def build(source: Path, target: Path, architecture: str, nvcc: str, ptxas: str) -> str:
    """Write one cubin and return what ptxas said about its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / "kernels.ptx"
        subprocess.run(
            [nvcc, "-ptx", f"-arch=compute_{architecture}", "-std=c++17", "-O3", "-o", str(ptx), source.name],
            cwd=source.parent,
            check=True,
        )
        text = ptx.read_text(encoding="utf-8")
        ptx.write_text(re.sub(r"(?m)^\.version .*$", f".version {PTX_VERSION}", text), encoding="utf-8")
        done = subprocess.run(
            [ptxas, "-v", "-O3", f"-arch=sm_{architecture}", "-o", str(target), "kernels.ptx"],
            cwd=folder,
            check=True,
            stderr=subprocess.PIPE,
            text=True,
        )
    if target.read_bytes()[ELF_ABI_BYTE] >= 8:
        print(f"{target.name}: made by ptxas 13 or newer, loads on drivers from 580 on only", file=sys.stderr)
    return done.stderr


def footprints(text: str) -> dict[str, tuple[int, int]]:
    """Return registers and static shared memory by kernel."""
    found = {}
    for kernel, registers, rest in re.findall(
        r"Compiling entry function '(\w+)'.*?Used (\d+) registers([^\n]*)", text, flags=re.DOTALL
    ):
        shared = re.search(r"(\d+) bytes smem", rest)
        found[kernel] = (int(registers), int(shared.group(1)) if shared else 0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--ptxas", default="ptxas")
    options = parser.parse_args()
    wrong = 0
    for source, name in SOURCES.items():
        for architecture in ARCHITECTURES:
            target = HERE / f"{name}_sm{architecture}.cubin"
            found = footprints(build(HERE / source, target, architecture, options.nvcc, options.ptxas))
            for kernel, (registers, shared) in sorted(found.items()):
                print(f"sm_{architecture} {kernel}: {registers} registers, {shared} bytes of shared memory")
            for kernel, footprint in EXPECTED[architecture].items():
                if found.get(kernel, footprint) != footprint:
                    print(f"sm_{architecture} {kernel}: {footprint} expected", file=sys.stderr)
                    wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
