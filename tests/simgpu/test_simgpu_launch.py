"""What the driver refuses, and with which code."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_HANDLE, OUT_OF_RESOURCES, TOO_LARGE, NOT_SUPPORTED, BAD_CLUSTER = 1, 400, 701, 720, 801, 912
INVALIDATED = 901
PRIORITY, REFUSE = "d.launch_ex(k, attributes=[(8, [-3])])", {"SIMGPU_REFUSE": "k:1000"}

SETUP = """
d = Driver()
m = d.module(cubin([Kernel("k", 32), Kernel("fat", 255), Kernel("bounded", 32, max_threads=128),
                    Kernel("static", 32, static_shared=8192), Kernel("args", 32, parameters=[4, 8])], ARCH))
k, fat, bounded, static, args = (d.function(m, n) for n in ("k", "fat", "bounded", "static", "args"))
"""


def codes(simulate: Any, expression: str, gpu: str = "h100", **environment: str) -> Any:
    arch = {"h100": 90, "a100": 80}[gpu]
    return simulate(f"ARCH = {arch}\n{SETUP}\nanswer({expression})", gpu=gpu, **environment).answer


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("d.launch(k)", 0, id="a good launch"),
        pytest.param("d.launch(None)", INVALID_HANDLE, id="no function"),
        pytest.param("d.launch(P(0x1234560))", INVALID_HANDLE, id="a wild function"),
        pytest.param("d.launch(m)", INVALID_HANDLE, id="a module as function"),
        pytest.param("d.launch(k, stream=P(0xdead0))", INVALID_HANDLE, id="a wild stream"),
        pytest.param("d.launch(k, (0, 1, 1))", INVALID_VALUE, id="an empty grid"),
        pytest.param("d.launch(k, (1, 65536, 1))", INVALID_VALUE, id="a grid too high"),
        pytest.param("d.launch(k, 1, 0)", INVALID_VALUE, id="an empty block"),
        pytest.param("d.launch(k, 1, 1025)", INVALID_VALUE, id="a block too large"),
        pytest.param("d.launch(k, 1, (1, 1, 65))", INVALID_VALUE, id="a block too deep"),
        pytest.param("d.launch(k, 1, (64, 32, 1))", INVALID_VALUE, id="a block of 2048"),
        pytest.param("d.launch(bounded, 1, 128)", 0, id="as many threads as the bound"),
        pytest.param("d.launch(bounded, 1, 129)", INVALID_VALUE, id="more threads than the bound"),
        pytest.param("d.launch(fat, 1, 256)", 0, id="registers that just fit"),
        pytest.param("d.launch(fat, 1, 257)", OUT_OF_RESOURCES, id="registers that do not fit"),
        pytest.param("d.launch(k, dynamic=49152)", 0, id="48 KiB without opting in"),
        pytest.param("d.launch(k, dynamic=49153)", INVALID_VALUE, id="more than 48 KiB without opting in"),
        pytest.param("d.launch(static, dynamic=49152 - 8192)", 0, id="48 KiB with static"),
        pytest.param("d.launch(static, dynamic=49153 - 8192)", INVALID_VALUE, id="more than 48 KiB with static"),
        pytest.param("d.try_('cuFuncSetAttribute', k, 8, 232448)", 0, id="the largest opt-in"),
        pytest.param("d.try_('cuFuncSetAttribute', k, 8, 232449)", INVALID_VALUE, id="more than the largest opt-in"),
        pytest.param("d.try_('cuFuncSetAttribute', static, 8, 232448)", INVALID_VALUE, id="opt-in counts static"),
        pytest.param("[d.cuFuncSetAttribute(k, 8, 100000), d.launch(k, dynamic=100000)][1]", 0, id="opted in"),
        pytest.param("d.launch(args)", INVALID_VALUE, id="parameters missing"),
        pytest.param("d.launch(args, values=[C.c_int(1), C.c_long(2)])", 0, id="parameters given"),
        pytest.param("d.try_('cuLaunchKernel', k, 1,1,1, 32,1,1, 0, None, (P * 1)(), (P * 1)())", INVALID_VALUE,
                     id="kernelParams and extra"),
        pytest.param("d.launch(k, 132 * 2, 1024, entry='cuLaunchCooperativeKernel')", 0,
                     id="a cooperative grid that fits"),
        pytest.param("d.launch(k, 132 * 2 + 1, 1024, entry='cuLaunchCooperativeKernel')", TOO_LARGE,
                     id="a cooperative grid that does not"),
        pytest.param("d.launch_ex(k, 133 * 2, 1024, attributes=[(2, [1])])", TOO_LARGE, id="cooperative by attribute"),
        pytest.param("d.launch_ex(k, attributes=[(8, [-3])])", 0, id="priority by attribute"),
        pytest.param("[d.cuFuncSetAttribute(k, 8, 100), d.launch(k, 1, 32, 101, entry='cuLaunchCooperativeKernel')][1]",
                     TOO_LARGE, id="cooperative with more than the function allows"),
        pytest.param("d.launch_ex(k, attributes=[(99, [1])])", INVALID_VALUE, id="an unknown attribute"),
        pytest.param("d.launch_ex(k, attributes=[(n, [0]) for n in (0, 3, 5, 6, 7, 9, 10, 13, 14)])", 0,
                     id="accepted ones"),
        pytest.param("d.launch_ex(k, 8, attributes=[(4, [4, 1, 1])])", 0, id="a cluster"),
        pytest.param("d.launch_ex(k, 6, attributes=[(4, [4, 1, 1])])", BAD_CLUSTER, id="a grid that is no multiple"),
        pytest.param("d.launch_ex(k, 16, attributes=[(4, [16, 1, 1])])", BAD_CLUSTER, id="a cluster too large"),
    ],
)  # fmt: skip
def test_answers(simulate: Any, expression: Any, expected: Any) -> None:
    assert codes(simulate, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected", "options"),
    [
        pytest.param("d.launch_ex(k, 8, attributes=[(4, [4, 1, 1])])", NOT_SUPPORTED, {"gpu": "a100"},
                     id="clusters need compute capability 9"),
        pytest.param(PRIORITY, INVALID_VALUE, {"SIMGPU_DRIVER_VERSION": "11080"}, id="priority before CUDA 12"),
        pytest.param(PRIORITY, 0, {"SIMGPU_DRIVER_VERSION": "12000"}, id="priority since CUDA 12"),
        pytest.param("[d.launch(k, dynamic=n) for n in (1000, 1001)] + [d.launch(static, dynamic=1001)]",
                     [0, OUT_OF_RESOURCES, 0], REFUSE, id="SIMGPU_REFUSE"),
        pytest.param("""[d.cuStreamBeginCapture_v2(s := d.stream(), 0), d.launch(k, dynamic=1001, stream=s),
    d.launch(k, stream=s), d.try_("cuStreamEndCapture", s, C.byref(P()))][1:]""",
                     [OUT_OF_RESOURCES, INVALIDATED, INVALIDATED], REFUSE, id="it spoils a capture"),
    ],
)  # fmt: skip
def test_answers_elsewhere(simulate: Any, expression: str, expected: Any, options: dict[str, str]) -> None:
    assert codes(simulate, expression, **options) == expected


def test_kernel_attributes_are_per_device_and_reach_the_function(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
lib = P(); d.cuLibraryLoadData(C.byref(lib), cubin([Kernel("k")]), None, None, 0, None, None, 0)
kernel = d.new("cuLibraryGetKernel", lib, b"k")
function = d.new("cuKernelGetFunction", kernel)
before = d.launch(kernel, dynamic=60000)
d.cuKernelSetAttribute(8, 60000, kernel, 1)
other = d.launch(kernel, dynamic=60000)
d.cuKernelSetAttribute(8, 60000, kernel, 0)
answer([before, other, d.launch(kernel, dynamic=60000), d.get("cuFuncGetAttribute", 8, function)])
""",
        gpu="h100,2",
    )
    assert run.answer == [1, 1, 0, 60000]


def test_handles_of_an_unloaded_module_are_bad_and_come_back(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
m = d.module(cubin([Kernel("old", 24)]))
old = d.function(m, "old")
d.cuModuleUnload(m)
value = C.c_int()
bad = [d.launch(old), d.try_("cuFuncGetAttribute", C.byref(value), 4, old), d.try_("cuModuleUnload", m)]
m2 = d.module(cubin([Kernel("new", 48)]))
new = d.function(m2, "new")
answer([bad, old.value == new.value, m.value == m2.value, d.get("cuFuncGetAttribute", 4, old)])
"""
    )
    assert run.answer == [[400, 400, 400], True, True, 48]
