"""Sets of computation kernels by one word: which names belong to `gemm` and its like.

A pattern is tried on the name that the driver gives, usually mangled, and on the plain name, the last identifier; so
`*7cutlass13device_kernelINS_4gemm*` is cutlass::device_kernel<cutlass::gemm::...>. Patterns are narrow on purpose: a
name that is missed is left alone, and one that is taken wrongly may be made slower.

Sources: names in profiles and symbol tables of cuBLAS and cuBLASLt (nvjet_*, *_xmma_gemm_*, ampere_*), CUTLASS 2 and 3,
PyTorch 2.x and its Inductor (triton_KIND_fused_OPERATORS; KIND poi: pointwise, tem: template, for: foreach),
FlashAttention 2 and 3, xFormers, cuDNN, TensorRT-LLM, FlashInfer, vLLM, Transformer Engine, bitsandbytes, and on AMD
Tensile (Cijk_*: rocBLAS and hipBLASLt), Composable Kernel and its tile version.

Left out: DeepGEMM, whose kernels are persistent and leave no register.
"""

from __future__ import annotations

SETS: dict[str, tuple[str, ...]] = {
    "gemm": (
        "nvjet_*",
        "*_xmma_gemm_*",
        "ampere_*gemm_*",
        "turing_*gemm_*",
        "volta_*gemm_*",
        "maxwell_*gemm_*",
        "trt_ampere_*gemm_*",
        "cutlass_*gemm_*",
        "cutlass[23]x_*gemm_*",
        "*7cutlass6KernelINS_4gemm*",
        "*7cutlass7Kernel2I*cutlass_*gemm_*",
        "*7cutlass7Kernel2INS_4gemm*",
        "*7cutlass13device_kernelINS_4gemm*",
        "*7cutlass13device_kernelI*cutlass_3x_gemm*",
        "triton_tem_fused_*mm*",
        "Cijk_*",
        "Custom_Cijk_*",
        "_ZN2ck*kernel_gemm_xdl*",
        "*7ck_tile6kentry*GemmKernel*",
        "gemm",
        "[sdhcz]gemm",
        "[sdhcz]gemm_*",
        "gemm_kernel",
        "matmul_kernel",
    ),
    "attention": (
        "*flash_fwd_*kernel*",
        "*flash_bwd_*kernel*",
        "*7cutlass13device_kernelIN5flash*",
        "*fmha_cutlass[FB]_*",
        "cudnn_generated_*_sdpa_*",
        "fmhaSm*Kernel_*",
        "fmha_v2_*",
        "*Batch*With*KVCacheKernel*",
        "*paged_attention_v[12]_kernel*",
        "kernel_unified_attention_*",
        "triton_tem_fused_*flex_attention*",
        "_attn_fwd",
        "_attn_bwd*",
        "*7ck_tile6kentry*Fmha*Kernel*",
    ),
    "elementwise": (
        "*2at6native*elementwise_kernel*",
        "*2at6native*CatArrayBatchedCopy*",
        "triton_poi_fused_*",
        "*act_and_mul_kernel*",
        "*rotary_embedding_kernel*",
        "elementwise",
    ),
    "norm": (
        "*2at6native*layer_norm*kernel*",
        "*2at6native*batch_norm_*kernel*",
        "*2at6native*RowwiseMomentsCUDAKernel*",
        "*2at6native*GammaBetaBackward*Kernel*",
        "triton_???_fused_*layer_norm*",
        "triton_???_fused_*rms_norm*",
        "triton_???_fused_*group_norm*",
        "triton_???_fused_*batch_norm*",
        "*4vllm*rms_norm*kernel*",
        "*10flashinfer4norm*",
        "*18transformer_engine13normalization*",
    ),
    "optimizer": (
        "*multi_tensor_apply_kernel*",
        "triton_for_fused_*",
        "*kOptimizer*bit*",
        "*kPreconditionOptimizer*",
    ),
}

# Kernels that compute and communicate at once, and look like the former: FLUX builds on CUTLASS, Triton-distributed and
# PyTorch's symmetric memory on Triton. A glob cannot say "but not", so a rule of their own stands before the first rule
# that names a set: they are left alone, as every kernel that communicates is.
FUSED = (
    "*9bytedance4flux*",
    "*kernel_consumer_*gemm*",
    "*mega_moe*",
    "*cublas[Mm]p*",
    "*symm_mem*",
    "*nvshmem*",
    *(
        f"*{first}*{second}*"
        for compute in ("gemm", "matmul", "_mm")
        for communication in ("all_gather", "allgather", "all_reduce", "allreduce", "reduce_scatter", "all_to_all")
        for first, second in ((compute, communication), (communication, compute))
    ),
    "*Gemm*AllReduce*",
    "*AllReduce*Gemm*",
    "*AllGather*Gemm*",
    "*Gemm*ReduceScatter*",
)


def expanded(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return each pattern once, and for the word of a set its patterns: in a file, that word never is a pattern."""
    found: dict[str, None] = {}
    for name in names:
        found.update(dict.fromkeys(SETS.get(name, (name,))))
    return tuple(found)
