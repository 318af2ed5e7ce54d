"""Graphs that a program builds itself: nodes of every kind, their attributes, copies, instantiation and updates."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_HANDLE, UPDATE_FAILURE, NOT_SUPPORTED = 1, 400, 910, 801
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us


def starts(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["start_us"] for row in run.timeline}


def ends(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["end_us"] for row in run.timeline}


def test_kernel_nodes_run_in_the_order_of_their_edges(graphs: Any) -> None:
    run = graphs(
        """
one = d.add_kernel(g, a, 7, 64, 256)
two = d.add_kernel(g, b, before=[one]); three = d.add_kernel(g, c, before=[one])
run(g)
answer([len(d.nodes_of(g)), len(d.nodes_of(g, "cuGraphGetRootNodes")),
        [n.value for n in d.nodes_of(two, "cuGraphNodeGetDependencies")] == [one.value],
        [n.value for n in d.nodes_of(one, "cuGraphNodeGetDependentNodes")] == [two.value, three.value]])
""",
        costs=COSTS,
    )
    assert run.answer == [3, 1, True, True]
    assert starts(run)["b"] == starts(run)["c"] == ends(run)["a"]
    assert (run.kernel("a")["blocks"], run.kernel("a")["threads"], run.kernel("a")["dynamic_shared"]) == (7, 64, 256)


def test_every_way_to_add_a_kernel_node(graphs: Any) -> None:
    """v1 reads 56 bytes; v2 and AddNode take a CUkernel where there is no function."""
    run = graphs(
        """
x, y = C.c_int(1), C.c_long(2)
old = d.kernel_params(args, 2, 64, 128, [x, y], kern=P(64))  # what follows 56 bytes is not read
new = d.kernel_params(None, 3, kern=k)
both = d.kernel_params(a, 4, kern=P(64))
elsewhere = d.kernel_params(None, 5, kern=k, ctx=d.context)
d.new("cuGraphAddKernelNode", g, None, 0, C.byref(old))
d.new("cuGraphAddKernelNode_v2", g, None, 0, C.byref(new))
d.new("cuGraphAddKernelNode_v2", g, None, 0, C.byref(both))
d.add(g, NodeParams.of(0, elsewhere))
d.new("cuGraphAddNode_v2", g, None, None, 0, C.byref(NodeParams.of(0, d.kernel_params(k, 6))))
run(g)
bad = [d.try_(entry, C.byref(P()), g, None, 0, C.byref(what)) for entry, what in (
    ("cuGraphAddKernelNode", new), ("cuGraphAddKernelNode_v2", d.kernel_params(None, 1, kern=P(64))),
    ("cuGraphAddKernelNode_v2", d.kernel_params(a, 0)), ("cuGraphAddKernelNode_v2", d.kernel_params(a, 1, 32, 49153)),
    ("cuGraphAddNode", NodeParams.of(13)))]
seen = [d.node(n) for n in d.nodes_of(g)]
answer([bad, len(seen), [n.func for n in seen][1] == d.new("cuKernelGetFunction", k).value, seen[1].kern == k.value,
        C.cast(C.cast(seen[0].params, C.POINTER(P))[1], C.POINTER(C.c_long))[0]])
"""
    )
    assert run.answer == [
        [INVALID_HANDLE, INVALID_HANDLE, INVALID_VALUE, INVALID_VALUE, NOT_SUPPORTED],
        5,
        True,
        True,
        2,
    ]
    assert sorted(row["blocks"] for row in run.timeline) == [2, 3, 4, 5, 6]
    made = [(row["entry"], row["result"], row["blocks"]) for row in run.launches if row["node"]]
    assert made == [
        ("cuGraphAddKernelNode", 0, 2), ("cuGraphAddKernelNode_v2", 0, 3), ("cuGraphAddKernelNode_v2", 0, 4),
        ("cuGraphAddNode", 0, 5), ("cuGraphAddNode_v2", 0, 6), ("cuGraphAddKernelNode", INVALID_HANDLE, 3),
        ("cuGraphAddKernelNode_v2", INVALID_HANDLE, 1), ("cuGraphAddKernelNode_v2", INVALID_VALUE, 0),
        ("cuGraphAddKernelNode_v2", INVALID_VALUE, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        ("cuGraphKernelNodeSetParams", 56),
        ("cuGraphKernelNodeSetParams_v2", 72),
        ("cuGraphNodeSetParams", 0),
        ("cuGraphExecKernelNodeSetParams", 56),
        ("cuGraphExecKernelNodeSetParams_v2", 72),
        ("cuGraphExecNodeSetParams", 0),
    ],
)
def test_parameters_are_set_and_attributes_stay(graphs: Any, entry: Any, size: Any) -> None:
    run = graphs(
        f"""
