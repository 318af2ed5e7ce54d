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
