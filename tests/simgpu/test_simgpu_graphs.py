"""Graphs of kernels that a program builds itself or captures: attributes, copies, instantiation and updates."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_HANDLE, UPDATE_FAILURE = 1, 400, 910
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
answer(len(d.nodes_of(g)))
""",
        costs=COSTS,
    )
    assert run.answer == 3
    assert starts(run)["b"] == starts(run)["c"] == ends(run)["a"]
    assert (run.kernel("a")["blocks"], run.kernel("a")["threads"], run.kernel("a")["dynamic_shared"]) == (7, 64, 256)


def test_every_way_to_add_a_kernel_node(graphs: Any) -> None:
    """v1 reads 56 bytes; v2 takes a CUkernel where there is no function."""
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
d.new("cuGraphAddKernelNode_v2", g, None, 0, C.byref(elsewhere))
run(g)
bad = [d.try_(entry, C.byref(P()), g, None, 0, C.byref(what)) for entry, what in (
    ("cuGraphAddKernelNode", new), ("cuGraphAddKernelNode_v2", d.kernel_params(None, 1, kern=P(64))),
    ("cuGraphAddKernelNode_v2", d.kernel_params(a, 0)), ("cuGraphAddKernelNode_v2", d.kernel_params(a, 1, 32, 49153)))]
seen = [d.node(n) for n in d.nodes_of(g)]
answer([bad, len(seen), [n.func for n in seen][1] == d.new("cuKernelGetFunction", k).value, seen[1].kern == k.value,
        C.cast(C.cast(seen[0].params, C.POINTER(P))[1], C.POINTER(C.c_long))[0]])
"""
    )
    assert run.answer == [[INVALID_HANDLE, INVALID_HANDLE, INVALID_VALUE, INVALID_VALUE], 4, True, True, 2]
    assert sorted(row["blocks"] for row in run.timeline) == [2, 3, 4, 5]
    made = [(row["entry"], row["result"], row["blocks"]) for row in run.launches if row["node"]]
    assert made == [
        ("cuGraphAddKernelNode", 0, 2), ("cuGraphAddKernelNode_v2", 0, 3), ("cuGraphAddKernelNode_v2", 0, 4),
        ("cuGraphAddKernelNode_v2", 0, 5), ("cuGraphAddKernelNode", INVALID_HANDLE, 3),
        ("cuGraphAddKernelNode_v2", INVALID_HANDLE, 1), ("cuGraphAddKernelNode_v2", INVALID_VALUE, 0),
        ("cuGraphAddKernelNode_v2", INVALID_VALUE, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        ("cuGraphKernelNodeSetParams", 56),
        ("cuGraphKernelNodeSetParams_v2", 72),
        ("cuGraphExecKernelNodeSetParams", 56),
        ("cuGraphExecKernelNodeSetParams_v2", 72),
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
    return d.try_(entry, *([exe] if "Exec" in entry else []), n, C.byref(what))
codes = [put(9, 64, 1024), put(9, 64, 49153), put(9, 2000)]
if "Exec" not in entry: exe = d.instantiate(g, 8)
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([codes, d.node(n).gx, d.attribute(n, 8)])
"""
    )
    assert run.answer == [[0, INVALID_VALUE, INVALID_VALUE], 3 if "Exec" in entry else 9, -4]
    row = run.kernel("b")
    assert (row["blocks"], row["threads"], row["dynamic_shared"], row["priority"]) == (9, 64, 1024, -4)


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


def test_clones_are_independent(graphs: Any) -> None:
    run = graphs("""
n = d.add_kernel(g, a, 3)
copy = d.new("cuGraphClone", g)
twin = d.nodes_of(copy)[0]
d.cuGraphKernelNodeSetParams_v2(twin, C.byref(d.kernel_params(a, 9)))
answer([d.node(n).gx, d.node(twin).gx])
""")
    assert run.answer == [3, 9]


INSTANTIATE = """
node, log = P(), C.create_string_buffer(b"x", 8)
class How(C.Structure): _fields_ = [("flags", C.c_uint64), ("stream", P), ("node", P), ("result", C.c_int)]
def all_ways(graph):
    how = [How(result=9), How(result=9)]
    codes = [d.try_("cuGraphInstantiate" + end, C.byref(P()), graph, C.byref(node), log, 8) for end in ("", "_v2")]
    codes += [d.try_("cuGraphInstantiateWithFlags", C.byref(P()), graph, 0)]
    codes += [d.try_("cuGraphInstantiateWithParams" + end, C.byref(P()), graph, C.byref(h))
              for end, h in zip(("", "_ptsz"), how)]
    return codes, [node.value or 0] + [h.node or 0 for h in how], [h.result for h in how]
"""


