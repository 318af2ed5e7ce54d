"""Launches of HIP: every entry point arrives, and each version refuses what the real one refuses."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any

import pytest

CC = shlex.split(os.environ.get("CC", "cc"))

MANGLED = "_Z24hip{}ModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_{}"

EVERY = f"""
image = bundle({{"gfx942": b"other", "gfx90a:sramecc+:xnack-": code_object([Kernel("_Z1kPf", arguments=[8, 8])])}})
host, = hip.register(image, "_Z1kPf")
f = hip.function(image, "_Z1kPf")
s = hip.new("hipStreamCreate")
start, stop = hip.new("hipEventCreate"), hip.new("hipEventCreate")
args = hip.arguments(1, 2)
shared = C.c_size_t(1024)
g, b = Dim3(6, 2, 1), Dim3(64, 2, 1)
by_module = (f, 6, 2, 1, 64, 2, 1, 1024, s, args)
by_items = (f, 384, 4, 1, 64, 2, 1, shared, s, args, None, start, stop)
calls = {{
    "hipLaunchKernel": (host, g, b, args, shared, s),
    "hipLaunchKernel_spt": (host, g, b, args, shared, s),
    "hipExtLaunchKernel": (host, g, b, args, shared, s, start, stop, 0),
    "hipLaunchCooperativeKernel": (host, g, b, args, 1024, s),
    "hipLaunchCooperativeKernel_spt": (host, g, b, args, 1024, s),
    "hipModuleLaunchKernel": (*by_module, None),
    "hipModuleLaunchCooperativeKernel": by_module,
    "hipExtModuleLaunchKernel": (*by_items, 0),
    "hipHccModuleLaunchKernel": by_items,
    "{MANGLED.format("Ext", "j")}": (*by_items, 0),
    "{MANGLED.format("Hcc", "")}": by_items,
    "hipLaunchCooperativeKernelMultiDevice": (C.byref(LaunchParams(host, g, b, C.cast(args, P), 1024, s)), 1, 0),
    "hipExtLaunchMultiKernelMultiDevice": (C.byref(LaunchParams(host, g, b, C.cast(args, P), 1024, s)), 1, 0),
    "hipModuleLaunchCooperativeKernelMultiDevice":
        (C.byref(FunctionParams(f, 6, 2, 1, 64, 2, 1, 1024, s, C.cast(args, P))), 1, 0),
    "hipLaunchKernelExC": (C.byref(LaunchConfig(g, b, 1024, s, None, 0)), host, args),
    "hipDrvLaunchKernelEx": (C.byref(DriverConfig(6, 2, 1, 64, 2, 1, 1024, s, None, 0)), f, args, None),
}}
"""


def test_every_entry_point_arrives(on_hip: Any, version: int) -> None:
    run = on_hip(
        EVERY + "answer({name: hip.code(name, *call) for name, call in calls.items() if hip.has(name)})", version
    )
    missing = {5: 4, 6: 2, 7: 0}[version]  # ...Ext and ...Hcc by their plain names, ...ExC, Drv...Ex
    assert len(run.answer) == 16 - missing
    assert set(run.answer.values()) == {0}
    assert [row["entry"] for row in run.launches] == list(run.answer)
    for row in run.launches:
        assert (row["kernel"], row["blocks"], row["threads"], row["dynamic_shared"]) == ("_Z1kPf", 12, 128, 1024), row
        assert row["cooperative"] == ("Cooperative" in row["entry"]), row
    assert len({row["parameters"] for row in run.launches}) == 1
    assert len(run.timeline) == len(run.launches)


def test_launches_of_the_programs_own_making(on_hip: Any, version: int) -> None:
    """<<<>>>, and the older way in three calls, which goes through the exported hipModuleLaunchKernel."""
    run = on_hip(
        EVERY
        + """