n = d.add_kernel(g, a, 3)
d.cuGraphKernelNodeSetAttribute(n, 8, value(-4))
exe = d.instantiate(g, 8)
entry, size = "{entry}", {size}
def put(*numbers):
    what = d.kernel_params(b, *numbers, kern=P(64) if size == 56 else None)
    whole = what if size else NodeParams.of(0, what)
    return d.try_(entry, *([exe] if "Exec" in entry else []), n, C.byref(whole))
codes = [put(9, 64, 1024), put(9, 64, 49153), put(9, 2000)]
if "Exec" not in entry: exe = d.instantiate(g, 8)
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([codes, d.node(n).gx, d.attribute(n, 8)])
"""
    )
    assert run.answer == [[0, INVALID_VALUE, INVALID_VALUE], 3 if "Exec" in entry else 9, -4]
    row = run.kernel("b")
    assert (row["blocks"], row["threads"], row["dynamic_shared"], row["priority"]) == (9, 64, 1024, -4)


def test_a_round_trip_of_parameters_changes_nothing(graphs: Any) -> None:
    run = graphs(
        """
x, y = C.c_int(11), C.c_long(22)
n = d.add_kernel(g, args, 2, 64, 128, [x, y])
first = d.node(n)
d.cuGraphKernelNodeSetParams_v2(n, C.byref(first))
again = d.node(n)
C.memset(C.addressof(x), 0, 4)
run(g)
answer([first.func == again.func, again.gx, again.shared])
"""
    )
    assert run.answer == [True, 2, 128]
    hashes = {row["parameters"] for row in run.launches if row["graph"] or row["node"]}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("number", "given", "read"),
    [
        pytest.param(8, [-9], -5, id="priority, clamped"),
        pytest.param(2, [1], 1, id="cooperative"),
        pytest.param(4, [2, 1, 1], 2, id="cluster"),
        pytest.param(5, [2], 2, id="cluster scheduling policy"),
        pytest.param(14, [60], 60, id="carve-out"),
        pytest.param(10, [1], 1, id="memory synchronisation domain"),
    ],
)
def test_attributes_of_nodes(graphs: Any, number: Any, given: Any, read: Any) -> None:
    run = graphs(
        f"""
n, other = d.add_kernel(g, a, 4), d.add_kernel(g, b, 4)
unset = d.attribute(n, {number})
for _ in range(2): d.cuGraphKernelNodeSetAttribute(n, {number}, value(*{given}))
d.cuGraphKernelNodeCopyAttributes(other, n)
copy = d.new("cuGraphClone", g)
answer([unset, d.attribute(n, {number}), d.attribute(other, {number}), d.attribute(d.nodes_of(copy)[1], {number})])
"""
    )
    assert run.answer == [-1 if number == 14 else 0, read, read, read]


@pytest.mark.parametrize(
    "call",
    [
        "d.try_('cuGraphKernelNodeSetAttribute', n, 3, value(1))",
        "d.try_('cuGraphKernelNodeSetAttribute', n, 99, value(1))",
        "d.try_('cuGraphKernelNodeGetAttribute', n, 6, value(0))",
        "d.try_('cuGraphKernelNodeGetAttribute', empty, 8, value(0))",
        "d.try_('cuGraphKernelNodeGetParams_v2', empty, C.byref(KernelParams()))",
        "d.try_('cuGraphKernelNodeCopyAttributes', n, empty)",
        "d.try_('cuGraphNodeSetParams', empty, C.byref(NodeParams.of(0, d.kernel_params(a))))",
        "d.try_('cuGraphAddEmptyNode', C.byref(P()), g, nodes([n, n]), 2)",
        "d.try_('cuGraphAddEmptyNode', C.byref(P()), g, nodes([P(64)]), 1)",
        "d.try_('cuGraphAddDependencies', g, nodes([n]), nodes([n]), 1)",
        "d.try_('cuGraphRemoveDependencies', g, nodes([n]), nodes([empty]), 1)",
    ],
)
def test_what_is_refused(graphs: Any, call: Any) -> None:
    setup = "n = d.add_kernel(g, a); empty = d.new('cuGraphAddEmptyNode', g, None, 0)\n"
    assert graphs(setup + f"answer({call})").answer == INVALID_VALUE


def test_what_was_handed_out_of_a_nodes_parameters_stays_until_it_is_changed(graphs: Any) -> None:
    """Whoever else asks: "valid until the node is destroyed or its own parameters are modified"."""
    run = graphs(
        """
