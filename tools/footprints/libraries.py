"""The libraries whose kernels have tables in pyshim/footprints/libraries: of which kernels, and what no binary says."""

from __future__ import annotations

from pyshim.footprints.families import NCCL, NVIDIA, RCCL, Family, Library

CUBLASLT = Library(
    name="cuBLASLt",
    file=r"/libcublasLt\.so",
    architectures=NVIDIA,
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
    architectures=NVIDIA,
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
