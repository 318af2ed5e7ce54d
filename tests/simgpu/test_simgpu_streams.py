"""Streams, events, default streams, capture and graphs."""

from __future__ import annotations

from typing import Any

import pytest

UNSUPPORTED, INVALIDATED, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED = 900, 901, 903, 904, 905, 906, 907

COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us
SETUP = """
d = Driver()
m = d.module(cubin([Kernel(n, 64) for n in "abc"]))
a, b, c = (d.function(m, n) for n in "abc")
def begin(s, mode=0): d.cuStreamBeginCapture_v2(s, mode)
def end(s):
    graph = P()
    return d.try_("cuStreamEndCapture", s, C.byref(graph)), graph
def count(graph):
    n = C.c_size_t(); d.cuGraphGetNodes(graph, None, C.byref(n)); return n.value
"""


def starts(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["start_us"] for row in run.timeline}


def ends(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["end_us"] for row in run.timeline}


def test_one_stream_is_in_order_and_two_overlap(simulate: Any) -> None:
    run = simulate(
        SETUP + "s, t = d.stream(), d.stream(); d.launch(a, stream=s); d.launch(b, stream=s); d.launch(c, stream=t)",
        costs=COSTS,
    )
    assert starts(run)["b"] == ends(run)["a"]
    assert starts(run)["c"] < ends(run)["a"]


def test_a_wait_orders_two_streams(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
s, t, e = d.stream(), d.stream(), d.event()
d.launch(a, stream=s); d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0); d.launch(b, stream=t)
""",
        costs=COSTS,
    )
    assert starts(run)["b"] == ends(run)["a"]


@pytest.mark.parametrize(
    ("flags", "null", "ordered"),
    [
        pytest.param(0, "None", True, id="a blocking stream and the legacy stream"),
        pytest.param(1, "None", False, id="a non-blocking stream and the legacy stream"),
        pytest.param(0, "P(1)", True, id="the legacy stream by its handle"),
        pytest.param(0, "P(2)", False, id="the per-thread stream is one more blocking stream"),
    ],
)
def test_legacy_stream_order(simulate: Any, flags: Any, null: Any, ordered: Any) -> None:
    run = simulate(
        SETUP
        + f"s = d.stream(flags={flags}); d.launch(a, stream=s); d.launch(b, stream={null}); d.launch(c, stream=s)",
        costs=COSTS,
    )
    assert (starts(run)["b"] >= ends(run)["a"]) is ordered
    assert (starts(run)["c"] >= ends(run)["b"]) is ordered


def test_ptsz_form_uses_the_threads_own_stream(simulate: Any) -> None:
    run = simulate(SETUP + "d.launch(a, entry='cuLaunchKernel_ptsz'); d.launch(b)", costs=COSTS)
    assert [row["stream"] for row in run.launches] == ["0x2", "0x1"]
    assert starts(run)["b"] >= ends(run)["a"]


def test_events_measure_virtual_time(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
s, e, f = d.stream(), d.event(), d.event()
early = d.try_("cuEventElapsedTime", C.byref(C.c_float()), e, f)
d.cuEventRecord(e, s); d.launch(a, stream=s); d.cuEventRecord(f, s)
waiting = d.try_("cuEventQuery", f), d.try_("cuEventElapsedTime", C.byref(C.c_float()), e, f)
d.cuEventSynchronize(f)
answer([early, waiting, d.try_("cuEventQuery", f), d.elapsed_us(e, f)])
""",
        costs=COSTS,
    )
    assert run.answer == [400, [600, 600], 0, 102]  # the launch is queued 2 us after the first record


