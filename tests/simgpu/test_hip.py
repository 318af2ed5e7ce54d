"""The simulated HIP runtime: the names of the real one, what each version refuses, and streams of three priorities."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import hip_runtimes
import pytest

from tools.simgpu.hip import names


def readelf(*arguments: object) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf: install binutils")
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def shown(library: Path) -> list[str]:
    rows = [line.split() for line in readelf("--dyn-syms", library).splitlines()]
    return sorted(row[7].replace("@@", "@") for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6] != "UND")


def test_names_have_the_version_nodes_of_the_real_one(runtimes: dict[int, Path]) -> None:
    assert shown(runtimes[7]) == sorted(f"{one.name}@{one.node}" for one in names.read())


def test_the_copy_of_an_older_one_lacks_what_came_later(on_hip: Any, runtimes: dict[int, Path]) -> None:
    asked = hip_runtimes.exported(7)
    run = on_hip(f"answer([name for name in {asked} if hip.has(name)])", 5)
    assert run.answer == hip_runtimes.exported(5)
    assert "libamdhip64.so.5" in readelf("-d", runtimes[5])


SIZES = """
f = hip.function(image([Kernel("k", static_shared=1024)]), "k")
sizes = (0, 65536 - 1024, 65536 - 1023, 65536, 65537)
"""


def test_more_shared_memory_than_there_is(on_hip: Any) -> None:
    run = on_hip(SIZES + "answer([hip.launch(f, 1, 64, size) for size in sizes]); os._exit(0)")
    assert run.answer == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("how", ["hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamQuery", "hipFree"])
def test_the_queue_dies_and_the_runtime_ends_the_process(on_hip: Any, how: str) -> None:
    arguments = "" if how == "hipDeviceSynchronize" else ", None"
    snippet = SIZES + f"hip.launch(f, 1, 64, 65536); answer(0); hip.code('{how}'{arguments})"
    run = on_hip(snippet, status=-6)
    assert "HSA_STATUS_ERROR_INVALID_ALLOCATION" in run.stderr
    assert [row["result"] for row in run.launches] == [0]


def test_other_refusals(on_hip: Any) -> None:
    run = on_hip(
        """
f = hip.function(image([Kernel("k", max_threads=256, arguments=[8])]), "k")
one = hip.arguments(1)
call = lambda *sizes, args=one, extra=None: hip.code("hipModuleLaunchKernel", f, *sizes, None, args, extra)
answer([call(1, 1, 1, 256, 1, 1, 0), call(1, 1, 1, 257, 1, 1, 0), call(1, 1, 1, 1025, 1, 1, 0),
        call(0, 1, 1, 64, 1, 1, 0), call(1, 1, 1, 0, 1, 1, 0), call(2**31 - 1, 1, 1, 64, 1, 1, 0),
        call(1, 65537, 1, 64, 1, 1, 0), call(1, 1, 1, 64, 1, 1, 0, extra=one), call(1, 1, 1, 64, 1, 1, 0, args=None),
        hip.launch(None, 1, 64), hip.launch(P(64), 1, 64), hip.launch(f, 1, 64, 0, P(12345))])
"""
    )
    assert run.answer == [0, 719, 1, 1, 9, 9, 1, 1, 1, 400, 400, 1]


def test_the_last_error(on_hip: Any, version: int) -> None:
    """Each call sets it; from 7 on only those that fail."""
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


COSTS = "- {kernel: k, block_us: 100, spread: 0, gain: 1}\n- {kernel: wide, block_us: 1000, spread: 0, gain: 1}\n"
KERNELS = """
code = image([Kernel("k"), Kernel("wide", vgprs=256, agprs=256)])
k, wide = (hip.function(code, name) for name in ("k", "wide"))
"""


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


def test_waits_order_streams_and_events_measure(on_hip: Any) -> None:
    run = on_hip(
        KERNELS
        + """
a, b = (hip.new("hipStreamCreateWithFlags", 1) for _ in "ab")
start, mid, end = (hip.new("hipEventCreateWithFlags", 0) for _ in range(3))
hip.hipEventRecord(start, a)
hip.launch(wide, 1, 64, 0, a); hip.hipEventRecord(mid, a)
hip.hipStreamWaitEvent(b, mid, 0); hip.launch(k, 1, 64, 0, b); hip.hipEventRecord(end, b)
early = [hip.code("hipEventQuery", end), hip.code("hipStreamQuery", b)]
hip.hipEventSynchronize(end)
ms = C.c_float(); hip.hipEventElapsedTime(C.byref(ms), mid, end)
answer([early, hip.code("hipEventQuery", end), ms.value * 1000])
""",
        costs=COSTS,
    )
    assert run.answer[:2] == [[600, 600], 0]
    kernel = run.kernel("k")
    assert run.answer[2] == pytest.approx(kernel["end_us"] - kernel["start_us"], abs=0.01)
    assert kernel["start_us"] >= run.kernel("wide")["end_us"]


def test_captured_launches_become_a_graph(on_hip: Any) -> None:
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
"""
    )
    assert run.answer[:2] == [1, 900]
    assert [(row["entry"], row["captured"]) for row in run.launches] == [
        ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True),
        ("hipGraphLaunch", False),
    ]  # fmt: skip
