"""Warnings of near misses: typing errors are found, and names of users' own kernels are not taken for one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyshim.policy import kernels, known
from pyshim.policy.model import Match
from pyshim.policy.rules import only_communication

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = (ROOT / "shim" / "core" / "family.def").read_text(encoding="ascii")
# Every name of a kernel that the product has itself.
OURS = [
    *(pattern for patterns in kernels.SETS.values() for pattern in patterns),
    *kernels.FUSED,
    *re.findall(r'^FAMILY\(\w+, "(.*)"\)', FAMILIES, re.M),
]


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("*nvjett*", "*nvjet*"),
        ("nvjte_*", "nvjet_*"),
        ("ncclDevKernal_*", "ncclDevKernel_*"),
        ("ncllDevKernel*", "ncclDevKernel*"),
        ("cutlas_80_*", "cutlass_80_*"),
        ("*flash_fwd_kenrel*", "*flash_fwd_kernel*"),
        ("trition_poi_fused_*", "triton_poi_fused_*"),
        ("*elementwize_kernel*", "*elementwise_kernel*"),
        ("*multi_tensor_apply_kernl*", "*multi_tensor_apply_kernel*"),
        ("NCCL*", "nccl*"),
    ],
)
def test_a_near_miss_is_found(pattern: str, meant: str) -> None:
    found = known.near_miss(pattern)
    assert found and f"did you mean `{meant}`?" in found.hint
    as_it_is = re.search(r"as it is: `(.*)`", found.hint)
    assert as_it_is is None or known.near_miss(as_it_is[1]) is None


def test_names_of_users_and_of_ours_are_no_near_misses() -> None:
    of_users = [
        *("*my_gemm*", "my_kernels", "naive_gemm*", "*kernels*", "*attentions*", "MyCutlassGemm", "*cutlas*"),
        *("*", "?", "*[n]vjett*", "at::native::add", "_Z4gemmPf", "embedded_lookup", "uccl_send", "hccl*", "back_pass"),
        *("optimize_step", "elementwise2", "*Kernel2*", "matmult", "sm90_xmma_gemm_*", "kern", "colonel", "kernelx"),
    ]
    assert [pattern for pattern in [*of_users, *OURS] if known.near_miss(pattern)] == []


def test_the_words_are_those_of_the_tables() -> None:
    names = FAMILIES + " ".join(pattern for patterns in kernels.SETS.values() for pattern in patterns)
    missing = [word for word in known.WORDS if word not in names.casefold()]
    assert missing == []
    libraries = re.findall(r'^LIBRARY\(\w+, "(.*)"\)', FAMILIES, re.M)
    assert sorted(known.COMMUNICATION_LIBRARIES) == sorted(libraries)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("libnccl.so", "libnccl.so*"),
        ("nccl", "libnccl.so*"),
        ("libnccl", "libnccl.so*"),
        ("libncll.so*", "libnccl.so*"),
        ("librcl.so.1", "librccl.so*"),
        ("libcublaslt.so", "libcublasLt.so*"),
        ("cudnn.so", "libcudnn.so*"),
    ],
)
def test_a_library_that_no_installation_has(pattern: str, meant: str) -> None:
    found = known.library_miss(pattern)
    assert found and f'"{meant}"' in found.hint


def test_a_library_that_may_exist() -> None:
    patterns = [
        *("libnccl.so*", "libnccl*", "libnccl.so.2", "libnccl.so.2.28.9", "*", "libmine.so", "libtorch_cuda.so"),
        *("libnccl-net.so", "libmccl.so*", "lib*.so", "libcudnn_ops.so.9", "[l]ibnccl.so"),
    ]
    assert [pattern for pattern in patterns if known.library_miss(pattern)] == []


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (Match(kernels=("ncclDevKernel_*",)), "ncclDevKernel_*"),
        (Match(kernels=("ncclDevKernel_*", "*gemm*")), ""),
        (Match(kernels=("nccl*",)), ""),
        (Match(kernels=("[n]cclDevKernel*",)), ""),
        (Match(sets=("gemm",)), ""),
        (Match(kernels=("*mine_a",)), "*mine_a"),
        (Match(libraries=("libnccl.so.2",)), "libnccl.so.2"),
        (Match(libraries=("libnccl.so.2", "libmine.so")), ""),
        (Match(kernels=("*gemm*",), libraries=("libcomm.so",)), "libcomm.so"),
        (Match(), ""),
    ],
)
def test_what_only_communication_can_match(match: Match, expected: str, library: object) -> None:
    assert only_communication(match, ("*mine*",), ("libcomm.so*",)) == expected


@pytest.mark.parametrize(
    "pattern", ["zzz_none_*", "*gem", "*flsh_fwd*", "*my_gemm*", "my_kernel", "a", "libnope", "*rms_nrom*", "MyGemm"]
)
def test_a_pattern_that_no_known_kernel_matches(pattern: str, library: object) -> None:
    found = known.unknown(pattern, pattern, ())
    assert found and found.code == "unknown-kernel" and "a kernel of your own" in found.sentence and not found.hint


def test_names_of_ours_and_confirmed_ones_are_known(library: object) -> None:
    patterns = [
        *("*", "?*", "*gemm*", "*cutlas*gemm*", "cutlass_80_*", "*flash_fwd*", "*flash_fwd_splitkv_*", "sgemm_128*"),
        *("nvjet_tst_*", "*elementwise*", "ncclDevKernel_*", "nccl*", "*AllReduce*", "*nvshmem*", "a*", "triton_red_*"),
        *("*[z]zz_none*", "mine_too", "*ampere_bf16_s16816*", "*attention*", "*kernel*", "_Z4gemmPf"),
    ]
    assert [name for name in [*patterns, *OURS] if known.unknown(name, name, ("mine_*",))] == []
