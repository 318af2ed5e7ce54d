"""Communication in graphs runs at its raised priority: the node has it, and the graph is instantiated to honour it."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, Done, Runner, rule, same

HIGHEST = rule("leave", more="communication: {priority: highest}")
AUTO = rule("leave", more="")  # the default
INHERIT = rule("leave", more="communication: {priority: inherit}")
FORMS = ("1", "2", "flags", "params", "params_ptsz")
COMM, BIG = f"{NCCL},16,256,0", f"k,{BLOCKS},256,0"
ADDS = ("node", "node1", "any", "any2")


def priorities(done: Done) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for launch in done.in_graphs:
        found.setdefault(launch["kernel"], set()).add(launch["priority"])
    return found


@pytest.mark.parametrize("policy", [HIGHEST, AUTO], ids=["highest", "auto"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["nodes", "libnodes", "captured", "libcaptured", "child", "clone"])
def test_it_runs_at_it(kind: str, form: str, policy: str, bare: Runner, preloaded: Runner) -> None:
    load = "lib" if kind.startswith("lib") else "ptx"
    built = f"graph node={COMM} node={BIG} "
    if kind.endswith("captured"):
        built = f"begin=1 launch={COMM},1 launch={BIG},1 end=1 "
    elif kind in ("child", "clone"):
        built += {"child": "graph child=0 ", "clone": "clone "}[kind]
    words = f"{load}={NCCL},k stream=0 {built}make={form} run=1,2 sync"
    done, without = preloaded(words, policy), bare(words)
    assert "make: 0" in without.stdout
    same(done, without, but=["priority", "entry"])
    assert priorities(without) == {NCCL: {0}, "k": {0}}
    assert priorities(done) == {NCCL: {-5}, "k": {0}}
    assert (done.totals["communication"], done.totals["raised"]) == (1, 1)
    assert done.reasons == {"communication": 1, "rule_leave": 1}


@pytest.mark.parametrize("add", ADDS)
def test_every_way_to_add_a_node(add: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} graph {add}={COMM} make=flags run=0,1 sync"
    done = preloaded(words, HIGHEST)
    same(done, bare(words), but=["priority"])
    assert priorities(done) == {NCCL: {-5}}
    assert done.ways == {"graph_node": 1}


@pytest.mark.parametrize("form", FORMS[2:])
def test_the_programs_own_flags_stay_and_come_back(form: str, bare: Runner, preloaded: Runner) -> None:
    words = (
        f"ptx={NCCL} graph node={COMM} make={form},8 run=0,1 make={form},2 run=0,1 make={form},1 make={form},64 sync"
    )
    done, without = preloaded(words, HIGHEST), bare(words)
    same(done, without, but=["priority"])
    if form != "flags":
        assert "flags 8, result" in done.stdout
        assert "flags 2, result" in done.stdout
    assert priorities(done) == {NCCL: {-5}}


@pytest.mark.parametrize("policy", [HIGHEST, AUTO], ids=["highest", "auto"])
def test_a_graph_without_communication_is_instantiated_as_asked(policy: str, bare: Runner, preloaded: Runner) -> None:
    """A node's own priority stays without effect, as it was."""
    words = f"ptx={NCCL},k stream=0 launch={COMM},1 graph node={BIG} nattr=0,8:-3 nget=0,8 "
    words += " ".join(f"make={form} run=0,1" for form in FORMS) + " graph node={COMM} make=flags run=0,1 sync"
    done, without = preloaded(words, policy), bare(words)
    same(done, without, but=["priority", "entry"])
    assert priorities(without)["k"] == priorities(done)["k"] == {0}


def test_the_programs_own_priority_of_a_node_counts(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} graph node={COMM} nattr=0,8:-2 nget=0,8 make=flags,8 run=0,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    same(done, without)
    assert priorities(done) == {NCCL: {-2}}