n = d.add_kernel(g, a, 4)
first = d.node(n)
many = [d.add_kernel(g, b, 4) for _ in range(50)]  # which would take the place
again = [d.node(node) for node in (n, *many, n)]
same = first.params == again[-1].params
d.cuGraphKernelNodeSetParams_v2(n, C.byref(first))
answer([same, d.node(n).params is not None])
"""
    )
    assert run.answer == [True, True]


def test_attributes_of_a_captured_launch_are_those_of_its_node(graphs: Any) -> None:
    run = graphs(
        """
t = d.stream(-2)
d.cuStreamBeginCapture_v2(t, 0)
d.launch_ex(a, 4, stream=t, attributes=[(4, [2, 1, 1]), (14, [40]), (8, [-9])]); d.launch(b, stream=t)
d.cuStreamEndCapture(t, C.byref(g))
first, second = d.nodes_of(g)
answer([[d.attribute(first, i) for i in (4, 14, 8)], d.attribute(second, 8), d.attribute(second, 14)])
"""
    )
    assert run.answer == [[2, 40, -5], -2, -1]


def test_other_kinds_of_nodes(graphs: Any) -> None:
    run = graphs(
        """
one, two = P(), P()
d.cuMemAlloc_v2(C.byref(one), 64); d.cuMemAlloc_v2(C.byref(two), 64)
back, seen = (C.c_ubyte * 64)(), []
class Copy(C.Structure):
    _fields_ = [(n, C.c_size_t) for n in (
        "sx", "sy", "sz", "sl", "st", "sh", "sd", "sa", "r0", "sp", "sH",
        "dx", "dy", "dz", "dl", "dt", "dh", "dd", "da", "r1", "dp", "dH", "w", "h", "depth")]
host = C.CFUNCTYPE(None, P)(lambda _: seen.append(list(back[:2])))
e, f = d.event(), d.event()
fill = d.add(g, NodeParams.of(2, one, 0, 7 | 1 << 32, 64, 1, 0))  # value 7, elements of one byte
copy = d.add(g, NodeParams.of(1, 0, 0, Copy(st=2, sd=one.value, dt=2, dd=two.value, w=64, h=1, depth=1)), [fill])
out = Copy(st=2, sd=two.value, dt=1, dh=C.addressof(back), w=64, h=1, depth=1)
down = d.new("cuGraphAddMemcpyNode", g, nodes([copy]), 1, C.byref(out), d.context)
call = d.add(g, NodeParams.of(3, C.cast(host, P), 0), [down])
start = d.new("cuGraphAddEventRecordNode", g, None, 0, e)
kernel = d.add_kernel(g, a, before=[start])
stop = d.add(g, NodeParams.of(7, f), [kernel])
last = d.new("cuGraphAddEventWaitNode", g, nodes([stop]), 1, e)
kinds = [d.ask("cuGraphNodeGetType", n) for n in (fill, copy, down, call, start, kernel, stop, last)]
exe = run(g)
first = d.elapsed_us(e, f)
d.cuGraphExecMemsetNodeSetParams(exe, fill, C.byref(NodeParams.of(2, one, 0, 9 | 1 << 32, 64, 1, 0).words), d.context)
d.cuGraphExecEventRecordNodeSetEvent(exe, start, f)
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
read = Copy(); d.cuGraphMemcpyNodeGetParams(down, C.byref(read))
bad = [d.try_("cuGraphAddNode", C.byref(P()), g, None, 0, C.byref(p)) for p in (
    NodeParams.of(2, 4096, 0, 1 << 32, 64, 1, 0),
    NodeParams.of(1, 0, 0, Copy(st=2, sd=64, dt=2, dd=64, w=1, h=1, depth=1)),
    NodeParams.of(3, 0, 0), NodeParams.of(7, P(64)), NodeParams.of(10))]
