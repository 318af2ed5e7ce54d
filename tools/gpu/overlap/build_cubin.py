"""Build overlap_sm90.cubin and simt_sm90.cubin, and compare footprints. They are committed: run this after a change.

    python -m tools.gpu.overlap.build_cubin [--nvcc NVCC] [--ptxas PTXAS]

Exit status 1: a kernel has another footprint than the suite says. A cubin is for drivers of the CUDA major version of
the ptxas that made it, and newer ones. The committed ones were made by nvcc 13.0, so they are for drivers from 580 on.
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

# Registers and static shared memory. Registers are given out by the eight: 167 takes what 168 would, 128 half of what
# a multiprocessor has for two blocks of 256 threads.
EXPECTED = {
    "hgemm_tensor128": (128, 0),
    "hgemm_tensor64": (96, 0),
    "hgemm_whole": (167, 0),
    "hgemm_persistent": (167, 0),
    "sgemm_128x64_nn": (80, 24576),
    "sgemm_tiled": (32, 2048),
    "elementwise": (26, 0),
    "rms_norm": (32, 32),
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL": (96, 21568),  # NCCL 2.28.9
}


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
    parser.add_argument("--output", type=Path, default=HERE, metavar="DIR")
    options = parser.parse_args()
    found: dict[str, tuple[int, int]] = {}
    for source, target in (("kernels.cu", "overlap_sm90.cubin"), ("simt.cu", "simt_sm90.cubin")):
        found.update(footprints(build(HERE / source, options.output / target, "90", options.nvcc, options.ptxas)))
    wrong = {kernel: found.get(kernel) for kernel, footprint in EXPECTED.items() if found.get(kernel) != footprint}
    for kernel, has in wrong.items():
        print(f"{kernel}: {EXPECTED[kernel]} expected, it has {has}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
