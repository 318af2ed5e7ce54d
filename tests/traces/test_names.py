"""Profilers write C++, patterns are written for the driver's names."""

from __future__ import annotations

import pytest

from pyshim.profiles.kernel_names import driver_name, is_communication, plain, readable

CASES = [
    ("gemm", "gemm", "gemm", False),
    ("_ZN2at6native3addEv", "_ZN2at6native3addEv", "add", False),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", None, None, True),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)", None, None, True),
    ("void deep_ep::intranode::dispatch<8, 768>(int4*, float*)", "_ZN7deep_ep9intranode8dispatchEv", "dispatch", True),
    ("void other::dispatcher<deep_ep::X>(deep_ep::Y)", "_ZN5other10dispatcherEv", "dispatcher", False),
    (
        "void c10d::symmetric_memory::(anonymous namespace)::one_shot_all_reduce_kernel<float>(float**)",
        "_ZN4c10d16symmetric_memory12_GLOBAL__N_126one_shot_all_reduce_kernelEv",
        "one_shot_all_reduce_kernel",
        True,
    ),
    ("void at::native::f<std::array<char*, 3ul> >(int, std::array<char*, 3ul>)", "_ZN2at6native1fEv", "f", False),
    ("void a<(int)1>::b<2>(int)", "_ZN1a1bEv", "b", False),
    ("", "", "", False),
    ("(", "(", "(", False),
    ("a\0b", "a\0b", "a", False),
]


@pytest.mark.parametrize(("kernel", "driver", "last", "communication"), CASES)
def test_names(library, kernel, driver, last, communication):
    if driver is not None:
        assert (driver_name(kernel), plain(driver_name(kernel))) == (driver, last)
    assert is_communication(kernel) is communication


@pytest.mark.parametrize(
    ("kernel", "shown"),
    [
        ("_ZN43_GLOBAL__N__8a3151be_10_stencil_cu_6c10400d6jacobiEPKdPdiii", "jacobi"),
        ("_ZN3app12_GLOBAL__N_16jacobiEPKdPdiii", "app::jacobi"),
    ],
)
def test_a_namespace_without_a_name_is_not_shown(library, kernel, shown):
    assert readable(kernel) == shown
