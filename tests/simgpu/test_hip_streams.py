"""Streams, events, memory and captures of HIP."""

from __future__ import annotations

from typing import Any

import pytest

COSTS = "- {kernel: k, block_us: 100, spread: 0, gain: 1}\n- {kernel: wide, block_us: 1000, spread: 0, gain: 1}\n"

KERNELS = """
code = image([Kernel("k"), Kernel("wide", vgprs=256, agprs=256)])
k, wide = (hip.function(code, name) for name in ("k", "wide"))
"""


def test_streams_say_what_they_are(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
least, greatest = C.c_int(), C.c_int()
hip.hipDeviceGetStreamPriorityRange(C.byref(least), C.byref(greatest))
s = [hip.new("hipStreamCreateWithPriority", 1, priority) for priority in (-5, -1, 0, 1, 7)]
s.append(hip.new("hipStreamCreate"))
def of(stream):
    flags, priority = C.c_uint(), C.c_int()
    hip.hipStreamGetFlags(stream, C.byref(flags)); hip.hipStreamGetPriority(stream, C.byref(priority))
    device = C.c_int(9)
    if hip.has("hipStreamGetDevice"): hip.hipStreamGetDevice(stream, C.byref(device))
    else: device.value = hip.library.hipGetStreamDeviceId(stream)
    return [flags.value, priority.value, device.value]
hip.hipStreamDestroy(s[0])
answer([least.value, greatest.value, [of(x) for x in s[1:]], of(None), hip.code("hipStreamSynchronize", s[0])])
""",
        version,
    )
    assert run.answer == [1, -1, [[1, -1, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]], [0, 0, 0], 400]


def test_a_stream_of_high_priority_goes_first_and_a_low_one_last(on_hip: Any) -> None:
    """The wide kernel leaves no register; it is of normal priority, and the first of its queue."""
    run = on_hip(
        KERNELS
        + """
high, low, normal, first = (hip.new("hipStreamCreateWithPriority", 1, p) for p in (-1, 1, 0, 0))
hip.launch(wide, 8, 64, 0, first)
for stream in (low, normal, high): hip.launch(k, 1, 64, 0, stream)
hip.hipDeviceSynchronize()
answer(0)
""",
        costs=COSTS,
        SIMGPU_MULTIPROCESSORS="1",
    )
    started = {row["priority"]: row["start_us"] for row in run.timeline if row["kernel"] == "k"}
    assert started[-1] < started[0] <= started[1]
    assert started[-1] < run.kernel("wide")["end_us"] - 500
    assert [row["priority"] for row in run.launches] == [0, 1, 0, -1]


def test_waits_order_streams_and_events_measure(on_hip: Any, version: int) -> None:
    run = on_hip(
        KERNELS
        + """
a, b = (hip.new("hipStreamCreateWithFlags", 1) for _ in "ab")
start, mid, end = (hip.new("hipEventCreateWithFlags", 0x20000000) for _ in range(3))
hip.hipEventRecord(start, a)
hip.launch(wide, 1, 64, 0, a); hip.hipEventRecord(mid, a)
hip.hipStreamWaitEvent(b, mid, 0); hip.launch(k, 1, 64, 0, b); hip.hipEventRecord(end, b)
early = [hip.code("hipEventQuery", end), hip.code("hipStreamQuery", b)]
hip.hipEventSynchronize(end)
ms = C.c_float(); hip.hipEventElapsedTime(C.byref(ms), mid, end)
answer([early, hip.code("hipEventQuery", end), ms.value * 1000])
""",
        version,
        costs=COSTS,
    )
    assert run.answer[:2] == [[600, 600], 0]
    kernel = run.kernel("k")
    assert run.answer[2] == pytest.approx(kernel["end_us"] - kernel["start_us"], abs=0.01)
    assert kernel["start_us"] >= run.kernel("wide")["end_us"]


def test_captured_launches_become_a_graph(on_hip: Any, version: int) -> None:
    run = on_hip(
        KERNELS
        + """
a, b = (hip.new("hipStreamCreateWithFlags", 1) for _ in "ab")
fork, join = hip.new("hipEventCreate"), hip.new("hipEventCreate")
status = C.c_int()
hip.hipStreamBeginCapture(a, 0)
hip.launch(k, 1, 64, 256, a); hip.hipEventRecord(fork, a); hip.hipStreamWaitEvent(b, fork, 0)
hip.launch(wide, 1, 64, 0, b); hip.hipEventRecord(join, b); hip.hipStreamWaitEvent(a, join, 0)
hip.hipStreamIsCapturing(b, C.byref(status)); capturing = status.value
forbidden = hip.code("hipStreamSynchronize", a)
graph = P(); code = hip.code("hipStreamEndCapture", a, C.byref(graph))
b, graph, made = hip.new("hipStreamCreateWithFlags", 1), P(), P()
hip.hipStreamBeginCapture(b, 0); hip.launch(k, 1, 64, 256, b); hip.hipStreamEndCapture(b, C.byref(graph))
hip.hipGraphInstantiate(C.byref(made), graph, None, None, C.c_size_t(0))
hip.hipGraphLaunch(made, b); hip.hipDeviceSynchronize()
answer([capturing, forbidden, code])
""",
        version,
    )
    assert run.answer[:2] == [1, 900]
    assert [(row["entry"], row["captured"]) for row in run.launches] == [
        ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True),
        ("hipGraphLaunch", False),
    ]  # fmt: skip
