"""Data of the edges of graphs: kept, shown, and never lost without a word."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, LOSSY_QUERY, UNJOINED, UPDATE_FAILURE = 1, 402, 904, 910
FULL, PROGRAMMATIC, LAUNCH_ORDER = [0, 0, 0], [1, 0, 1], [2, 0, 1]
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'

# Port, port and type of edges, as bytes and back; what the calls with room for them answer.
EDGES = """
def data(*edges): return (C.c_ubyte * (8 * len(edges)))(*[byte for edge in edges for byte in [*edge, *[0] * 5]])
def read(raw, count): return [list(raw[8 * i : 8 * i + 3]) for i in range(count)]
def near(node, entry="cuGraphNodeGetDependencies_v2"):
    out, raw, count = (P * 8)(), (C.c_ubyte * 64)(), C.c_size_t(8)
    getattr(d, entry)(node, out, raw, C.byref(count))
    return read(raw, count.value)
def edges(graph):
    ends, raw, count = [(P * 8)(), (P * 8)()], (C.c_ubyte * 64)(), C.c_size_t(8)
    d.cuGraphGetEdges_v2(graph, *ends, raw, C.byref(count))
    return read(raw, count.value)
def add(graph, function, before=(), raw=None):
    what = NodeParams.of(0, d.kernel_params(function))
    return d.new("cuGraphAddNode_v2", graph, nodes(before), raw, len(before), C.byref(what))
def heads(stream, entry="cuStreamGetCaptureInfo_v3"):
    status, graph, found, raw, count = C.c_int(), P(), C.POINTER(P)(), C.POINTER(C.c_ubyte)(), C.c_size_t()
    with_data = [C.byref(raw)] if entry.endswith("v3") else []
    code = d.try_(entry, stream, C.byref(status), None, C.byref(graph), C.byref(found), *with_data, C.byref(count))
    return code or ([found[i] for i in range(count.value)], read(raw, count.value) if with_data else None)
def end(stream):
    graph = P()
    return d.try_("cuStreamEndCapture", stream, C.byref(graph)), graph
"""
ROOM = "(P * 8)()"
COUNT = "C.byref(C.c_size_t(8))"


def test_data_is_kept_with_the_edge(graphs: Any) -> None:
    """Through clones, child graphs and other edges that go; two kernels are in order whatever it says."""
    run = graphs(
        EDGES
        + f"""
full, early, order = {FULL}, {PROGRAMMATIC}, {LAUNCH_ORDER}
one, two = add(g, a), add(g, b)
three = add(g, c, [one, two], data(early, order))
d.cuGraphAddDependencies_v2(g, nodes([one]), nodes([two]), data(early), 1)
four = add(g, a, [three])
child = d.new("cuGraphAddChildGraphNode", d.new("cuGraphCreate", 0), None, 0, g)
seen = [near(three), near(one, "cuGraphNodeGetDependentNodes_v2"), edges(g), edges(d.new("cuGraphClone", g)),
        edges(d.ask("cuGraphChildGraphNodeGetGraph", child, P)), near(four)]
run(g)
d.cuGraphDestroyNode(one)
answer([seen, near(three), near(two)])
""",
        costs=COSTS,
    )
    whole = [PROGRAMMATIC, PROGRAMMATIC, LAUNCH_ORDER, FULL]
    early = [PROGRAMMATIC] * 2
    assert run.answer == [[[PROGRAMMATIC, LAUNCH_ORDER], early, whole, whole, whole, [FULL]], [LAUNCH_ORDER], []]
    for before, after in zip(run.timeline, run.timeline[1:]):
        assert after["start_us"] >= before["end_us"]


def test_an_edge_is_taken_away_by_its_data(graphs: Any) -> None:
    run = graphs(
        EDGES
        + f"""
early = data({PROGRAMMATIC})
one = add(g, a); two = add(g, b, [one], early); three = add(g, c, [one])
this, that = (nodes([one]), nodes([two])), (nodes([one]), nodes([three]))
answer([d.try_("cuGraphAddDependencies_v2", g, *this, None, 1), d.try_("cuGraphRemoveDependencies", g, *this, 1),
        d.try_("cuGraphRemoveDependencies_v2", g, *this, data([2, 0, 1]), 1),
        d.try_("cuGraphRemoveDependencies_v2", g, *that, early, 1),
        d.try_("cuGraphRemoveDependencies_v2", g, *this, early, 1), d.try_("cuGraphRemoveDependencies", g, *that, 1),
        edges(g), d.try_("cuGraphAddDependencies", g, *this, 1), edges(g)])