def test_priorities_are_clamped_and_readable(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
low, high = C.c_int(), C.c_int()
d.cuCtxGetStreamPriorityRange(C.byref(low), C.byref(high))
def priority(s):
    value = C.c_int(); d.cuStreamGetPriority(s, C.byref(value)); return value.value
s = d.stream(-99); t = d.stream(7)
value = (C.c_int * 16)(-2); d.cuStreamSetAttribute(t, 8, value)
answer([low.value, high.value, priority(s), priority(t)])
"""
    )
    assert run.answer == [0, -5, -5, -2]


def test_capture_makes_a_graph_that_runs(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
s = d.stream()
begin(s)
d.launch(a, 7, 64, stream=s); d.launch(b, stream=s)
code, graph = end(s)
exe = d.new("cuGraphInstantiateWithFlags", graph, 0)
before = count(graph)
d.cuGraphDestroy(graph)
d.cuGraphLaunch(exe, s); d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([code, before])
""",
        costs=COSTS,
    )
    assert run.answer == [0, 2]
    assert [row["kernel"] for row in run.timeline] == ["a", "b", "a", "b"]
    assert run.timeline[1]["start_us"] == run.timeline[0]["end_us"]
    flags = [(row["captured"], row["graph"], row["blocks"]) for row in run.launches]
    assert flags == [(True, False, 7), (True, False, 1)] + [(False, True, 7), (False, True, 1)] * 2


def test_capture_across_streams(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
s, t, e, f = d.stream(), d.stream(), d.event(), d.event()
begin(s)
d.launch(a, stream=s); d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0)
d.launch(b, stream=t); d.launch(c, stream=s); d.cuEventRecord(f, t); d.cuStreamWaitEvent(s, f, 0)
code, graph = end(s)
exe = d.new("cuGraphInstantiateWithFlags", graph, 0)
d.cuGraphLaunch(exe, s)
answer([code, count(graph)])
""",
        costs=COSTS,
    )
    assert run.answer == [0, 3]
    assert starts(run)["b"] == starts(run)["c"] == ends(run)["a"]


@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        pytest.param("d.try_('cuStreamSynchronize', s), end(s)[0]", [UNSUPPORTED, INVALIDATED], id="synchronise it"),
        pytest.param("d.try_('cuStreamQuery', s), end(s)[0]", [UNSUPPORTED, INVALIDATED], id="query it"),
        pytest.param("d.try_('cuCtxSynchronize'), end(s)[0]", [UNSUPPORTED, INVALIDATED], id="synchronise all"),
        pytest.param("d.try_('cuMemAlloc_v2', C.byref(P()), 64), end(s)[0]", [UNSUPPORTED, INVALIDATED], id="allocate"),
        pytest.param("d.launch(d.kernel(cubin([Kernel('k')]), 'k'), stream=s), end(s)[0]", [0, 0], id="load a module"),
        pytest.param("d.try_('cuLibraryLoadData', C.byref(P()), cubin([Kernel('k')]), None, None, 0, None, None, 0), "
                     "end(s)[0]", [0, 0], id="load a library"),
        pytest.param("d.launch(a), end(s)[0]", [0, 0], id="a non-blocking capture leaves the legacy stream alone"),
        pytest.param("end(t)[0], end(s)[0]", [401, 0], id="end another stream"),
        pytest.param("d.try_('cuStreamBeginCapture_v2', s, 0), end(s)[0]", [401, 0], id="begin twice"),
        pytest.param("d.cuEventRecord(e, s), d.try_('cuEventQuery', e)", [None, CAPTURED], id="ask a captured event"),
        pytest.param("d.cuEventRecord(e, s), d.cuStreamWaitEvent(t, e, 0), d.launch(b, stream=t), end(s)[0]",
                     [None, None, 0, UNJOINED], id="not joined"),
        pytest.param("d.cuEventRecord(e, s), d.cuStreamWaitEvent(t, e, 0), end(t)[0]", [None, None, UNMATCHED],
                     id="ended by the stream that joined"),
        pytest.param("d.cuEventRecord(e, t), d.try_('cuStreamWaitEvent', s, e, 0)", [None, ISOLATION],
                     id="waits for work outside"),
        pytest.param("d.launch(a, 1, 32, 49153, s), d.launch(a, stream=s), end(s)[0]", [1, INVALIDATED, INVALIDATED],
                     id="a launch that is refused"),
        pytest.param("d.launch(a, 999, 1024, 0, s, entry='cuLaunchCooperativeKernel'), end(s)[0]", [720, INVALIDATED],
                     id="a cooperative launch that is refused"),
    ],
)  # fmt: skip
def test_what_a_capture_forbids(simulate: Any, snippet: Any, expected: Any) -> None:
    run = simulate(SETUP + f"s, t, e = d.stream(), d.stream(), d.event(); begin(s); answer([{snippet}])")
    assert run.answer == expected


def test_the_legacy_stream_may_not_depend_on_a_capture(simulate: Any) -> None:
    run = simulate(SETUP + "s = d.stream(flags=0); begin(s); answer([d.launch(a), end(s)[0]])")
    assert run.answer == [IMPLICIT, INVALIDATED]


def test_questions_about_the_legacy_stream_while_a_blocking_one_captures(simulate: Any) -> None:
    """Whether it captures is asked at no cost; its priority is not."""
    run = simulate(
        SETUP
        + """
