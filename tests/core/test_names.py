"""Globs, plain names, and who is communication: against an oracle of our own, and against names of real libraries."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyshim import _native
from pyshim.profiles.kernel_names import readable


def oracle(pattern: bytes, name: bytes) -> bool:
    """fnmatchcase's rules, written as the recursion that defines them. Bytes: a driver's names have no encoding."""
    rows = [[False] * (len(name) + 1) for _ in range(len(pattern) + 1)]
    rows[len(pattern)][len(name)] = True
    for p in range(len(pattern) - 1, -1, -1):
        for n in range(len(name), -1, -1):
            if pattern[p] == ord("*"):
                rows[p][n] = rows[p + 1][n] or (n < len(name) and rows[p][n + 1])
            elif n < len(name):
                fits, after = one(pattern, p, name[n])
                rows[p][n] = fits and rows[after][n + 1]
    return rows[0][0]


def one(pattern: bytes, p: int, c: int) -> tuple[bool, int]:
    """Does the element at p accept the character, and where is the next element?"""
    if pattern[p] == ord("?"):
        return True, p + 1
    if pattern[p] != ord("["):
        return pattern[p] == c, p + 1
    first = p + 1 + (pattern[p + 1 : p + 2] == b"!")
    end = pattern.find(b"]", first + 1)
    # a range takes the bracket that closes it: [--]] is the range from - to ], and then nothing
    members, at, closed = False, first, -1
    while at < len(pattern):
        if pattern[at] == ord("]") and at > first:
            closed = at
            break
        if pattern[at + 1 : at + 2] == b"-" and pattern[at + 2 : at + 3] not in (b"", b"]"):
            members |= pattern[at] <= c <= pattern[at + 2]
            at += 3
        else:
            members |= pattern[at] == c
            at += 1
    if closed < 0 or end < 0:
        return c == ord("["), p + 1
    return members != (first > p + 1), closed + 1


text = st.text(alphabet="ab[]!-*?^", max_size=12).map(str.encode)
names = st.text(alphabet="ab[]!-*?^", max_size=14).map(str.encode)
anything = st.binary(max_size=10).filter(lambda b: 0 not in b)


@settings(max_examples=1000)
@given(pattern=text | anything, name=names | anything)
@example(b"[", b"[")
@example(b"[!]", b"[!]")
@example(b"[]]", b"]")
@example(b"[!]]", b"a")
@example(b"[a-]", b"-")
@example(b"[]-a]", b"^")
@example(b"[^a]", b"^")
@example(b"", b"")
@example(b"***", b"")
def test_globs_agree_with_the_oracle(library: Any, pattern: bytes, name: bytes) -> None:
    assert bool(library.overlap_glob_match(pattern, name)) == oracle(pattern, name)


def test_all_short_globs_agree_with_the_oracle(library: Any) -> None:
    short = [b"", b"a", b"b", b"-", b"]", b"ab", b"a]", b"[a", b"b-", b"!a", b"aab", b"a-b"]
    for start, most in ((b"", 4), (b"[", 4), (b"a[", 3)):
        for length in range(most + 1):
            for letters in itertools.product(b"ab[]!-*?", repeat=length):
                pattern = start + bytes(letters)
                for name in short:
                    assert bool(library.overlap_glob_match(pattern, name)) == oracle(pattern, name), (pattern, name)


def test_a_glob_with_many_stars_takes_no_time(library: Any) -> None:
    assert not library.overlap_glob_match(b"*a" * 200 + b"b", b"a" * 4000)


PLAIN = {
    "gemm": "gemm",
    "": "",
    "_Z": "_Z",
    "_Z4gemmPf": "gemm",
    "_Z4gemm6ParamsPf": "gemm",  # a class as first parameter is not the name
    "_Z4copySt4pairIiiE": "copy",
    "_ZL4gemmPf": "gemm",
    "_ZN1a1bEPf": "b",
    "_ZN1a1bE6Params": "b",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_": (
        "vectorized_elementwise_kernel"
    ),
    "_ZN7cutlass7Kernel2I4GemmEEvNT_6ParamsE": "Kernel2",
    "_ZN12_GLOBAL__N_14gemmEPf": "gemm",
    "_ZN1a12halo_kernelsEv": "halo_kernels",  # its length has more digits than the namespace has letters
    "_ZN3gmx40nbnxm_kernel_ElecEw_VdwLJCombGeom_F_cudaENS_13NBAtomDataGpuE": "nbnxm_kernel_ElecEw_VdwLJCombGeom_F_cuda",
    "_ZNSt6vectorE": "vector",
    "_ZNK1a1bEv": "b",
    "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE": "ncclDevKernel_SendRecv",
    "_Z5short": "short",
    "_Z9short": "_Z9short",  # longer than what is there: not a mangled name
    "_Z99999999999999999999999a": "_Z99999999999999999999999a",
    "_ZZ4mainE3foo": "_ZZ4mainE3foo",  # a local name: as it stands
    "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64": (
        "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64"
    ),
}


def test_the_plain_name(library: Any) -> None:
    assert {kernel: plain_of(library, kernel.encode(), 512).decode() for kernel in PLAIN} == PLAIN


def plain_of(library: Any, kernel: bytes, size: int) -> bytes:
    room = _native.ffi.new("char[]", b"\x7f" * (size + 8))
    written = library.overlap_plain_name(kernel, room, size)
    after = bytes(_native.ffi.buffer(room, size + 8))
    assert after[size:] == b"\x7f" * 8, "not a byte behind the room given"
    assert written <= size
    if size == 0:
        assert written == 0
        return b""
    assert after[written - 1] == 0
    return after[: written - 1]


@settings(max_examples=500)
@given(tail=st.text(alphabet="NLKVrSt0123456789abcE_I", max_size=20), size=st.integers(0, 24))
def test_plain_names_never_leave_their_room(library: Any, tail: str, size: int) -> None:
    whole = plain_of(library, f"_Z{tail}".encode(), 64)
    assert plain_of(library, f"_Z{tail}".encode(), size) == whole[: max(0, size - 1)]
    assert whole.decode() in f"_Z{tail}"


def mangled(qualified: str, rest: str = "") -> str:
    """An Itanium name: `a::b` and what follows it (template arguments, parameters)."""
    parts = "".join(f"{len(part)}{part}" for part in qualified.split("::"))
    return f"_ZN{parts}{rest}" if "::" in qualified else f"_Z{parts}{rest}"


NCCL = "24ncclDevKernelArgsStorageILm4096EE"

# Names as they stand in the symbol tables and sources of the libraries that family.def names.
COMMUNICATION = [
    mangled("ncclDevKernel_AllReduce_Sum_f32_RING_LL", NCCL),
    mangled("ncclDevKernel_SendRecv", NCCL),
    mangled("ncclDevKernelDebug_AllGather_RING_LL", NCCL),
    mangled("ncclSymkDevKernel_AllGather_LSA_STMC", "24ncclSymkDevWorkArgs4K"),
    mangled("ncclKernel_AllReduce_RING_LL_Sum_float", "P11ncclDevCommmP8ncclWork"),
    "ncclKernel_AllReduce_RING_LL_Sum_float",
    mangled("oneRankReduce", "I7FuncSumIfELb0EEvPvS2_mmb"),
    mangled("mscclKernel_Sum_half_LL", "P11ncclDevComm"),
    mangled("ddaAllReduceFlatIpc", "ILi8EEvPf"),
    mangled("c10d::symmetric_memory::one_shot_all_reduce_kernel", "IN3c108BFloat16ELi16EEEvPPT_"),
    mangled("c10d::symmetric_memory::barrier_kernel", "EPPjjiim"),
    mangled("_GLOBAL__N_1::two_shot_all_reduce_kernel", "IfLi16ELi8EEEvPPT_"),
    mangled("c10d::nccl_extension::lsa_barrier_kernel", "Ev"),
    mangled("deep_ep::internode::dispatch", "ILb0ELi8EEEvP4int4"),
    "dispatch",
    "combine",
    "notify_dispatch",
    mangled("mscclpp::TestKernel", "Ev"),
    "executionKernel",
    mangled("vllm::cross_device_reduce_1stage", "I6__halfLi8EEEvPNS_8RankDataE"),
    mangled("vllm::cross_device_reduce_2stage", "I6__halfLi8EEEvPNS_8RankDataE"),
    "nvshmemi_proxy_quiet_entrypoint",
    mangled("nvshmemi_reduce_kernel", "Pv"),
    mangled("barrier_on_stream_kernel_threadgroup", "i"),
    mangled("tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport", "IfEEvv"),
    mangled("tensorrt_llm::kernels::oneShotAllReduceKernel", "IfEEvv"),
    "executor_kernel",
]

# Computation of PyTorch, cuBLAS, cuDNN, CUTLASS, Triton and friends: raised or left unshaped only by mistake.
COMPUTATION = [
    mangled("at::native::vectorized_elementwise_kernel", "ILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_"),
    mangled(
        "at::native::reduce_kernel",
        "ILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclEEjfLi4EEEEEvT1_",
    ),
    mangled(
        "at::native::elementwise_kernel",
        "ILi128ELi4EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23direct_copy_kernel_cudaEUliE_EEviT1_",
    ),
    mangled(
        "at::native::_GLOBAL__N_1::multi_tensor_apply_kernel",
        "INS1_18TensorListMetadataILi4EEENS1_20FusedAdamMathFunctorEEEvT_",
    ),
    mangled("_GLOBAL__N_1::softmax_warp_forward", "IfffLi10ELb0ELb0EEEvPT0_PKT_iiiPKbib"),
    mangled("at::native::_GLOBAL__N_1::vectorized_layer_norm_kernel", "IffEEviT0_PKT_S4_S4_PS2_S5_PS3_"),
    mangled("at::native::_GLOBAL__N_1::CatArrayBatchedCopy", "IfjLi2ELi64ELi64EEEvPT_"),
    mangled("at::native::indexSelectLargeIndex", "IflLi2ELi2ELin2ELb1EEEvv"),
    mangled("cutlass::device_kernel", "INS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEEvNT_6ParamsE"),
    mangled(
        "cutlass::Kernel2", "I65cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8EEvNT_6ParamsE"
    ),
    "cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_nn_align8",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x256x64_warpgroupsize1x1x1",
    "ampere_sgemm_128x64_nn",
    "volta_sgemm_32x128_tn",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
    mangled("cublasLt::splitKreduce_kernel", "ILi32ELi16EifffLb1ELb0ELb0EEEvNS_18cublasSplitKParamsIT3_EE"),
    mangled("cublasLt::epilogue::impl::globalKernel", "ILi8ELi32EfEEvv"),
    mangled("gemmSN_TN_kernel", "IfLi128ELi16ELi2ELi4ELi8ELi9ELb0E30cublasGemvTensorStridedBatchedIKfES2_E"),
    mangled("dot_kernel", "IfLi128ELi0E15cublasDotParamsIfEEvT2_"),
    "cudnn_infer_volta_scudnn_128x64_relu_xregs_large_nn_v1",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x64_4x1x1_cga1x1x1_kernel0_0",
    mangled("flash::flash_fwd_kernel", "I23Flash_fwd_kernel_traitsILi128ELi128ELi64EEEvNS_16Flash_fwd_paramsE"),
    mangled(
        "flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "I23Flash_bwd_kernel_traitsEEvNS_16Flash_bwd_paramsE"
    ),
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80",
    "triton_poi_fused_add_mul_0",
    "triton_red_fused__to_copy_mean_pow_1",
    "matmul_kernel",
    "_attn_fwd",
    mangled("cub::DeviceRadixSortOnesweepKernel", "INS_21DeviceRadixSortPolicyIjjiE9Policy900ELb0EjjiijEEvPT4_"),
    "moe_align_block_size_kernel",
    mangled("vllm::paged_attention_v2_kernel", "ItthLi128ELi16ELi128EEEvPf"),
    mangled("vllm::rms_norm_kernel", "IN3c108BFloat16EEEvPT_"),
    "fused_moe_kernel",
    "dispatcher",
    "recombine",
    "reduce_scatter_add_kernel",
    "index_put_accumulate",
    "",
]


def test_communication_is_told_from_computation(library: Any) -> None:
    names = COMMUNICATION + COMPUTATION
    assert [name for name in names if library.overlap_is_communication(name.encode())] == COMMUNICATION


def test_names_for_people_have_classes_of_template_arguments_only(library: Any) -> None:
    assert readable("_Z5solveIL12GridOrdering1ELb0EEv6Params") == "solve", "an enumerator's value, and a parameter"
    assert readable("_ZN1a1bIN1c1DELNS_1GE9ENS_1HEEEvNS_1IE") == "a::b<D, H>"
    local = "ZZN1a1fEPNS_6ParamsEENKUlvE10_clEvEUlvE1_"  # a lambda in a lambda of a::f
    others = "IXadL_ZNS_1vEEEL_ZNS_1rEEDF16_Dv4_DF16bA10_f"  # &v, r (by reference), half, vector, array
    assert readable(f"_ZN1a1bI{local}N1c1DEEEvPNS_6ParamsE") == "a::b<D>"
    assert readable(f"_ZN1a1b{others}NS_4WrapINS_1HEEEEEvPNS_6ParamsE") == "a::b<Wrap, H>"
    assert readable("_Z" + "9" * 5000).startswith("_Z99"), "more digits than Python makes an int of"


def test_a_name_longer_than_any_buffer(library: Any) -> None:
    long = b"_ZN4aaaa" + b"3000" + b"x" * 3000 + b"E"
    assert not library.overlap_is_communication(long)
    assert library.overlap_is_communication(b"_Z" + b"3012" + b"ncclDevKernel_" + b"x" * 2998)