og, ob, oshared, ostream = Dim3(), Dim3(), C.c_size_t(), P()
hip.code("__hipPushCallConfiguration", g, b, shared, s)
hip.code("__hipPopCallConfiguration", C.byref(og), C.byref(ob), C.byref(oshared), C.byref(ostream))
hip.hipLaunchKernel(host, og, ob, args, oshared, ostream)
hip.hipConfigureCall(g, b, shared, s)
for offset in (0, 8):
    hip.hipSetupArgument(C.byref(C.c_uint64(1 + offset // 8)), C.c_size_t(8), C.c_size_t(offset))
hip.hipLaunchByPtr(host)
answer([hip.code("hipLaunchByPtr", host), hip.code("hipLaunchByPtr", P(8))])
""",
        version,
    )
    assert run.answer == [52, 52]
    assert [row["entry"] for row in run.launches] == ["hipLaunchKernel", "hipModuleLaunchKernel"]
    assert len({row["parameters"] for row in run.launches}) == 1
    assert {row["dynamic_shared"] for row in run.launches} == {1024}


def test_whoever_stands_before_it_sees_the_launch_that_launch_by_ptr_makes(on_hip: Any, tmp_path: Any) -> None:
    (tmp_path / "front.c").write_text(
        '#include <stdio.h>\nint hipModuleLaunchKernel(void) { puts("seen"); fflush(stdout); return 5; }\n'
    )
    front = tmp_path / "front.so"
    subprocess.run([*CC, "-w", "-shared", "-fPIC", tmp_path / "front.c", "-o", front], check=True)
    run = on_hip(
        EVERY + "hip.hipConfigureCall(g, b, shared, s)\nanswer(hip.code('hipLaunchByPtr', host))", LD_PRELOAD=str(front)
    )
    assert (run.answer, run.stdout, run.launches) == (5, "seen\n", [])


def test_work_items_become_blocks(on_hip: Any) -> None:
    run = on_hip("""
f = hip.function(code_object([Kernel("k", uniform=False)]), "k")
u = hip.function(code_object([Kernel("u")]), "u")
call = lambda f, items, block: hip.code("hipExtModuleLaunchKernel", f, items, 1, 1, block, 1, 1, C.c_size_t(0), None,
                                        hip.arguments(), None, None, None, 0)
answer([call(f, 1000, 256), call(f, 100, 256), call(u, 1000, 256), call(u, 1024, 256)])
""")
    assert run.answer == [0, 0, 1, 0]
    assert [(row["blocks"], row["threads"]) for row in run.launches if not row["result"]] == [
        (4, 256),
        (1, 100),
        (4, 256),
    ]


def test_start_and_stop_measure_the_kernel_alone(on_hip: Any) -> None:
    run = on_hip(
        """
f = hip.function(code_object([Kernel("k")]), "k")
start, stop = hip.new("hipEventCreate"), hip.new("hipEventCreate")
hip.launch(f, 110, 64)
hip.hipExtModuleLaunchKernel(f, 64, 1, 1, 64, 1, 1, C.c_size_t(0), None, hip.arguments(), None, start, stop, 0)
hip.hipDeviceSynchronize()
ms = C.c_float(); hip.hipEventElapsedTime(C.byref(ms), start, stop)
answer(ms.value * 1000)
""",
        costs="- {kernel: k, block_us: 500, spread: 0, gain: 1}\n",
    )
    last = run.timeline[-1]
    assert run.answer == pytest.approx(last["end_us"] - last["start_us"], abs=4)


SIZES = """
f = hip.function(code_object([Kernel("k", static_shared=1024)]), "k")
sizes = (0, 65536 - 1024, 65536 - 1023, 65536, 65537)
"""


def test_more_shared_memory_than_there_is(on_hip: Any, version: int) -> None:
    run = on_hip(SIZES + "answer([hip.launch(f, 1, 64, size) for size in sizes]); os._exit(0)", version)
    over = 2 if version == 5 else 0
    assert run.answer == [0, 0, over, over, 1]


@pytest.mark.parametrize("how", ["hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamQuery", "hipFree"])
def test_since_6_3_the_queue_dies_and_the_runtime_ends_the_process(on_hip: Any, how: str) -> None:
    arguments = "" if how == "hipDeviceSynchronize" else ", None"
    snippet = SIZES + f"hip.launch(f, 1, 64, 65536); answer(0); hip.code('{how}'{arguments})"
    run = on_hip(snippet, 6, status=-6)
    assert "HSA_STATUS_ERROR_INVALID_ALLOCATION" in run.stderr
    assert [row["result"] for row in run.launches] == [0]


def test_or_as_the_environment_says(on_hip: Any) -> None:
    snippet = SIZES + "answer([hip.launch(f, 1, 64, 65536), *[hip.code('hipDeviceSynchronize') for _ in range(2)]])"
    assert on_hip(snippet, SIMGPU_HIP_OVERSHOOT="error").answer == [2, 0, 0]
    assert on_hip(snippet, SIMGPU_HIP_OVERSHOOT="sticky").answer == [0, 719, 719]
    on_hip(snippet, 5, SIMGPU_HIP_OVERSHOOT="abort", status=-6)


def test_in_a_graph_the_queue_dies_when_it_is_launched(on_hip: Any) -> None:
    snippet = (
        SIZES
        + """
s, graph, exe = hip.new("hipStreamCreateWithFlags", 1), P(), P()
hip.hipStreamBeginCapture(s, 0)
made = hip.launch(f, 1, 64, 65536, s)
ended = hip.code("hipStreamEndCapture", s, C.byref(graph))
if made == 0:
    hip.hipGraphInstantiate(C.byref(exe), graph, None, None, C.c_size_t(0))
    before = hip.code("hipDeviceSynchronize")
    launched = hip.code("hipGraphLaunch", exe, s)
    answer([before, launched, hip.code("hipDeviceSynchronize")])
else: answer([made, ended])
"""
    )
    assert on_hip(snippet, SIMGPU_HIP_OVERSHOOT="sticky").answer == [0, 0, 719]
    assert on_hip(snippet, SIMGPU_HIP_OVERSHOOT="error").answer == [2, 901]
    assert on_hip(snippet, 5).answer == [2, 901]


def test_a_mistake_in_the_environment_is_one_line(on_hip: Any) -> None:
    asked = "answer([hip.code('hipInit', 0), hip.code('hipDeviceSynchronize')])"
    run = on_hip(asked, SIMGPU_HIP_OVERSHOOT="perhaps")
    assert run.answer == [1, 1]
    assert set(run.stderr.splitlines()) == {run.stderr.splitlines()[0]}
    assert run.stderr.startswith("simgpu: SIMGPU_HIP_OVERSHOOT: `perhaps` is not ")


def test_other_refusals(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
f = hip.function(code_object([Kernel("k", max_threads=256, arguments=[8])]), "k")
one = hip.arguments(1)
call = lambda *sizes, args=one, extra=None: hip.code("hipModuleLaunchKernel", f, *sizes, None, args, extra)
answer([call(1, 1, 1, 256, 1, 1, 0), call(1, 1, 1, 257, 1, 1, 0), call(1, 1, 1, 1025, 1, 1, 0),
        call(0, 1, 1, 64, 1, 1, 0), call(1, 1, 1, 0, 1, 1, 0), call(2**31 - 1, 1, 1, 64, 1, 1, 0),
        call(1, 65537, 1, 64, 1, 1, 0), call(1, 1, 1, 64, 1, 1, 0, extra=one), call(1, 1, 1, 64, 1, 1, 0, args=None),
        hip.launch(None, 1, 64), hip.launch(P(64), 1, 64), hip.launch(f, 1, 64, 0, P(12345))])
""",
        version,
    )
    assert run.answer == [0, 719, 1, 1, 9, 9, 1, 1, 1, 400, 400, 1]


def test_cooperative_grids_must_fit_by_the_runtimes_own_arithmetic(on_hip: Any) -> None:
    """256 registers and 256 threads: two on each of 110 compute units."""
    run = on_hip("""
f = hip.function(code_object([Kernel("k", vgprs=128, agprs=128)]), "k")
call = lambda blocks: hip.code("hipModuleLaunchCooperativeKernel", f, blocks, 1, 1, 256, 1, 1, 0, None, hip.arguments())
answer([call(220), call(221)])
""")
    assert run.answer == [0, 720]


def test_a_priority_for_one_launch_is_refused(on_hip: Any) -> None:
    run = on_hip(
        """
f = hip.function(code_object([Kernel("k")]), "k")
def launch(id, value):
    attribute = Attribute(id); attribute.value[0] = value
    config = DriverConfig(1, 1, 1, 64, 1, 1, 0, None, C.addressof(attribute), 1)
    return hip.code("hipDrvLaunchKernelEx", C.byref(config), f, hip.arguments(), None)
answer([launch(8, -1), launch(2, 1), launch(3, 0)])
"""
    )
    assert run.answer == [1, 0, 1]
    assert [row["cooperative"] for row in run.launches] == [True]


def test_refusals_that_a_test_asks_for(on_hip: Any) -> None:
    run = on_hip(SIZES + "answer([hip.launch(f, 1, 64, size) for size in (64, 65)])", SIMGPU_REFUSE="k:64")
    assert run.answer == [0, 701]


def test_set_attribute_is_looked_at_and_does_nothing(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
image = code_object([Kernel("k", static_shared=1024)])
host, = hip.register(image, "k")
answer([hip.code("hipFuncSetAttribute", host, 8, value) for value in (0, 64512, 64513, -1)]
       + [hip.code("hipFuncSetAttribute", host, 9, 50), hip.code("hipFuncSetAttribute", P(8), 8, 0),
          hip.code("hipFuncSetAttribute", None, 8, 0), hip.launch(hip.function(image, "k"), 1, 64, 60000)])
""",
        version,
    )
    assert run.answer == [0, 0, 1, 1, 0, 98, 98, 0]


def test_the_last_error(on_hip: Any, version: int) -> None:
    """Up to 6 each call sets it; from 7 on only those that fail."""
    run = on_hip(
        """
last, name = lambda: hip.code("hipGetLastError"), hip.library.hipGetErrorName
name.restype = C.c_char_p
hip.code("hipSetDevice", 5); first = [last(), last()]
hip.code("hipSetDevice", 5); hip.number("hipGetDeviceCount")
answer([first, last(), name(101).decode(), name(719).decode()])
""",
        version,
    )
    assert run.answer == [[101, 0], 101 if version == 7 else 0, "hipErrorInvalidDevice", "hipErrorLaunchFailure"]