s = d.stream(flags=0)
mode = C.c_int(2); d.cuThreadExchangeStreamCaptureMode(C.byref(mode))
begin(s, 2)
first = [d.try_("cuStreamIsCapturing", None, C.byref(C.c_int())), d.launch(b, stream=s)]
second = [d.try_("cuStreamGetPriority", None, C.byref(C.c_int())), d.launch(b, stream=s), end(s)[0]]
answer([first, second])
"""
    )
    assert run.answer == [[IMPLICIT, 0], [IMPLICIT, INVALIDATED, INVALIDATED]]


def test_the_priority_of_a_stream_may_change(simulate: Any) -> None:
    """For later launches, on every kind of stream; out of range is clamped; copied with the other attributes."""
    run = simulate(
        SETUP
        + """
def set_(stream, priority, entry="cuStreamSetAttribute"):
    return d.try_(entry, stream, 8, (C.c_int * 16)(priority))
def get(stream):
    value = (C.c_int * 16)(); d.cuStreamGetAttribute(stream, 8, value)
    return [value[0], d.ask("cuStreamGetPriority", stream)]
s, t = d.stream(), d.stream()
seen = []
for stream in (s, None, P(2)):
    d.launch(a, stream=stream)
    seen.append([set_(stream, -6), get(stream)]); d.launch(a, stream=stream)
    seen.append([set_(stream, 1), get(stream)])
set_(s, -3); d.cuStreamCopyAttributes(t, s); d.launch(b, stream=t)
set_(None, -2, "cuStreamSetAttribute_ptsz"); d.launch(c, entry="cuLaunchKernel_ptsz")
answer([seen, get(t), get(None), d.try_("cuStreamSetAttribute", s, 99, (C.c_int * 16)())])
"""
    )
    assert run.answer == [[[0, [-5, -5]], [0, [0, 0]]] * 3, [-3, -3], [0, 0], 1]
    assert [row["priority"] for row in run.launches] == [0, -5] * 3 + [-3, -2]


def test_the_priority_of_a_stream_is_fixed_before_driver_12(simulate: Any) -> None:
    run = simulate(
        SETUP
        + "s = d.stream(-2); answer([d.try_('cuStreamSetAttribute', s, 8, (C.c_int * 16)(-5)), d.launch(a, stream=s)])",
        SIMGPU_DRIVER_VERSION="11080",
    )
    assert run.answer == [1, 0]
    assert run.launches[0]["priority"] == -2


def test_destroyed_streams_and_events_are_bad_handles(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
s, e = d.stream(), d.event()
d.launch(a, 500, stream=s); d.cuStreamDestroy_v2(s); d.cuEventDestroy_v2(e)
answer([d.try_("cuStreamQuery", s), d.launch(a, stream=s), d.try_("cuEventQuery", e), d.stream().value == s.value])
"""
    )
    assert run.answer == [400, 400, 400, True]
    assert run.kernel("a")["blocks"] == 500
