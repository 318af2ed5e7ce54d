"""Copies, host functions and the host's waits take their virtual time: on engines, beside kernels, in order."""

from __future__ import annotations

from typing import Any

import pytest

# One block of 32 threads alone on its multiprocessor: 100 us.
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'
CALL_US = 2  # every call
LATENCY_US = 1  # every copy
FUNCTION_US = 10  # every host function
SETUP = """
d = Driver()
kernel = d.kernel(cubin([Kernel("k", 64)], 10 * d.get("cuDeviceGetAttribute", 75, 0)), "k")
s, t, idle = d.stream(), d.stream(), d.stream()
def locked(bytes):
    out = P(); d.cuMemAllocHost_v2(C.byref(out), bytes); return out
def device(bytes):
    out = P(); d.cuMemAlloc_v2(C.byref(out), bytes); return out
def mark(stream):
    event = d.event(); d.cuEventRecord(event, stream); return event
def now():
    return mark(idle)  # nothing else is on this stream: the host's clock
def us(first, last):
    d.cuCtxSynchronize(); return d.elapsed_us(first, last)
MB = 1000000
"""


def expected(megabytes: float, gigabytes_per_second: float) -> float:
    return LATENCY_US + megabytes * 1000 / gigabytes_per_second


@pytest.mark.parametrize(("gpu", "gigabytes_per_second"), [("h200", 55), ("a100", 28)])
def test_a_copy_takes_the_bandwidth_of_the_link(simulate: Any, gpu: str, gigabytes_per_second: float) -> None:
    run = simulate(
        SETUP
        + """
here, there = locked(10 * MB), device(10 * MB)
a = mark(s); d.cuMemcpyHtoDAsync_v2(there, here, 10 * MB, s)
b = mark(s); d.cuMemcpyDtoHAsync_v2(here, there, 5 * MB, s)
c = mark(s); d.cuMemcpyAsync(there, here, 5 * MB, s)
e = mark(s); d.cuMemcpyDtoDAsync_v2(there, P(there.value + 5 * MB), 5 * MB, s); f = mark(s)
answer([us(a, b), us(b, c), us(c, e), us(e, f)])
""",
        gpu=gpu,
    )
    ten, five = expected(10, gigabytes_per_second), expected(5, gigabytes_per_second)
    arrival = CALL_US  # the first copy is called after its mark
    assert run.answer == pytest.approx([ten + arrival, five, five, LATENCY_US + 5], abs=0.01)


def test_copies_of_one_direction_take_turns_and_those_of_two_do_not(simulate: Any) -> None:
    """In the order in which they become eligible; the priority of the stream does not matter."""
    run = simulate(
        SETUP
        + """
here, there = locked(11 * MB), device(11 * MB)
first, greatest, back = d.stream(), d.stream(-5), d.stream()
d.launch(kernel, stream=s); gate = mark(s)
for stream in (t, first, greatest, back):
    d.cuStreamWaitEvent(stream, gate, 0)
d.cuMemcpyHtoDAsync_v2(there, here, 11 * MB, first)
d.cuMemcpyHtoDAsync_v2(there, here, 11 * MB, greatest)
d.cuMemcpyDtoHAsync_v2(here, there, 11 * MB, back)
d.launch(kernel, stream=t)
ends = [mark(stream) for stream in (first, greatest, back, t)]
answer([us(gate, end) for end in ends])
""",
        gpu="h200",
        costs=COSTS,
    )
    one = expected(11, 55)
    assert run.answer == pytest.approx([one, 2 * one, one, 100], abs=0.01)


CALLED = 3 * CALL_US  # with the mark behind it: to make it, and to record


@pytest.mark.parametrize(
    ("call", "took"),
    [
        ("cuMemcpyDtoH_v2(here, there, MB)", CALLED + expected(1, 55)),
        ("cuMemcpyHtoD_v2(there, here, MB)", CALLED + expected(1, 55)),
        ("cuMemcpyDtoHAsync_v2(here, there, MB, s)", CALLED),
        ("cuMemcpyHtoDAsync_v2(there, here, MB, s)", CALLED),
        ("cuMemcpyDtoHAsync_v2(pageable, there, MB, s)", CALLED + expected(1, 10)),
        ("cuMemcpyHtoDAsync_v2(there, pageable, MB, s)", CALLED + expected(1, 10)),
        ("cuMemcpyHtoDAsync_v2(there, pageable, 65536, s)", CALLED),
    ],
)
def test_how_long_the_host_waits(simulate: Any, call: str, took: float) -> None:
    """As the reference says: for copies to pageable memory always, for copies from it where they must be staged."""
    run = simulate(
        SETUP
        + f"""
here, there, pageable = locked(MB), device(MB), (C.c_char * MB)()
a = now(); d.{call}; b = now(); answer(us(a, b))
""",
        gpu="h200",
    )
    assert run.answer == pytest.approx(took, abs=0.01)


def test_a_host_function_holds_up_its_stream_and_the_next_function(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
seen = []
function = C.CFUNCTYPE(None, P)(seen.append)
d.launch(kernel, stream=s); a = mark(s); d.cuStreamWaitEvent(t, a, 0)
d.cuLaunchHostFunc(s, function, P(1)); d.cuLaunchHostFunc(t, function, P(2))
b, c = mark(s), mark(t)
host = now()
answer([us(a, b), us(a, c), us(host, a) > 0, seen])
""",
        costs=COSTS,
    )
    assert run.answer[:2] == pytest.approx([FUNCTION_US, 2 * FUNCTION_US], abs=0.01)
    assert run.answer[2:] == [True, [1, 2]]


def test_the_signal_of_another_stream_takes_what_the_costs_say(simulate: Any) -> None:
    snippet = (
        SETUP
        + """
d.launch(kernel, stream=s); a = mark(s)
d.cuStreamWaitEvent(t, a, 0); d.launch(kernel, stream=t); b = mark(t)
d.cuStreamWaitEvent(s, a, 0); c = mark(s)
answer([us(a, b), us(a, c)])
"""
    )
    assert simulate(snippet, costs=COSTS).answer == [100, 0]
    assert simulate(snippet, costs=COSTS + "- {event_us: 2.5}\n").answer == [102.5, 0]
