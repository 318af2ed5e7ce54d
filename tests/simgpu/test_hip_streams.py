"""Streams, events, memory and captures of HIP."""

from __future__ import annotations

from typing import Any

import pytest

COSTS = "- {kernel: k, block_us: 100, spread: 0, gain: 1}\n- {kernel: wide, block_us: 1000, spread: 0, gain: 1}\n"

KERNELS = """
image = code_object([Kernel("k"), Kernel("wide", vgprs=256, agprs=256)])
k, wide = (hip.function(image, name) for name in ("k", "wide"))
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


def test_per_thread_default_streams(on_hip: Any) -> None:
    run = on_hip(
        """
host, = hip.register(code_object([Kernel("k")]), "k")
args = hip.arguments()
hip.hipLaunchKernel(host, Dim3(1, 1, 1), Dim3(64, 1, 1), args, C.c_size_t(0), None)
hip.hipLaunchKernel_spt(host, Dim3(1, 1, 1), Dim3(64, 1, 1), args, C.c_size_t(0), None)
hip.hipLaunchKernel(host, Dim3(1, 1, 1), Dim3(64, 1, 1), args, C.c_size_t(0), P(2))
hip.hipStreamSynchronize_spt(None); hip.hipEventRecord_spt(hip.new("hipEventCreate"), None)
answer(0)
"""
    )
    assert [row["stream"] for row in run.launches] == ["0x1", "0x2", "0x2"]


def test_memory(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
class Attributes(C.Structure):
    _fields_ = [("type", C.c_int), ("device", C.c_int), ("d", P), ("h", P), ("managed", C.c_int), ("flags", C.c_uint)]
def attributes(pointer):
    made = Attributes(); code = hip.code("hipPointerGetAttributes", C.byref(made), pointer)
    return [code, made.type, made.managed]
size = C.c_size_t(16)
d, h, m = hip.new("hipMalloc", size), hip.new("hipHostMalloc", size, 0), hip.new("hipMallocManaged", size, 1)
text, back = C.create_string_buffer(b"0123456789abcde"), C.create_string_buffer(16)
hip.hipMemcpy(d, text, size, 1)
hip.hipMemset(P(d.value + 2), ord("x"), C.c_size_t(3))
hip.hipMemcpyAsync(h, d, size, 4, None); hip.hipMemcpyDtoH(back, h, size)
s = hip.new("hipStreamCreate"); hip.hipMemcpyAsync_spt(m, d, size, 3, None)
free, total = C.c_size_t(), C.c_size_t(); hip.hipMemGetInfo(C.byref(free), C.byref(total))
none = hip.new("hipMalloc", C.c_size_t(0))
codes = [hip.code("hipMemcpy", d, text, size, 9), hip.code("hipMemcpy", d, text, C.c_size_t(17), 1),
         hip.code("hipFree", None)]
answer([back.value.decode(), attributes(d), attributes(h), attributes(m), attributes(text)[0], none.value, codes,
        total.value >> 30, total.value - free.value,
        hip.code("hipFree", d), hip.code("hipHostFree", h), hip.code("hipFree", d)])
""",
        version,
    )
    host, device, managed = (0, 1, 4) if version == 5 else (1, 2, 3)
    assert run.answer[0] == "01xxx56789abcde"
    assert run.answer[1:4] == [[0, device, 0], [0, host, 0], [0, managed, 1]]
    assert run.answer[4:7] == [1 if version == 5 else 0, None, [21, 1, 0]]
    assert run.answer[7:] == [64, 16, 0, 0, 1]


def test_variables(on_hip: Any) -> None:
    run = on_hip("""
image = bundle({"gfx90a": code_object([Kernel("k")], variables={"v": b"abcdefgh", "w": bytes(4)})})
module = hip.module(image)
address, size = P(), C.c_size_t()
hip.hipModuleGetGlobal(C.byref(address), C.byref(size), module, b"v")
first = [size.value, C.string_at(address, 8).decode()]
hip.register(image, "k")
symbol, name = C.create_string_buffer(16), C.c_char_p(b"v")
hip.library["__hipRegisterVar"](hip.binary, symbol, name, name, 0, C.c_size_t(8), 0, 0)
hip.hipMemcpyToSymbol(symbol, b"XY", C.c_size_t(2), C.c_size_t(3), 1)
back = C.create_string_buffer(9); hip.hipMemcpyFromSymbol(back, symbol, C.c_size_t(8), C.c_size_t(0), 2)
bytes_ = C.c_size_t(); hip.hipGetSymbolSize(C.byref(bytes_), symbol)
answer([first, back.value.decode(), bytes_.value, hip.code("hipGetSymbolSize", C.byref(bytes_), P(8)),
        hip.code("hipMemcpyToSymbol", symbol, b"X", C.c_size_t(1), C.c_size_t(8), 1),
        hip.code("hipModuleGetGlobal", C.byref(address), C.byref(size), module, b"no")])
""")
    assert run.answer == [[8, "abcdefgh"], "abcXYfgh", 8, 13, 1, 500]


def test_captured_launches_become_a_graph(on_hip: Any, version: int) -> None:
    run = on_hip(
        KERNELS
        + """
a, b = (hip.new("hipStreamCreateWithFlags", 1) for _ in "ab")
fork, join = hip.new("hipEventCreate"), hip.new("hipEventCreate")
status, id_ = C.c_int(), C.c_ulonglong()
hip.hipStreamBeginCapture(a, 0)
hip.launch(k, 1, 64, 256, a); hip.hipEventRecord(fork, a); hip.hipStreamWaitEvent(b, fork, 0)
hip.launch(wide, 1, 64, 0, b); hip.hipEventRecord(join, b); hip.hipStreamWaitEvent(a, join, 0)
hip.hipStreamIsCapturing(b, C.byref(status)); capturing = status.value
hip.hipStreamGetCaptureInfo(a, C.byref(status), C.byref(id_))
forbidden = hip.code("hipStreamSynchronize", a)
status2 = status.value
graph = P(); code = hip.code("hipStreamEndCapture", a, C.byref(graph))
b, graph, made = hip.new("hipStreamCreateWithFlags", 1), P(), P()
hip.hipStreamBeginCapture(b, 0); hip.launch(k, 1, 64, 256, b); hip.hipStreamEndCapture(b, C.byref(graph))
hip.hipGraphInstantiate(C.byref(made), graph, None, None, C.c_size_t(0))
hip.hipGraphLaunch(made, b); hip.hipDeviceSynchronize()
answer([capturing, status2, id_.value > 0, forbidden, code])
""",
        version,
    )
    assert run.answer[:3] == [1, 1, True]
    assert run.answer[3] == 900
    assert [(row["entry"], row["captured"]) for row in run.launches] == [
        ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True), ("hipModuleLaunchKernel", True),
        ("hipGraphLaunch", False),
    ]  # fmt: skip


def test_libraries(on_hip: Any) -> None:
    run = on_hip("""
image = code_object([Kernel("k"), Kernel("other")])
library = P(); hip.hipLibraryLoadData(C.byref(library), image, None, None, 0, None, None, 0)
kernel = hip.new("hipLibraryGetKernel", library, b"other")
name = C.c_char_p(); hip.hipKernelGetName(C.byref(name), kernel)
answer([name.value.decode(), hip.launch(kernel, 2, 64), hip.code("hipLibraryUnload", library)])
""")
    assert run.answer == ["other", 0, 0]
    assert run.launches[0]["kernel"] == "other"
