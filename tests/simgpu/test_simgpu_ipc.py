"""Events of other processes, external events in captures, and captures into a graph of the program's."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, ILLEGAL_STATE, UNJOINED, INVALIDATED = 1, 201, 400, 401, 904, 901
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us

IPC = """
class Handle(C.Structure): _fields_ = [("bytes", C.c_char * 64)]
opener = d.lib.cuIpcOpenEventHandle; opener.argtypes = [C.c_void_p, Handle]
handle, opened, event = Handle(), P(), P()
"""


def test_an_event_of_another_process_is_reached(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
"""
        + IPC
        + """
import subprocess
if len(sys.argv) > 1:
    d.cuEventCreate(C.byref(event), 6)
    d.cuIpcGetEventHandle(C.byref(handle), event)
    print(bytes(handle).hex()); sys.exit()
other = subprocess.run([sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2], "export"],
                       capture_output=True, text=True, check=True).stdout
C.memmove(C.byref(handle), bytes.fromhex(other), 64)
code = opener(C.byref(opened), handle)
s, timed = d.stream(), d.event()
d.cuEventRecord(timed, s)
elapsed = d.try_("cuEventElapsedTime", C.byref(C.c_float()), timed, opened)
answer([code, d.try_("cuEventQuery", opened), d.try_("cuStreamWaitEvent", s, opened, 0),
        d.try_("cuEventRecord", opened, s), d.try_("cuEventSynchronize", opened), elapsed,
        d.try_("cuEventDestroy_v2", opened), d.get("cuDeviceGetAttribute", 125, 0)])
"""
    )
    assert run.answer == [0, 0, 0, 0, 0, INVALID_HANDLE, 0, 1]


def test_what_is_refused_of_events_of_other_processes(simulate: Any) -> None:
    run = simulate(
        "d = Driver()\n"
        + IPC
        + """
plain = d.event()
codes = [d.try_("cuEventCreate", C.byref(event), 4), d.try_("cuIpcGetEventHandle", C.byref(handle), plain),
         d.try_("cuIpcGetEventHandle", C.byref(handle), P(64)), opener(C.byref(opened), handle)]
d.cuEventCreate(C.byref(event), 7)
codes += [d.try_("cuIpcGetEventHandle", None, event), d.try_("cuIpcGetEventHandle", C.byref(handle), event),
          opener(C.byref(opened), handle), opener(None, handle)]
answer(codes)
"""
    )
    assert run.answer == [
        *[INVALID_VALUE, INVALID_VALUE, INVALID_HANDLE, INVALID_VALUE],
        *[INVALID_VALUE, 0, INVALID_CONTEXT, INVALID_VALUE],
    ]


SETUP = """
d = Driver()
m = d.module(cubin([Kernel(n, 64) for n in "abc"]))
a, b, c = (d.function(m, n) for n in "abc")
s, t, e = d.stream(), d.stream(), d.event()
def end(s):
    graph = P()
    return d.try_("cuStreamEndCapture", s, C.byref(graph)), graph
def kinds(graph): return [d.ask("cuGraphNodeGetType", n) for n in d.nodes_of(graph)]
"""


def test_external_events_are_nodes_of_a_capture(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
f = d.event()
outside = [d.try_("cuEventRecordWithFlags", e, s, 1), d.try_("cuStreamWaitEvent", s, e, 1)]
d.cuStreamBeginCapture_v2(s, 0)
d.cuStreamWaitEvent(s, e, 1); d.launch(a, stream=s); d.cuEventRecordWithFlags(f, s, 1)
code, graph = end(s)
found = d.nodes_of(graph)
events = [d.ask("cuGraphEventWaitNodeGetEvent", found[0], P).value == e.value,
          d.ask("cuGraphEventRecordNodeGetEvent", found[2], P).value == f.value]
exe = d.instantiate(graph)
d.launch(b, stream=t); d.cuEventRecord(e, t)
d.cuGraphLaunch(exe, s)
d.cuStreamWaitEvent(t, f, 0); d.launch(c, stream=t)
d.cuCtxSynchronize()
answer([outside, code, kinds(graph), events])
""",
        costs=COSTS,
    )
    assert run.answer == [[INVALID_VALUE] * 2, 0, [6, 0, 7], [True, True]]
    assert run.kernel("a")["start_us"] == run.kernel("b")["end_us"]
    assert run.kernel("c")["start_us"] == run.kernel("a")["end_us"]


def test_an_external_wait_is_a_node_although_the_event_was_captured(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s); d.cuEventRecord(e, s); d.cuStreamWaitEvent(s, e, 1); d.launch(b, stream=s)
answer(kinds(end(s)[1]))
"""
    )
    assert run.answer == [0, 6, 0]


@pytest.mark.parametrize("form", ["", "_ptsz"])
def test_a_capture_is_added_to_a_graph(simulate: Any, form: Any) -> None:
    run = simulate(
        SETUP
        + f"form = {form!r}"
        + """
graph = d.new("cuGraphCreate", 0)
first, apart = d.add_kernel(graph, a), d.add_kernel(graph, c, 2)
to = "cuStreamBeginCaptureToGraph" + form
d.__getattr__(to)(s, graph, nodes([first]), None, 1, 0)
busy = [d.try_(to, t, graph, None, None, 0, 0), d.try_("cuGraphDestroy", graph)]
d.launch(b, stream=s)
code, out = end(s)
d.cuGraphLaunch(d.instantiate(graph), s); d.cuStreamSynchronize(s)
answer([busy, code, out.value == graph.value, kinds(graph), d.try_("cuGraphDestroy", graph)])
""",
        costs=COSTS,
    )
    assert run.answer == [[INVALID_VALUE] * 2, 0, True, [0, 0, 0], 0]
    assert run.kernel("b")["start_us"] == run.kernel("a")["end_us"]
    assert run.kernel("c")["start_us"] == run.kernel("a")["start_us"]


def test_a_graph_stays_the_program_s_when_its_capture_fails(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
graph, other = d.new("cuGraphCreate", 0), d.new("cuGraphCreate", 0)
stranger = d.add_kernel(other, a)
bad = [d.try_("cuStreamBeginCaptureToGraph", s, graph, nodes([stranger]), None, 1, 0),
       d.try_("cuStreamBeginCaptureToGraph", s, P(64), None, None, 0, 0),
       d.try_("cuStreamBeginCaptureToGraph", s, graph, None, None, 1, 0),
       d.try_("cuStreamBeginCaptureToGraph", s, graph, None, None, 0, 3)]
d.cuStreamBeginCaptureToGraph(s, graph, None, None, 0, 0)
bad.append(d.try_("cuStreamBeginCaptureToGraph", s, other, None, None, 0, 0))
d.launch(a, stream=s)
d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0); d.launch(b, stream=t)
unjoined = end(s)
d.cuStreamBeginCaptureToGraph(s, other, nodes([stranger]), None, 1, 0)
d.try_("cuStreamSynchronize", s)
broken = end(s)
answer([bad, unjoined[0], unjoined[1].value, kinds(graph), broken[0], kinds(other),
        d.try_("cuGraphDestroy", graph), d.try_("cuGraphDestroy", other)])
"""
    )
    assert run.answer == [
        *[[INVALID_VALUE] * 4 + [ILLEGAL_STATE], UNJOINED, None, [0, 0], INVALIDATED, [0], 0, 0],
    ]
