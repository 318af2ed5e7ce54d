"""Sets of kernels, tried with the library's own matcher on names as drivers give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyshim import _native
from pyshim.policy.kernel_sets import SETS
from pyshim.policy.model import Match, Policy, Rule, Shape
from pyshim.policy.table import compile_table

AT = "_ZN2at6native"
NAMES = {
    "gemm": [
        "nvjet_tst_128x24_64x11_2x1_v_bz_TNT",
        "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNT",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_execute_kernel__5x_cublas",
        "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x128_warpgroupsize1x1x1_execute_kernel",
        "ampere_sgemm_128x64_nn",
        "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn",
        "trt_ampere_h16816gemm_128x64_ldg8_nn_v1",
        "cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4",
        "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_32x32x16_1x1x1_3_tnn_align1_bias_f32_relu",
        "_ZN7cutlass7Kernel2I43cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE",
        "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMma",
        "_ZN7cutlass13device_kernelIN49_GLOBAL__N__8bf0e19b_16_scaled_mm_c3x_cu_2bec3df915cutlass_3x_gemmIaNS_6half_tE",
        "triton_tem_fused_mm_0",
        "triton_tem_fused__to_copy_addmm_gelu_t_view_9",
        "Cijk_Ailk_Bljk_SB_MT64x64x8_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1",
        "Custom_Cijk_Alik_Bljk_BBS_BH_MT256x256x32_MI16x16x1_gfx950",
        "_ZN2ck25kernel_gemm_xdlops_v2r4r2INS_43GridwiseGemm_bk0mk1_bk0nk1_mn_xdlops_v2r4r2ILi256EDF16_fDF16_",
        "_Z4gemmPf",
        "sgemm",
        "matmul_kernel",
    ],
    "attention": [
        "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi64ELi64ELi4ELb0ELb0EN7cutlass10bfloat16_tE",
        "_ZN13pytorch_flash16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0E",
        "_Z16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi64ELi64ELi4ELb0ELb0EN7cutlass10bfloat16_tE",
        "_ZN5flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI23Flash_bwd_kernel_traits",
        "_ZN7cutlass13device_kernelIN5flash21enable_sm90_or_laterINS1_16FlashAttnFwdSm90",
        "_Z40fmha_cutlassF_f32_aligned_64x128_rf_sm80N22PyTorchMemEffAttention15AttentionKernel",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_128x128x128_4x1x1_kernel0_0",
        "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512",
        "triton_tem_fused_flex_attention_backward_split_transpose_3",
        "_attn_fwd",
    ],
    "elementwise": [
        AT + "29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
        AT + "18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZZZNS0_31direct_copy_kernel_cuda",
        AT + "27unrolled_elementwise_kernelINS0_13BinaryFunctorIfffNS0_13AUnaryFunctor",
        AT + "12_GLOBAL__N_122CatArrayBatchedCopy",
        "triton_poi_fused_add_gelu_3",
        "_ZN4vllm18act_and_mul_kernelIN3c108BFloat16EXadL",
        "_ZN4vllm23rotary_embedding_kernelIN3c108BFloat16ELb1EEEv",
    ],
    "norm": [
        AT + "12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c108BFloat16EfLb1EEEviT0_PKT_S8_S8_PS5_S9_PS6_",
        AT + "12_GLOBAL__N_130layer_norm_grad_input_kernelIfffEEv",
        AT + "24RowwiseMomentsCUDAKernelIfEEvlT_PKS2_PS2_S5_",
        "triton_per_fused_add_addmm_native_layer_norm_4",
        "triton_red_fused_rms_norm_1",
        "_ZN4vllm15rms_norm_kernelIN3c108BFloat16EEEvPT_PKS3_",
        "_ZN18transformer_engine13normalization19ln_fwd_tuned_kernelINS0_13Kernel_traits",
    ],
    "optimizer": [
        AT + "12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEENS1_21FusedOptimizerTensor",
        "_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4EE11AdamFunctorIffiE",
        "triton_for_fused_0",
        "_Z20kOptimizer32bit2StateI13__nv_bfloat16Li0EEv",
    ],
}
COMMUNICATION = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "_Z40ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
    "ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_f32",
    "mscclKernel_Sum_float_Simple_0",
    "one_shot_all_reduce_kernel",
    "_ZN4vllm26cross_device_reduce_2stageIfLi8EEEv",
    "_ZN7deep_ep9internode8dispatchILb0E",
    "nvshmemi_reduce_kernel",
    "_ZN10flashinfer23trtllm_allreduce_fusion33allreduce_fusion_kernel_oneshot_lamport",
]
FUSED = [
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN9bytedance4flux12AllGatherOp",
    "_ZN7cutlass6KernelIN9bytedance4flux7GemmRS",
    "kernel_consumer_gemm_persistent",
    "triton_tem_fused_mm_all_reduce_0",
    "gemm_allreduce_kernel",
    "ampere_sgemm_reduce_scatter_nn",
]
OTHERS = ["my_kernel", "attention", "gemm_rs", AT + "13reduce_kernelILi512ELi1E", "Memset", "softmax_warp_forward", ""]


@pytest.fixture
def matched(library: Any) -> Callable[[str], list[str]]:
    """The sets that a name belongs to."""

    def of(name: str) -> list[str]:
        plain = _native.ffi.new("char[512]")
        library.overlap_plain_name(name.encode(), plain, 512)
        names = (name.encode(), _native.ffi.string(plain))
        return [
            word
            for word, patterns in SETS.items()
            if any(library.overlap_glob_match(pattern.encode(), each) for pattern in patterns for each in names)
        ]

    return of


def test_a_kernel_belongs_to_its_set_and_to_no_other(matched: Callable[[str], list[str]]) -> None:
    """Communication and unknown kernels belong to none."""
    expected = {name: [word] for word, names in NAMES.items() for name in names}
    expected |= {name: [] for name in COMMUNICATION + OTHERS}
    assert {name: matched(name) for name in expected} == expected


def test_no_pattern_is_there_for_nothing(library: Any) -> None:
    """Each matches one of the names above, or is the sibling of one that does."""
    names = [name.encode() for own in NAMES.values() for name in own]
    for word, patterns in SETS.items():
        hits = [any(library.overlap_glob_match(p.encode(), name) for name in names) for p in patterns]
        assert sum(hits) >= len(hits) // 3, word
        assert len(set(patterns)) == len(patterns)


def test_a_rule_for_gemms_shapes_gemms_and_spares_those_that_communicate(library: Any) -> None:
    rules = (Rule(Match(sets=("gemm",)), Shape("percent", 50), 0, "always", 1),)
    table = compile_table([Policy(name="p", rules=rules)])
    gpu, launch, decision = (
        _native.ffi.new(f"struct {kind} *") for kind in ("overlap_gpu", "overlap_launch", "overlap_decision")
    )
    library.overlap_gpu_known(3, gpu)
    launch.blocks, launch.maximum_dynamic = 100_000, 232448
    launch.footprint.threads, launch.footprint.registers = 128, 64
    null = _native.ffi.NULL

    def shaped(name: str) -> bool:
        library.overlap_decide(table, 0, gpu, name.encode(), null, launch, null, decision)
        return decision.dynamic_shared > 0

    assert [name for name in NAMES["gemm"] + FUSED + OTHERS if shaped(name)] == NAMES["gemm"]
