"""Which kernels of NCCL and RCCL become one row of their tables, and what a table must say that no binary does.

A kernel belongs to the first family whose pattern is found in its name. Kernels of no family are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# A kernel that is not made for an architecture is compiled to an empty one there, with these registers at most.
EMPTY = 4


@dataclass(frozen=True)
class Family:
    name: str
    pattern: str
    shape: str | None = None  # its groups, joined, tell rows of one family apart: tile and stages of a GEMM

    def shape_of(self, kernel: str) -> str | None:
        found = re.search(self.shape, kernel) if self.shape else None
        return " ".join(found.groups()) if found else None


@dataclass(frozen=True)
class Library:
    name: str
    file: str  # pattern of the path inside the package
    architectures: tuple[str, ...]  # globs
    families: tuple[Family, ...]
    # Rows with fewer kernels than this share of their family on that architecture are left out, so that a table of
    # thousands of template instances stays readable. Zero: nothing is.
    least_share: float = 0.0
    not_in_the_binary: tuple[dict[str, Any], ...] = ()


NVIDIA = ("sm_8?", "sm_90*", "sm_100*")

_NCCL_OUTSIDE: tuple[dict[str, Any], ...] = (
    {
        "family": "ncclDevKernel",
        "what": "dynamic_shared_memory",
        "bytes": 82240,
        "formula": "640 / 32 warps x (unroll x 32 + 1) x 16 bytes, unroll 8: 20 x 4,112, whatever the threads",
        "source": "NCCL src/include/device.h, ncclShmemDynamicSize; the same in every version from 2.17.1 on",
        "other_architectures": {"sm_120": 61760, "sm_75": 41280},
    },
    {
        "family": "ncclDevKernel",
        "what": "threads",
        "values": {
            "ring, simple": 544,
            "tree, NVLS, CollNet, PAT, LL128, send and receive": 640,
            "LL": 512,
            "ring, simple, NCCL_NTHREADS=256": 288,
            "ring, simple, NCCL_NTHREADS=128": 160,
        },
        "source": "NCCL 2.28.9 src/enqueue.cc and src/graph/tuning.cc; the binary has no launch bound",
    },
    {
        "family": "ncclSymk",
        "what": "dynamic_shared_memory",
        "values": {
            "up to 2.29": 82240,
            "2.30 and newer": 0,
            "2.30 and newer, Tma": "all that is left of a block's most",
        },
        "source": "NCCL 2.28.9 src/enqueue.cc, 2.30.7 src/symmetric_sched.cc; launched with 512 threads",
    },
)

NCCL = Library(
    name="NCCL",
    file=r"/libnccl\.so",
    architectures=NVIDIA,
    families=(
        Family("ncclSymk", r"ncclSymk?(Dev)?Kernel"),
        Family("ncclDevKernel", r"ncclDevKernel_"),
        Family("ncclDevKernel", r"ncclKernel_"),  # as it was called up to 2.18
        Family("oneRankReduce", r"oneRankReduce"),
    ),
    not_in_the_binary=_NCCL_OUTSIDE,
)

RCCL = Library(
    name="RCCL",
    file=r"/librccl\.so",
    architectures=("gfx90a", "gfx942", "gfx950"),
    families=(
        Family("ncclDevKernel", r"ncclDevKernel_Generic", r"Generic_(\d)"),
        Family("mscclKernel", r"mscclKernel"),
    ),
    not_in_the_binary=(
        {
            "family": "ncclDevKernel",
            "what": "threads",
            "values": {"gfx90a": 256, "gfx942": 256, "gfx950": "256 or 512"},
            "source": "RCCL src/graph/tuning.cc and src/include/device.h: least and most are 256 on gfx9 up to gfx942",
        },
        {
            "family": "ncclDevKernel",
            "what": "shape",
            "values": {"gfx90a": "4", "gfx942": "2"},
            "source": "which of Generic_1, _2, _4 (unroll) is launched if RCCL_UNROLL_FACTOR is not set: RCCL 7.2.4 "
            "src/enqueue.cc, getUnrollFactor",
        },
        {
            "family": "ncclDevKernel",
            "what": "dynamic_shared_memory",
            "values": {"hipExtLaunchKernel": 0, "hipLaunchKernel": 32832},
            "formula": "by hipLaunchKernel: threads / 64 waves x (8 x 64 + 1) x 16 bytes, whatever its own unroll",
            "source": "RCCL 2.28.3 src/enqueue.cc, rcclShmemDynamicSize: the first way is the usual one, with one "
            "stream and no capture; sources of 2026 that link device code in a step of its own ask for 0 on both",
            "other_architectures": {"gfx950": 65664},
        },
    ),
)