"""
    )
    assert run.answer == [*[INVALID_VALUE] * 4, 0, 0, [], 0, [FULL]]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(f"d.try_('cuGraphNodeGetDependencies', two, {ROOM}, {COUNT})", id="dependencies"),
        pytest.param(f"d.try_('cuGraphNodeGetDependencies_v2', two, {ROOM}, None, {COUNT})", id="dependencies_v2"),
        pytest.param(f"d.try_('cuGraphNodeGetDependentNodes', one, {ROOM}, {COUNT})", id="dependent nodes"),
        pytest.param(f"d.try_('cuGraphNodeGetDependentNodes_v2', one, {ROOM}, None, {COUNT})", id="dependent nodes_v2"),
        pytest.param(f"d.try_('cuGraphGetEdges', g, {ROOM}, {ROOM}, {COUNT})", id="edges"),
        pytest.param(f"d.try_('cuGraphGetEdges_v2', g, {ROOM}, {ROOM}, None, {COUNT})", id="edges_v2"),
    ],
)
def test_no_question_loses_data(graphs: Any, call: Any) -> None:
    """Their number may be asked for, and edges without data are told as ever."""
    number = call.replace(ROOM, "None")
    run = graphs(
        EDGES
        + f"""
early = data({PROGRAMMATIC})
one = add(g, a); two = add(g, b, [one], early)
name = P(); d.cuGetErrorName(402, C.byref(name))
codes = [{call}, {number}]
d.cuGraphRemoveDependencies_v2(g, nodes([one]), nodes([two]), early, 1)
d.cuGraphAddDependencies(g, nodes([one]), nodes([two]), 1)
answer([codes, {call}, C.string_at(name.value).decode()])
"""
    )
    assert run.answer == [[LOSSY_QUERY, 0], 0, "CUDA_ERROR_LOSSY_QUERY"]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(f"d.try_('cuGraphNodeGetDependencies_v2', one, None, early, {COUNT})", id="dependencies"),
        pytest.param(f"d.try_('cuGraphNodeGetDependentNodes_v2', one, None, early, {COUNT})", id="dependent nodes"),
        pytest.param(f"d.try_('cuGraphGetEdges_v2', g, None, None, early, {COUNT})", id="edges"),
        pytest.param("put(one, [1, 0, 0])", id="a programmatic port of an ordinary edge"),
        pytest.param("put(one, [0, 0, 1])", id="the end as port of a programmatic edge"),
        pytest.param("put(one, [3, 0, 1])", id="an unknown port"),
        pytest.param("put(one, [1, 1, 1])", id="a port to arrive at"),
        pytest.param("put(one, [1, 0, 2])", id="an unknown type"),
        pytest.param("put(one, [1, 0, 1, 1])", id="a reserved byte"),
        pytest.param("put(empty, [1, 0, 1])", id="programmatic from no kernel"),
        pytest.param("put(empty, [2, 0, 0])", id="a port of no kernel"),
        pytest.param("d.try_('cuGraphAddDependencies_v2', g, nodes([one]), nodes([empty]), early, 1)",
                     id="programmatic to no kernel"),
    ],
)  # fmt: skip
def test_what_is_refused(graphs: Any, call: Any) -> None:
    run = graphs(
        EDGES
        + f"""
early = data({PROGRAMMATIC})
one, empty = add(g, a), d.new("cuGraphAddEmptyNode", g, None, 0)
def put(before, bytes_):
    raw, what = (C.c_ubyte * 8)(*bytes_), NodeParams.of(0, d.kernel_params(a))
    return d.try_("cuGraphAddNode_v2", C.byref(P()), g, nodes([before]), raw, 1, C.byref(what))
answer([{call}, len(d.nodes_of(g)), edges(g)])
"""
    )
    assert run.answer == [INVALID_VALUE, 2, []]


@pytest.mark.parametrize("value", [1, 0])
def test_programmatic_launches_that_are_captured(graphs: Any, value: Any) -> None:
    """Behind a kernel, not behind a host function; only if the attribute is not zero."""
    run = graphs(
        EDGES
        + f"""
