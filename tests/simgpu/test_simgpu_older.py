"""Launches of older interfaces: state of functions, and one kernel on several devices."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_HANDLE, TOO_LARGE, UNSUPPORTED = 1, 400, 720, 900
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us
SETUP = """
d = Driver()
m = d.module(cubin([Kernel("k", 64), Kernel("args", parameters=[4, 4, 8])]))
k, args = d.function(m, "k"), d.function(m, "args")
s = d.stream(-2)
def prepare(function, dynamic=0):
    d.cuFuncSetBlockShape(function, 64, 2, 1); d.cuFuncSetSharedSize(function, dynamic)
"""


def test_a_launch_by_the_state_of_its_function(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
prepare(args, 4096)
d.cuParamSetSize(args, 16)
d.cuParamSeti(args, 0, 7); d.cuParamSetf(args, 4, C.c_float(1.5)); d.cuParamSetv(args, 8, C.byref(C.c_long(9)), 8)
codes = [d.try_("cuLaunch", args), d.try_("cuLaunchGrid", args, 3, 2), d.try_("cuLaunchGridAsync", args, 5, 1, s)]
d.launch(args, 5, 128, 4096, s, [C.c_int(7), C.c_float(1.5), C.c_long(9)])
answer([codes, hex(s.value)])
"""
    )
    codes, stream = run.answer
    assert codes == [0, 0, 0]
    assert [row["entry"] for row in run.launches] == ["cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchKernel"]
    assert [row["blocks"] for row in run.launches] == [1, 6, 5, 5]
    assert {(row["threads"], row["dynamic_shared"], row["parameters"]) for row in run.launches} == {
        (128, 4096, run.launches[3]["parameters"])
    }
    assert [row["stream"] for row in run.launches] == ["0x1", "0x1", stream, stream]
    assert run.launches[2]["priority"] == -2


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("d.try_('cuLaunch', k)", INVALID_VALUE, id="nothing was set"),
        pytest.param("[prepare(k), d.try_('cuLaunch', k)][1]", 0, id="no parameters to set"),
        pytest.param("[prepare(args), d.try_('cuLaunch', args)][1]", INVALID_VALUE, id="parameters to set"),
        pytest.param("[prepare(k, 49153), d.try_('cuLaunch', k)][1]", INVALID_VALUE, id="more than is allowed"),
        pytest.param("[prepare(k, 60000), d.cuFuncSetAttribute(k, 8, 60000), d.try_('cuLaunch', k)][2]", 0,
                     id="as much as it allows by then"),
        pytest.param("[prepare(k), d.launch(k), d.try_('cuLaunch', k)][2]", INVALID_VALUE,
                     id="a newer launch makes the state invalid"),
        pytest.param("[prepare(k), d.launch(k, 0), d.try_('cuLaunch', k)][2]", 0, id="a refused one does not"),
        pytest.param("[prepare(k), d.try_('cuLaunchGrid', k, 0, 1)][1]", INVALID_VALUE, id="an empty grid"),
        pytest.param("d.try_('cuFuncSetBlockShape', k, 0, 1, 1)", INVALID_VALUE, id="an empty block"),
        pytest.param("d.try_('cuParamSetSize', k, 4097)", INVALID_VALUE, id="too many parameters"),
        pytest.param("d.try_('cuParamSetv', k, 4090, C.byref(C.c_long(1)), 8)", INVALID_VALUE, id="beyond the end"),
        pytest.param("[d.try_(n, m, 1, 1, 1) for n in ('cuFuncSetBlockShape', 'cuFuncSetSharedSize', 'cuLaunchGrid')]",
                     [INVALID_HANDLE] * 3, id="no function"),
    ],
)  # fmt: skip
def test_what_is_refused(simulate: Any, expression: Any, expected: Any) -> None:
    assert simulate(SETUP + f"answer({expression})").answer == expected