def test_under_inherit_nothing_is_different(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=-3 graph node={COMM} node={BIG} " + " ".join(f"make={form} run=1,1" for form in FORMS)
    words += f" begin=1 launch={COMM},1 launch={BIG},1 end=1 " + " ".join(f"make={form} run=1,1" for form in FORMS)
    done = preloaded(words, INHERIT)
    same(done, bare(words))
    assert (done.totals["communication"], done.totals["raised"]) == (2, 0)


def test_the_variable_that_switches_it_off_is_respected_and_said(bare: Runner, preloaded: Runner) -> None:
    env = {"CUDA_GRAPHS_USE_NODE_PRIORITY": "0"}
    words = f"ptx={NCCL} graph node={COMM} any={COMM} nget=0,8 make=flags run=0,1 sync"
    done, without = preloaded(words, HIGHEST, env=env), bare(words, env=env)
    same(done, without)
    assert done.totals["raised"] == 0
    assert done.reasons == {"graph_priority_ignored": 2}


def test_communication_by_the_policys_own_pattern(bare: Runner, preloaded: Runner) -> None:
    policy = rule("leave", more='communication: {kernels: [all, "mine*"], priority: highest}')
    words = "ptx=mine_reduce,k graph node=mine_reduce,16,256,0 node=k,10,256,0 make=1 run=0,1 sync"
    done = preloaded(words, policy)
    same(done, bare(words), but=["priority"])
    assert priorities(done) == {"mine_reduce": {-5}, "k": {0}}


def test_a_graph_of_many_nodes(bare: Runner, preloaded: Runner) -> None:
    """More than fit on the stack of the walk."""
    words = f"ptx={NCCL},k graph " + f"node=k,10,256,0 {'node=k,10,256,0 ' * 60}node={COMM} make=1 run=0,1 sync"
    done = preloaded(words, HIGHEST)
    same(done, bare(words), but=["priority"])
    assert priorities(done) == {NCCL: {-5}, "k": {0}}


@pytest.mark.hazard("peers", "computation would run before all other work in a graph where communication was before")
@pytest.mark.parametrize("make", ["flags,8", "params,8"])
@pytest.mark.parametrize("verb", ["setnode", "setnode1", "setany"])
def test_a_node_of_communication_that_becomes_computation_is_lowered(
    verb: str, make: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={COMM} node={BIG} {verb}=0,{BIG} nget=0,8 make={make} run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert f"{verb}: 0" in without.stdout
    same(done, without, but=["priority"])
    assert done.in_graphs == without.in_graphs


@pytest.mark.parametrize("verb", ["setnode", "setnode1", "setany"])
def test_a_captured_node_that_becomes_computation_has_the_priority_of_its_stream(
    verb: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx={NCCL},k stream=-2 begin=1 launch={COMM},1 launch={BIG},1 end=1 "
    words += f"{verb}=0,{BIG} nget=0,8 make=flags,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "attribute -2" in without.stdout
    same(done, without, but=["priority", "entry"])
    assert done.in_graphs == without.in_graphs


@pytest.mark.parametrize("verb", ["setnode", "setnode1", "setany"])
@pytest.mark.parametrize("priority", [-2, -5])
def test_a_priority_that_the_program_gave_stays(priority: int, verb: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={COMM} node={COMM} nattr=0,8:{priority} "
    words += f"{verb}=0,{BIG} nget=0,8 make=flags,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert f"attribute {priority}" in without.stdout
    same(done, without, but=["priority"])
    assert priorities(done)["k"] == priorities(without)["k"] == {priority}


def test_a_node_that_is_made_where_another_was_has_no_priority_of_the_program(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={COMM} nattr=0,8:-5 gdestroy graph node={COMM} "
    words += f"setnode=0,{BIG} nget=0,8 make=flags,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    same(done, without, but=["priority"])
    assert done.in_graphs == without.in_graphs


def test_copied_attributes_raise_no_computation(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={COMM} node={BIG} node={COMM} nattr=2,8:-5 node={BIG} "
    words += "ncopy=1,0 nget=1,8 ncopy=3,2 nget=3,8 make=flags,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    same(done, without, but=["priority"])
    assert [launch["priority"] for launch in done.in_graphs] == [-5, 0, -5, -5]


def test_a_copied_priority_is_the_programs(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={COMM} node={COMM} nattr=1,8:-5 ncopy=0,1 setnode=0,{BIG} nget=0,8 "
    words += "make=flags,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "attribute -5" in without.stdout
    same(done, without, but=["priority"])
    assert done.in_graphs == without.in_graphs
