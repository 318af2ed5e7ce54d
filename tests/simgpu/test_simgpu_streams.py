"""Streams, events, default streams and what captures forbid."""

from __future__ import annotations

from typing import Any

import pytest

UNSUPPORTED, INVALIDATED, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED = 900, 901, 903, 904, 905, 906, 907

COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us
SETUP = """
d = Driver()
m = d.module(cubin([Kernel(n, 64) for n in "abc"]))
a, b, c = (d.function(m, n) for n in "abc")
s, t, blocking, e, f = d.stream(), d.stream(), d.stream(flags=0), d.event(), d.event()
def begin(s, mode=0): d.cuStreamBeginCapture_v2(s, mode)
def end(s):
    graph = P()
    return d.try_("cuStreamEndCapture", s, C.byref(graph)), graph
def relaxed():
    mode = C.c_int(2); d.cuThreadExchangeStreamCaptureMode(C.byref(mode))
"""


@pytest.mark.parametrize(
    ("work", "ordered"),
    [
        pytest.param("d.launch(a, stream=s); d.launch(b, stream=s)", True, id="one stream"),
        pytest.param("d.launch(a, stream=s); d.launch(b, stream=t)", False, id="two streams"),
        pytest.param("d.launch(a, stream=s); d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0); "
                     "d.launch(b, stream=t)", True, id="a wait for an event"),
        pytest.param("d.launch(a, stream=blocking); d.launch(b)", True, id="the legacy stream after a blocking one"),
        pytest.param("d.launch(a); d.launch(b, stream=blocking)", True, id="a blocking stream after the legacy one"),
        pytest.param("d.launch(a, stream=s); d.launch(b)", False, id="the legacy stream and a non-blocking one"),
        pytest.param("d.launch(a); d.launch(b, stream=s)", False, id="a non-blocking stream and the legacy one"),
        pytest.param("d.launch(a, stream=blocking); d.launch(b, stream=P(1))", True, id="the legacy one by its handle"),
        pytest.param("d.launch(a, stream=blocking); d.launch(b, stream=P(2))", False,
                     id="the per-thread stream is one more blocking stream"),
        pytest.param("d.launch(a, entry='cuLaunchKernel_ptsz'); d.launch(b)", True,
                     id="_ptsz means the per-thread stream"),
        pytest.param("begin(s); d.launch(a, stream=s); d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0); "
                     "d.launch(b, stream=t); d.cuEventRecord(f, t); d.cuStreamWaitEvent(s, f, 0); "
                     "d.cuGraphLaunch(d.instantiate(end(s)[1]), s)", True, id="a capture across streams"),
    ],
)  # fmt: skip
def test_order(simulate: Any, work: str, ordered: bool) -> None:
    run = simulate(SETUP + work, costs=COSTS)
    assert (run.kernel("b")["start_us"] >= run.kernel("a")["end_us"]) is ordered


def test_events_measure_virtual_time(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
early = d.try_("cuEventElapsedTime", C.byref(C.c_float()), e, f)
d.cuEventRecord(e, s); d.launch(a, stream=s); d.cuEventRecord(f, s)
waiting = d.try_("cuEventQuery", f), d.try_("cuEventElapsedTime", C.byref(C.c_float()), e, f)
d.cuEventSynchronize(f)
answer([early, waiting, d.try_("cuEventQuery", f), d.elapsed_us(e, f)])
""",
        costs=COSTS,
    )
    assert run.answer == [400, [600, 600], 0, 102]  # the launch is queued 2 us after the first record


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
        pytest.param("end(s)[0], begin(blocking), d.launch(a), end(blocking)[0]", [0, None, IMPLICIT, INVALIDATED],
                     id="the legacy stream may not depend on it"),
        pytest.param("end(s)[0], relaxed(), begin(blocking, 2), d.try_('cuStreamIsCapturing', None, "
                     "C.byref(C.c_int())), d.launch(b, stream=blocking)", [0, None, None, IMPLICIT, 0],
                     id="whether the legacy stream captures is asked at no cost"),
        pytest.param("end(s)[0], relaxed(), begin(blocking, 2), d.try_('cuStreamGetPriority', None, "
                     "C.byref(C.c_int())), d.launch(b, stream=blocking), end(blocking)[0]",
                     [0, None, None, IMPLICIT, INVALIDATED, INVALIDATED], id="its priority is not"),
    ],
)  # fmt: skip
def test_what_a_capture_forbids(simulate: Any, snippet: Any, expected: Any) -> None:
    run = simulate(SETUP + f"begin(s); answer([{snippet}])")
    assert run.answer == expected


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
d.launch(a, 500, stream=s); d.cuStreamDestroy_v2(s); d.cuEventDestroy_v2(e)
answer([d.try_("cuStreamQuery", s), d.launch(a, stream=s), d.try_("cuEventQuery", e), d.stream().value == s.value])
"""
    )
    assert run.answer == [400, 400, 400, True]
    assert run.kernel("a")["blocks"] == 500