answer([kinds, seen, first, d.ask("cuGraphEventRecordNodeGetEvent", start, P).value == e.value,
        [read.st, read.sd == two.value, read.dt, read.dh == C.addressof(back), read.w], bad])
""",
        costs=COSTS,
    )
    assert run.answer == [
        [2, 1, 1, 3, 7, 0, 7, 6], [[7, 7], [9, 9]], 100, True, [2, True, 1, True, 64],
        [INVALID_VALUE, INVALID_VALUE, INVALID_VALUE, INVALID_HANDLE, NOT_SUPPORTED],
    ]  # fmt: skip


def test_child_graphs(graphs: Any) -> None:
    run = graphs(
        """
inner = d.new("cuGraphCreate", 0)
i = d.add_kernel(inner, b, 5)
d.add_kernel(inner, c, 5, before=[i])
first = d.add_kernel(g, a)
child = d.new("cuGraphAddChildGraphNode", g, nodes([first]), 1, inner)
d.add_kernel(g, k, 2, before=[child])
d.cuGraphKernelNodeSetParams_v2(i, C.byref(d.kernel_params(b, 99)))  # the child was cloned
own = d.ask("cuGraphChildGraphNodeGetGraph", child, P)
mine = d.nodes_of(own)[0]
d.cuGraphKernelNodeSetParams_v2(mine, C.byref(d.kernel_params(b, 6)))  # a change of the child itself is one
exe = run(g)
d.cuGraphExecKernelNodeSetParams_v2(exe, mine, C.byref(d.kernel_params(b, 8)))
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
d.cuGraphExecChildGraphNodeSetParams(exe, child, inner)
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
short = d.new("cuGraphCreate", 0)
answer([d.ask("cuGraphNodeGetType", child), d.try_("cuGraphDestroy", own), d.try_("cuGraphDestroy", inner),
        d.try_("cuGraphExecChildGraphNodeSetParams", exe, child, short), len(d.nodes_of(own))])
""",
        costs=COSTS,
    )
    assert run.answer == [4, INVALID_VALUE, 0, UPDATE_FAILURE, 2]
    assert [row["kernel"] for row in run.timeline] == ["a", "b", "c", "k"] * 3
    assert [row["blocks"] for row in run.timeline if row["kernel"] == "b"] == [6, 8, 99]
    for before, after in zip(run.timeline[:3], run.timeline[1:4]):
        assert after["start_us"] == before["end_us"]


def test_a_graph_launched_while_capturing_is_a_child(graphs: Any) -> None:
    run = graphs(
        """
d.add_kernel(g, a, 3)
exe = d.instantiate(g)
d.cuStreamBeginCapture_v2(s, 0)
d.launch(b, stream=s); d.cuGraphLaunch(exe, s); d.launch(c, stream=s)
outer = P(); d.cuStreamEndCapture(s, C.byref(outer))
run(outer)
answer([d.ask("cuGraphNodeGetType", n) for n in d.nodes_of(outer)])
""",
        costs=COSTS,
    )
    assert run.answer == [0, 4, 0]
    assert [row["kernel"] for row in run.timeline] == ["b", "a", "c"]


def test_clones_are_found_and_independent(graphs: Any) -> None:
    run = graphs(
        """