def test_an_older_launch_can_be_captured(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
prepare(k, 2048)
d.cuStreamBeginCapture_v2(s, 0); d.cuLaunchGridAsync(k, 3, 1, s)
g = P(); d.cuStreamEndCapture(s, C.byref(g))
answer([d.node(n).shared for n in d.nodes_of(g)])
"""
    )
    assert run.answer == [2048]


MULTI = """
d = Driver(context=False)
lib = P()
code = fatbin([(2, a, cubin([Kernel("k", r)], a)) for a, r in ((80, 64), (90, 128))])  # 100 us there, 200 here
d.cuLibraryLoadData(C.byref(lib), code, None, None, 0, None, None, 0)
kernel = d.new("cuLibraryGetKernel", lib, b"k")
contexts = [d.new("cuDevicePrimaryCtxRetain", i) for i in range(2)]
def on(i): d.cuCtxSetCurrent(contexts[i])
functions, streams = [], []
for i in range(2):
    on(i); functions.append(d.new("cuKernelGetFunction", kernel)); streams.append(d.stream())
class Launch(C.Structure):
    _fields_ = [("function", P), *[(n, C.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")],
                ("stream", P), ("params", P)]
def launch(flags=0, blocks=(4, 4), handles=functions, where=streams, count=2):
    parts = (Launch * 2)(*[Launch(f, n, 1, 1, 32, 1, 1, 0, s, None) for f, n, s in zip(handles, blocks, where)])
    return d.try_("cuLaunchCooperativeKernelMultiDevice", parts, count, flags)
def finish():
    for i in range(2): on(i); d.cuCtxSynchronize()
"""


@pytest.mark.parametrize(
    ("flags", "before", "after"), [(0, True, True), (1, False, True), (2, True, False), (3, False, False)]
)
def test_several_devices_at_once(simulate: Any, flags: Any, before: Any, after: Any) -> None:
    """Device 0 is busy when it is launched; device 1 has something to do afterwards."""
    run = simulate(
        MULTI
        + f"""
on(0); d.launch(functions[0], 8, 64, stream=streams[0])
code = launch({flags})
on(1); d.launch(functions[1], 8, 64, stream=streams[1])
finish(); answer(code)
""",
        gpu="h100+a100",
        costs=COSTS,
    )
    assert run.answer == 0
    busy, later = (next(row for row in run.timeline if row["blocks"] == 8 and row["device"] == i) for i in (0, 1))
    first, second = (next(row for row in run.timeline if row["blocks"] == 4 and row["device"] == i) for i in (0, 1))
    assert first["start_us"] >= busy["end_us"]
    assert (second["start_us"] >= busy["end_us"]) is before
    assert (later["start_us"] >= first["end_us"]) is after
    rows = [row for row in run.launches if row["entry"] == "cuLaunchCooperativeKernelMultiDevice"]
    assert [(row["cooperative"], row["blocks"]) for row in rows] == [(True, 4)] * 2


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("launch()", 0, id="good"),
        pytest.param("launch(handles=[kernel, kernel])", 0, id="by the kernel's own handle"),
        pytest.param("launch(blocks=(4, 5))", INVALID_VALUE, id="different grids"),
        pytest.param("launch(blocks=(99999, 99999))", TOO_LARGE, id="more than is resident"),
        pytest.param("launch(flags=4)", INVALID_VALUE, id="an unknown flag"),
        pytest.param("launch(count=0)", INVALID_VALUE, id="none"),
        pytest.param("launch(where=[streams[0], streams[0]], handles=[functions[0], functions[0]])", INVALID_VALUE,
                     id="a device twice"),
        pytest.param("launch(where=[None, streams[1]])", INVALID_VALUE, id="the default stream"),
        pytest.param("launch(where=[P(64), streams[1]])", INVALID_HANDLE, id="no stream"),
        pytest.param("launch(handles=[functions[1], functions[0]])", INVALID_HANDLE, id="functions of another device"),
        pytest.param("[d.cuStreamBeginCapture_v2(streams[1], 0), launch()][1]", UNSUPPORTED, id="while capturing"),
    ],
)  # fmt: skip
def test_answers_for_several_devices(simulate: Any, call: Any, expected: Any) -> None:
    run = simulate(MULTI + f"answer({call})", gpu="h100+a100")
    assert run.answer == expected
    assert len(run.timeline) == (2 if expected == 0 else 0)
