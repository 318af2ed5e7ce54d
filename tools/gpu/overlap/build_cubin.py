"""Build overlap_sm90.cubin from kernels.cu, and compare the footprints. It is committed: run this after a change.

    python -m tools.gpu.overlap.build_cubin [--nvcc NVCC] [--ptxas PTXAS]

Exit status 1: a kernel has another footprint than the suite says. It runs on what tools/demo/build_cubins.py says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.demo.build_cubins import build, footprints

HERE = Path(__file__).resolve().parent

# Registers and static shared memory. Registers are given out by the eight: 167 takes what 168 would, 128 half of what
# a multiprocessor has for two blocks of 256 threads.
EXPECTED = {
    "hgemm_tensor128": (128, 0),
    "hgemm_tensor64": (96, 0),
    "hgemm_whole": (167, 0),
    "hgemm_persistent": (167, 0),
    "sgemm_tiled": (32, 2048),
    "elementwise": (26, 0),
    "rms_norm": (32, 32),
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL": (96, 21568),  # NCCL 2.28.9
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--output", type=Path, default=HERE / "overlap_sm90.cubin")
    options = parser.parse_args()
    found = footprints(build(HERE / "kernels.cu", options.output, "90", options.nvcc, options.ptxas))
    wrong = {kernel: found.get(kernel) for kernel, footprint in EXPECTED.items() if found.get(kernel) != footprint}
    for kernel, has in wrong.items():
        print(f"{kernel}: {EXPECTED[kernel]} expected, it has {has}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
