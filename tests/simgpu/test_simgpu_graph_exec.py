"""Graphs as they are instantiated, launched and updated."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, UPDATE_FAILURE = 1, 910

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


def test_an_instantiation_can_be_made_to_fail(graphs: Any) -> None:
    """The node is named; with fewer bytes in it the same graph is instantiated. A child graph is looked into."""
    run = graphs(
        INSTANTIATE
        + """
d.add_kernel(g, b, 1, 32, 4096)
n = d.add_kernel(g, a, 1, 32, 4096)
outer = d.new("cuGraphCreate", 0)
child = d.new("cuGraphAddChildGraphNode", outer, None, 0, g)
codes, where, results = all_ways(g)
inside = all_ways(outer)[0]
d.cuGraphKernelNodeSetParams_v2(n, C.byref(d.kernel_params(a, 1, 32, 1024)))
answer([codes, [w == n.value for w in where], results, inside, all_ways(g)])
""",
        SIMGPU_REFUSE_INSTANTIATE="a:2048",
    )
    codes, where, results, inside, after = run.answer
    assert codes == inside == [INVALID_VALUE] * 5
    assert where == [True] * 3
    assert results == [1, 1]
    assert after == [[0] * 5, [0] * 3, [0, 0]]


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
        pytest.param("d.new('cuGraphAddEmptyNode', h, None, 0)", 2, None, id="one node more"),
        pytest.param("d.cuGraphRemoveDependencies(h, nodes([one]), nodes([two]), 1)", 2, "two", id="an edge less"),
        pytest.param("d.cuGraphDestroyNode(two); d.new('cuGraphAddEmptyNode', h, nodes([one]), 1)", 3, "last",
                     id="another kind"),
    ],
)  # fmt: skip
def test_updates(graphs: Any, change: Any, outcome: Any, named: Any) -> None:
    run = graphs(
        f"""
def make():
    graph = d.new("cuGraphCreate", 0)
    one = d.add_kernel(graph, a)
    return graph, one, d.add_kernel(graph, b, 2, before=[one])
def set_(node, what): d.cuGraphKernelNodeSetParams_v2(node, C.byref(what))
def attribute(node, number, x): d.cuGraphKernelNodeSetAttribute(node, number, value(x))
old, _, original = make(); h, one, two = make()
exe = d.instantiate(old, 8)
{change}
class Info(C.Structure): _fields_ = [("result", C.c_int), ("node", P), ("from_", P)]
info, node, result = Info(), P(), C.c_int(9)
codes = [d.try_("cuGraphExecUpdate_v2", exe, h, C.byref(info)),
         d.try_("cuGraphExecUpdate", exe, h, C.byref(node), C.byref(result))]
known = dict(one=one.value, two=two.value, last=d.nodes_of(h)[-1].value)
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
    ("flags", "environment", "expected"),
    [
        pytest.param(0, {}, [-1, -1, -1], id="the stream's"),
        pytest.param(8, {}, [-3, -5, 0], id="the nodes', with the flag"),
        pytest.param(8, {"CUDA_GRAPHS_USE_NODE_PRIORITY": "0"}, [-1, -1, -1], id="the environment takes it away"),
        pytest.param(0, {"CUDA_GRAPHS_USE_NODE_PRIORITY": "1"}, [-3, -5, 0], id="the environment adds it"),
        pytest.param(8, {"CUDA_GRAPHS_USE_NODE_PRIORITY": "yes"}, [-3, -5, 0], id="nonsense in the environment"),
    ],
)
def test_whose_priority_counts(graphs: Any, flags: Any, environment: Any, expected: Any) -> None:
    run = graphs(PRIORITIES + f"run(g, {flags}, low)", **environment)
    by_kernel = {row["kernel"]: row["priority"] for row in run.timeline}
    assert [by_kernel[name] for name in "abc"] == expected
    assert {row["kernel"]: row["priority"] for row in run.launches if row["graph"]} == by_kernel


@pytest.mark.parametrize("text", ["k", ":5", "k:many"])
def test_mistakes_in_the_environment(simulate: Any, text: Any) -> None:
    run = simulate("answer(Driver(init=False).try_('cuInit', 0))", SIMGPU_REFUSE_INSTANTIATE=text)
    assert run.answer == INVALID_VALUE
    assert f"simgpu: SIMGPU_REFUSE_INSTANTIATE: `{text}` is not GLOB:BYTES" in run.stderr