attributes = [(6, [{value}])]
call = C.CFUNCTYPE(None, P)(lambda _: None)
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s)
codes = [d.launch_ex(b, stream=s, attributes=attributes)]
between = heads(s)[1]
d.cuLaunchHostFunc(s, call, None)
codes.append(d.launch_ex(c, stream=s, attributes=attributes))
codes.append(d.launch(a, stream=s))
code, graph = end(s)
run(graph)
answer([codes, code, between, edges(graph)])
"""
    )
    first = PROGRAMMATIC if value else FULL
    assert run.answer == [[0, 0, 0], 0, [FULL], [first, FULL, FULL, FULL]]


def test_what_a_capture_waits_for_has_data(graphs: Any) -> None:
    """It is shown, goes with events to other streams, and is the edge of a kernel; all else waits for the end."""
    run = graphs(
        EDGES
        + f"""
early, order = data({PROGRAMMATIC}), data({LAUNCH_ORDER})
t, e, f = d.stream(), d.event(), d.event()
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s)
first = nodes([P(heads(s)[0][0])])
bad = d.try_("cuStreamUpdateCaptureDependencies_v2", s, first, data([1, 0, 0]), 1, 1)
d.cuStreamUpdateCaptureDependencies_v2(s, first, early, 1, 1)
shown, lossy = heads(s)[1], heads(s, "cuStreamGetCaptureInfo_v2")
unheard = d.try_("cuStreamGetCaptureInfo_v3", s, C.byref(C.c_int()), None, None, None, C.byref(P()), None)
number = d.try_("cuStreamGetCaptureInfo_v2", s, C.byref(C.c_int()), None, None, None, C.byref(C.c_size_t()))
d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0)
there = heads(t)[1]
d.cuStreamUpdateCaptureDependencies_v2(t, first, order, 1, 0)  # it waits for that one already
kept = heads(t)[1]
d.launch(b, stream=s)
call = C.CFUNCTYPE(None, P)(lambda _: None)
d.cuLaunchHostFunc(t, call, None)
d.cuEventRecord(f, t); d.cuStreamWaitEvent(s, f, 0)
code, graph = end(s)
answer([bad, shown, lossy, unheard, number, there, kept, code, edges(graph)])
"""
    )
    early = [PROGRAMMATIC]
    assert run.answer == [
        INVALID_VALUE, early, LOSSY_QUERY, INVALID_VALUE, 0, early, early, 0, [PROGRAMMATIC, FULL],
    ]  # fmt: skip


def test_of_two_edges_the_ordinary_one_counts(graphs: Any) -> None:
    run = graphs(
        EDGES
        + f"""
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s)
first = nodes([P(heads(s)[0][0])])
d.cuStreamUpdateCaptureDependencies_v2(s, first, data({PROGRAMMATIC}), 1, 1)
early = heads(s)[1]
d.cuStreamUpdateCaptureDependencies(s, first, 1, 0)
answer([early, heads(s)[1]])
"""
    )
    assert run.answer == [[PROGRAMMATIC], [FULL]]


def test_a_capture_does_not_end_before_its_last_kernel_does(graphs: Any) -> None:
    """A node that nothing waits for to its end is not joined."""
    run = graphs(
        EDGES
        + f"""
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s)
d.cuStreamUpdateCaptureDependencies_v2(s, nodes([P(heads(s)[0][0])]), data({PROGRAMMATIC}), 1, 1)
answer(end(s)[0])
"""
    )
    assert run.answer == UNJOINED


def test_an_edge_of_another_kind_is_another_shape(graphs: Any) -> None:
    run = graphs(
        EDGES
        + f"""
one = add(g, a); two = add(g, b, [one])
exe, h = d.instantiate(g), d.new("cuGraphCreate", 0)
first = add(h, a); second = add(h, b, [first], data({PROGRAMMATIC}))
class Info(C.Structure): _fields_ = [("result", C.c_int), ("node", P), ("start", P)]
info = Info()
code = d.try_("cuGraphExecUpdate_v2", exe, h, C.byref(info))
answer([code, info.result, info.node == second.value, info.start == first.value])
"""
    )
    assert run.answer == [UPDATE_FAILURE, 2, True, True]
