"""The kernels that the programs of the suite launch: one table of footprints, and cubins made of it.

Names and footprints are those of their class: of what cuBLAS, PyTorch, FlashAttention, Triton and NCCL 2.28 launch
(pyshim/policy/kernel_sets.py says where they were read). They hold no code, and what they cost on the simulated GPU is
in costs.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pyshim.policy.gpus import KnownGpu
from pyshim.room import planner
from tools.simgpu.simgpu_cubin import Kernel as CubinKernel
from tools.simgpu.simgpu_cubin import cubin


@dataclass(frozen=True)
class Kernel:
    symbol: str
    threads: int
    registers: int
    static_shared: int = 0
    dynamic_shared: int = 0


AMPERE = "ampere_bf16_s16816gemm_bf16_"
ONE_PER_SM = Kernel(f"{AMPERE}256x128_ldg8_f2f_stages_32x3_tn", 256, 238, 0, 98304)

# By the word that the table of programs has for it. On GPUs of compute capability 9 and newer those of NEWER instead.
COMPUTATION: dict[str, Kernel] = {
    "gemm": Kernel(f"{AMPERE}128x128_ldg8_f2f_stages_32x3_tn", 128, 224, 0, 49152),  # 2 on a multiprocessor
    "wide_gemm": ONE_PER_SM,
    "simt_gemm": Kernel("ampere_sgemm_64x64_nn", 256, 48, 8192),  # 5
    "tiled": Kernel("matmul_kernel", 256, 40, 2048),  # 6
    "attention": Kernel("_ZN5flash16flash_fwd_kernelE", 128, 255, 0, 65536),  # 2; on A40 and L40S 1
    "elementwise": Kernel("_ZN2at6native29vectorized_elementwise_kernelE", 128, 31),  # 16; 12
    "norm": Kernel("_ZN2at6native28vectorized_layer_norm_kernelE", 128, 32, 0, 24),  # 16; 12
    "optimizer": Kernel("_ZN2at6native25multi_tensor_apply_kernelE", 512, 64),  # 2
    "persistent": replace(ONE_PER_SM, symbol="triton_tem_fused_mm_persistent_0"),
    "persistent_pair": Kernel("triton_tem_fused_addmm_persistent_1", 128, 224, 0, 49152),  # 2
}
WARP_SPECIALISED = Kernel("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", 384, 168, 0, 218112)
NEWER: dict[str, Kernel] = {
    "wide_gemm": WARP_SPECIALISED,
    "persistent": replace(WARP_SPECIALISED, symbol="_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalE"),
}

# NCCL 2.28: threads of the algorithm, 96 registers, 20 warps' worth of dynamic shared memory whatever the threads. Over
# PCIe rings have 256 threads and the 32 that synchronise.
NCCL_REGISTERS, NCCL_DYNAMIC, NCCL_STATIC, NCCL_STATIC_NEWER = 96, 82240, 7104, 21568
RING, RING_PCIE, ALL_WARPS = 544, 288, 640
PCIE = ("a40", "l40s")
COLLECTIVES: dict[str, tuple[str, int]] = {
    "all_reduce_50": ("ncclDevKernel_AllReduce_Sum_f8e4m3_RING_LL", RING),
    "all_reduce_100": ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", RING),
    "all_reduce_200": ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", RING),
    "all_reduce_400": ("ncclDevKernel_AllReduce_Sum_f64_RING_LL", RING),
    "tree_100": ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL", ALL_WARPS),
    "all_gather_150": ("ncclDevKernel_AllGather_RING_LL", RING),
    "reduce_scatter_150": ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", RING),
    "send_receive_200": ("ncclDevKernel_SendRecv", ALL_WARPS),
}
SMALL = "_small"  # what runs instead with fewer threads: program.c


def computation(word: str, gpu: KnownGpu) -> Kernel:
    return NEWER.get(word, COMPUTATION[word]) if newer(gpu) else COMPUTATION[word]


def collective(word: str, gpu: KnownGpu) -> Kernel:
    symbol, threads = COLLECTIVES[word]
    if threads == RING and gpu.key in PCIE:
        threads = RING_PCIE
    static = NCCL_STATIC_NEWER if newer(gpu) else NCCL_STATIC
    return Kernel(symbol, threads, NCCL_REGISTERS, static, NCCL_DYNAMIC)


def channels(blocks: int, gpu: KnownGpu) -> int:
    """Return the blocks of a collective, one for each channel of the ring; over PCIe there are fewer."""
    return max(1, blocks // 3) if gpu.key in PCIE else blocks


def newer(gpu: KnownGpu) -> bool:
    return _number(gpu) >= 90


def _number(gpu: KnownGpu) -> int:
    return int(gpu.architecture.removeprefix("sm_"))


def resident(kernel: Kernel, gpu: KnownGpu) -> int:
    """Return the blocks on one multiprocessor, as launched."""
    block = planner.BlockFootprint(kernel.threads, kernel.registers, kernel.static_shared, kernel.dynamic_shared)
    return planner.occupancy(gpu, block)[0]


def write_stencil_cubin(path: Path, gpu: KnownGpu) -> None:
    """Write the kernels of stencil.cu, the exchange with the footprint of NCCL's kernel."""
    static = NCCL_STATIC_NEWER if newer(gpu) else NCCL_STATIC
    made = [
        CubinKernel("stencil_interior", 32, parameters=(8, 8, 4, 4, 4)),
        CubinKernel("stencil_boundary", 32, parameters=(8, 8, 4, 4)),
        CubinKernel("ncclDevKernel_SendRecv", NCCL_REGISTERS, static, parameters=(8, 4)),
    ]
    path.write_bytes(cubin(made, _number(gpu)))


def write_cubin(path: Path, gpu: KnownGpu) -> None:
    kernels = [computation(word, gpu) for word in COMPUTATION]
    for word in COLLECTIVES:
        kernel = collective(word, gpu)
        kernels += [kernel, replace(kernel, symbol=kernel.symbol + SMALL)]
    made = [CubinKernel(kernel.symbol, kernel.registers, kernel.static_shared) for kernel in kernels]
    path.write_bytes(cubin(made, _number(gpu)))