def test_sizes_are_checked_when_a_node_is_made_and_never_again(graphs: Any) -> None:
    run = graphs(
        INSTANTIATE
        + """
d.cuFuncSetAttribute(a, 8, 100000)
n = d.add_kernel(g, a, 1, 32, 90000)
d.cuFuncSetAttribute(a, 8, 80000)
codes, where, results = all_ways(g)
exe = run(g)
refused = d.try_("cuGraphExecKernelNodeSetParams_v2", exe, n, C.byref(d.kernel_params(a, 2, 32, 90000)))
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([codes, where, results, refused])
"""
    )
    assert run.answer == [[0] * 5, [0] * 3, [0, 0], INVALID_VALUE]
    assert [(row["blocks"], row["dynamic_shared"]) for row in run.timeline] == [(1, 90000)] * 2


@pytest.mark.parametrize(
    ("change", "outcome", "named"),
    [
        pytest.param("", 0, None, id="the same"),
        pytest.param("set_(two, d.kernel_params(c, 9, 64, 2048))", 0, None, id="another kernel, other sizes"),
        pytest.param("attribute(two, 8, -1)", 8, "two", id="another priority, where priorities count"),
        pytest.param("attribute(two, 2, 1)", 8, "two", id="cooperative"),
        pytest.param("d.add_kernel(h, c)", 2, None, id="one node more"),
        pytest.param("h, one, two = make(edge=False)", 2, "two", id="an edge less"),
        pytest.param("h = capture(); two = d.nodes_of(h)[1]", 3, "two", id="another kind"),
    ],
)  # fmt: skip
def test_updates(graphs: Any, change: Any, outcome: Any, named: Any) -> None:
    run = graphs(
        f"""
def make(edge=True):
    graph = d.new("cuGraphCreate", 0)
    one = d.add_kernel(graph, a)
    return graph, one, d.add_kernel(graph, b, 2, before=[one] * edge)
def capture():
    graph, inner = P(), d.instantiate(make()[0])
    d.cuStreamBeginCapture_v2(s, 0); d.launch(a, stream=s); d.cuGraphLaunch(inner, s)
    d.cuStreamEndCapture(s, C.byref(graph))
    return graph
def set_(node, what): d.cuGraphKernelNodeSetParams_v2(node, C.byref(what))
def attribute(node, number, x): d.cuGraphKernelNodeSetAttribute(node, number, value(x))
old, _, original = make(); h, one, two = make()
exe = d.instantiate(old, 8)
{change}
class Info(C.Structure): _fields_ = [("result", C.c_int), ("node", P), ("from_", P)]
info, node, result = Info(), P(), C.c_int(9)
codes = [d.try_("cuGraphExecUpdate_v2", exe, h, C.byref(info)),
         d.try_("cuGraphExecUpdate", exe, h, C.byref(node), C.byref(result))]
known = dict(one=one.value, two=two.value)
own = d.try_("cuGraphExecKernelNodeSetParams_v2", exe, original, C.byref(d.kernel_params(b, 7)))
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([codes, info.result, result.value, info.node == node.value == known.get({named!r}), own])
"""
    )
    code = UPDATE_FAILURE if outcome else 0
    assert run.answer == [[code, code], outcome, outcome, True, 0]
    assert run.timeline[-1]["blocks"] == 7  # the node of the first graph still names its node, updated or not


def test_an_update_without_the_flag_may_change_priorities(graphs: Any) -> None:
    run = graphs(
        """
n = d.add_kernel(g, a); exe = d.instantiate(g)
d.cuGraphKernelNodeSetAttribute(n, 8, value(-1))
answer(d.try_("cuGraphExecUpdate_v2", exe, g, (C.c_char * 64)()))
"""
    )
    assert run.answer == 0


PRIORITIES = """
low, high, t = d.stream(-1), d.stream(-3), d.stream()
d.cuStreamBeginCapture_v2(high, 0)
d.launch(a, stream=high); d.launch_ex(b, stream=high, attributes=[(8, [-5])])
d.cuStreamEndCapture(high, C.byref(g))
d.add_kernel(g, c)
"""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(0, [-1, -1, -1], id="the stream's"),
        pytest.param(8, [-3, -5, 0], id="the nodes', with the flag"),
    ],
)
def test_whose_priority_counts(graphs: Any, flags: Any, expected: Any) -> None:
    run = graphs(PRIORITIES + f"run(g, {flags}, low)")
    by_kernel = {row["kernel"]: row["priority"] for row in run.timeline}
    assert [by_kernel[name] for name in "abc"] == expected
    assert {row["kernel"]: row["priority"] for row in run.launches if row["graph"]} == by_kernel
