"""Graphs that a program captures: children, updates, and whose priority counts."""

from __future__ import annotations

from typing import Any

import pytest

UPDATE_FAILURE = 910
COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us


def test_a_graph_launched_while_capturing_is_a_child(graphs: Any) -> None:
    run = graphs(
        """
exe = d.instantiate(captured(lambda: d.launch(a, 3, stream=s)))
outer = captured(lambda: [d.launch(b, stream=s), d.cuGraphLaunch(exe, s), d.launch(c, stream=s)])
run(outer)
answer(len(d.nodes_of(outer)))
""",
        costs=COSTS,
    )
    assert run.answer == 3
    assert [row["kernel"] for row in run.timeline] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("change", "outcome", "named"),
    [
        pytest.param("d.launch(a, stream=s); d.launch(b, 2, stream=s)", 0, None, id="the same"),
        pytest.param("d.launch(a, stream=s); d.launch(c, 9, 64, 2048, stream=s)", 0, None, id="another kernel, size"),
        pytest.param("d.launch(a, stream=s); prior(-1)", 8, 1, id="another priority, where priorities count"),
        pytest.param("d.launch(a, stream=s)", 2, None, id="one node less"),
        pytest.param("d.launch(a, stream=s); d.cuGraphLaunch(inner, s)", 3, 1, id="another kind"),
        pytest.param("d.cuEventRecord(e, s); d.cuStreamWaitEvent(t, e, 0); d.launch(a, stream=s); "
                     "d.launch(b, 2, stream=t); d.cuEventRecord(f, t); d.cuStreamWaitEvent(s, f, 0)",
                     2, 1, id="an edge less"),
    ],
)  # fmt: skip
def test_updates(graphs: Any, change: str, outcome: int, named: Any) -> None:
    run = graphs(
        f"""
e, f, t = d.event(), d.event(), d.stream()
def prior(priority): d.launch_ex(b, 2, stream=s, attributes=[(8, [priority])])
inner = d.instantiate(captured(lambda: d.launch(a, stream=s)))
exe = d.instantiate(captured(lambda: [d.launch(a, stream=s), d.launch(b, 2, stream=s)]), 8)
def change(): {change}
h = captured(change)
class Info(C.Structure): _fields_ = [("result", C.c_int), ("node", P), ("from_", P)]
info, node, result = Info(), P(), C.c_int(9)
codes = [d.try_("cuGraphExecUpdate_v2", exe, h, C.byref(info)),
         d.try_("cuGraphExecUpdate", exe, h, C.byref(node), C.byref(result))]
known = [each.value for each in d.nodes_of(h)]
d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
answer([codes, info.result, result.value, info.node == node.value, known.index(node.value) if node.value else None])
"""
    )
    code = UPDATE_FAILURE if outcome else 0
    assert run.answer == [[code, code], outcome, outcome, True, named]
    assert run.timeline[-1]["blocks"] == (9 if "9" in change else 2)


PRIORITIES = """
low, high = d.stream(-1), d.stream(-3)
g = captured(lambda: [d.launch(a, stream=high), d.launch_ex(b, stream=high, attributes=[(8, [-5])])], high)
"""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(0, [-1, -1], id="the stream's"),
        pytest.param(8, [-3, -5], id="the nodes', with the flag"),
    ],
)
def test_whose_priority_counts(graphs: Any, flags: Any, expected: Any) -> None:
    run = graphs(PRIORITIES + f"run(g, {flags}, low)")
    by_kernel = {row["kernel"]: row["priority"] for row in run.timeline}
    assert [by_kernel[name] for name in "ab"] == expected
    assert {row["kernel"]: row["priority"] for row in run.launches if row["graph"]} == by_kernel