n, other = d.add_kernel(g, a, 3), d.add_kernel(g, b, 3)
copy = d.new("cuGraphClone", g)
twin = d.new("cuGraphNodeFindInClone", n, copy)
d.cuGraphKernelNodeSetParams_v2(twin, C.byref(d.kernel_params(a, 9)))
d.cuGraphDestroyNode(other)
answer([d.node(n).gx, d.node(twin).gx, len(d.nodes_of(g)), len(d.nodes_of(copy)),
        d.try_("cuGraphNodeFindInClone", C.byref(P()), n, g)])
"""
    )
    assert run.answer == [3, 9, 1, 2, INVALID_VALUE]


def test_a_destroyed_node_takes_its_edges_and_its_handle_comes_back(graphs: Any) -> None:
    run = graphs(
        """
one = d.add_kernel(g, a); two = d.add_kernel(g, b, before=[one]); three = d.add_kernel(g, c, before=[two])
d.cuGraphDestroyNode(two)
bad = [d.try_("cuGraphDestroyNode", two), d.try_("cuGraphKernelNodeGetParams_v2", two, C.byref(KernelParams()))]
free = d.nodes_of(three, "cuGraphNodeGetDependencies")
again = d.add_kernel(g, k, 5)
exe = run(g)
d.cuGraphExecKernelNodeSetParams_v2(exe, three, C.byref(d.kernel_params(c, 9)))
d.cuGraphLaunch(exe, s)
answer([bad, free, again.value == two.value])
""",
        costs=COSTS,
    )
    assert run.answer == [[INVALID_VALUE, INVALID_VALUE], [], True]
    assert [row["kernel"] for row in run.timeline if row["kernel"] == "b"] == []
    assert [row["blocks"] for row in run.timeline if row["kernel"] == "c"] == [1, 9]
    assert [row["blocks"] for row in run.timeline if row["kernel"] == "k"] == [5, 5]


def test_edges_added_later_count_and_cycles_are_found(graphs: Any) -> None:
    run = graphs(
        """
one, two = d.add_kernel(g, a), d.add_kernel(g, b)
d.cuGraphAddDependencies(g, nodes([two]), nodes([one]), 1)
twice = d.try_("cuGraphAddDependencies", g, nodes([two]), nodes([one]), 1)
run(g)
d.cuGraphAddDependencies_v2(g, nodes([one]), nodes([two]), None, 1)
class How(C.Structure): _fields_ = [("flags", C.c_uint64), ("stream", P), ("node", P), ("result", C.c_int)]
how = How()
cycle = d.try_("cuGraphInstantiateWithParams", C.byref(P()), g, C.byref(how))
d.cuGraphRemoveDependencies(g, nodes([one]), nodes([two]), 1)
answer([twice, cycle, how.result, d.try_("cuGraphInstantiateWithParams", C.byref(P()), g, C.byref(how)), how.result])
""",
        costs=COSTS,
    )
    assert run.answer == [INVALID_VALUE, INVALID_VALUE, 2, 0, 0]
    assert starts(run)["a"] == ends(run)["b"]


def test_nodes_added_to_a_capture(graphs: Any) -> None:
    run = graphs(
        """
d.cuStreamBeginCapture_v2(s, 0)
d.launch(a, stream=s)
status, graph, deps, count = C.c_int(), P(), C.POINTER(P)(), C.c_size_t()
d.cuStreamGetCaptureInfo_v2(s, C.byref(status), None, C.byref(graph), C.byref(deps), C.byref(count))
n = d.add_kernel(graph, b, before=[P(deps[0])])
d.cuStreamUpdateCaptureDependencies(s, nodes([n]), 1, 1)
d.launch(c, stream=s)
bad = [d.try_("cuGraphDestroy", graph), d.try_("cuGraphDestroyNode", n),
       d.try_("cuStreamUpdateCaptureDependencies", s, nodes([P(64)]), 1, 0)]
whole = P(); code = d.try_("cuStreamEndCapture", s, C.byref(whole))
run(whole)
answer([bad, code, d.try_("cuStreamUpdateCaptureDependencies", s, nodes([n]), 1, 0)])
""",
        costs=COSTS,
    )
    assert run.answer == [[INVALID_VALUE] * 3, 0, 401]
    assert [row["kernel"] for row in run.timeline] == ["a", "b", "c"]
