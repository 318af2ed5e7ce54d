"""Which kernels of which library become one row of its table, and what a table must say that no binary does.

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


_NVIDIA = ("sm_8?", "sm_90*", "sm_100*")

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
    architectures=_NVIDIA,
    families=(
        Family("ncclSymk", r"ncclSymk?(Dev)?Kernel"),
        Family("ncclDevKernel", r"ncclDevKernel_"),
        Family("ncclDevKernel", r"ncclKernel_"),  # as it was called up to 2.18
        Family("oneRankReduce", r"oneRankReduce"),
    ),
    not_in_the_binary=_NCCL_OUTSIDE,
)

CUBLASLT = Library(
    name="cuBLASLt",
    file=r"/libcublasLt\.so",
    architectures=_NVIDIA,
    # Of GEMMs those with half-precision inputs, which training spends its time in.
    families=(
        Family("sm90_xmma_gemm", r"^sm90_xmma_gemm_b?f16", r"tilesize(\d+x\d+x\d+)"),
        Family("sm80_xmma_gemm", r"^sm80_xmma_gemm_b?f16", r"tilesize(\d+x\d+x\d+)_(stage\d+)"),
        Family("ampere_s16816gemm", r"^ampere_\w*s16816gemm_b?f", r"_(\d+x\d+)_.*stages_(\d+x\d+)"),
        Family("cutlass3x_sm100", r"cutlass3x_sm100_tensorop_[sh]\w*gemm_b?f16", r"_(\d+x\d+x\d+)_.*_(\dsm)"),
        Family("splitKreduce", r"splitKreduce_kernel"),
    ),
    least_share=0.02,
    not_in_the_binary=(
        {
            "family": "nvjet",
            "what": "everything",
            "source": "no fat binary of the library holds a kernel of this name; the library makes them as the "
            "program runs, called nvjet_sm%d_%s_TILE_KxSTAGES_CLUSTER_... (nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN)",
        },
        {
            "family": "ampere_s16816gemm",
            "what": "dynamic_shared_memory",
            "formula": "stages x (M + N) x K x 2 bytes - 49,152, for TILE MxN and KxSTAGES of the shape",
            "source": "inferred: operands of all stages are in shared memory, and the static part of every multistage "
            "kernel is 49,152, the most that a static part may be; not read from the binary and not measured",
        },
    ),
)

TORCH = Library(
    name="PyTorch",
    file=r"/libtorch_cuda\.so",
    architectures=_NVIDIA,
    families=(
        Family("symmetric memory", r"(one|two)_shot_all_reduce_kernel|multimem_\w*_kernel"),
        Family("fused optimizer", r"[fF]used_?(Optimizer|[aA]dam|[sS]gd|SGD|adagrad)"),
        Family("optimizer", r"multi_tensor_apply_kernel"),
        Family("elementwise", r"(vectorized|unrolled|native\d+)\w*elementwise_kernel"),
        Family("layer norm, forward", r"vectorized_layer_norm_kernel"),
        Family("norm", r"(layer_norm|rms_norm|layerNorm|RMSNorm|LayerNorm|GammaBeta)\w*"),
        Family("softmax", r"[sS]oft[mM]ax"),
        Family("reduce", r"native\d+reduce_kernel"),
        Family("flash attention, forward", r"flash_fwd_kernelI", r"traitsILi(64|128)ELi(\d+)ELi(\d+)ELi(\d+)E"),
        Family("flash attention, backward", r"flash_bwd_dq_dk_dv", r"traitsILi(64|128)ELi(\d+)ELi(\d+)ELi(\d+)E"),
    ),
    least_share=0.05,
    not_in_the_binary=(
        {
            "family": "elementwise",
            "what": "dynamic_shared_memory",
            "bytes": 0,
            "source": "PyTorch aten/src/ATen/native/cuda/CUDALoops.cuh",
        },
        {
            "family": "fused optimizer",
            "what": "dynamic_shared_memory",
            "bytes": 0,
            "source": "PyTorch aten/src/ATen/native/cuda/MultiTensorApply.cuh, also for the family optimizer",
        },
        {
            "family": "layer norm, forward",
            "what": "threads",
            "values": {"all": 128},
            "source": "PyTorch aten/src/ATen/native/cuda/layer_norm_kernel.cu; with 24 bytes of dynamic shared memory",
        },
        {
            "family": "flash attention, forward",
            "what": "dynamic_shared_memory",
            "formula": "(M x D + 2 x N x D) x 2 bytes, for the shape D M N WARPS; threads are 32 x WARPS",
            "source": "FlashAttention 2, csrc/flash_attn/src/kernel_traits.h, kSmemSize",
        },
    ),
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

# GEMMs of AMD's libraries are code objects beside the library, one file for each kind of problem.
# Of half-precision problems only (Tensile's HHS, HSS, BBS, BSS), as above. The share is of hundreds of tiles, of which
# few have more than a hundredth.
_TENSILE = Family("Tensile", r"^Cijk_\w*_(HHS|HSS|BBS|BSS)_\w*MT\d", r"_MT(\d+x\d+x\d+)")
ROCBLAS = Library("rocBLAS", r"\.co$", ("gfx90a", "gfx942"), (_TENSILE,), least_share=0.005)
HIPBLASLT = Library("hipBLASLt", r"\.co$", ("gfx90a", "gfx942"), (_TENSILE,), least_share=0.005)

LIBRARIES = {
    "nccl": NCCL,
    "cublaslt": CUBLASLT,
    "torch": TORCH,
    "rccl": RCCL,
    "rocblas": ROCBLAS,
    "hipblaslt": HIPBLASLT,
}
