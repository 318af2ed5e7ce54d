"""Kernel nodes that a program builds itself get what launches get, and show what the program set."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Done, Runner, rule, same, smallest_size

SIZE = smallest_size(1)
BIG = f"k,{BLOCKS},256,0"
ADDS = ("node", "node1", "any", "any2")
SETS = ("setnode", "setnode1", "setany")
EXEC_SETS = ("execnode", "execnode1", "execany")
FORMS = ("1", "2", "flags", "params", "params_ptsz")


def kernels_of_graphs(done: Done) -> list[tuple[str, int, int]]:
    return [(launch["kernel"], launch["blocks"], launch["dynamic_shared"]) for launch in done.in_graphs]


def as_alone(done: Done, without: Done) -> None:
    """The program saw the same, and its graphs ran the same; nodes may have been set back meanwhile."""
    assert (done.status, done.seen, done.stderr) == (without.status, without.seen, without.stderr)
    assert done.in_graphs == without.in_graphs


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_every_way_to_add_a_node(load: str, way: str, bare: Runner, preloaded: Runner) -> None:
    adds = [add for add in ADDS if load == "ptx" or add != "node1"]  # which takes functions only
    words = f"{load}=k graph " + " ".join(f"{add}={BIG} getnode={i} getnode1={i}" for i, add in enumerate(adds))
    words += " make=flags run=0,2 run_ptsz=0,1 sync"
    done, without = preloaded(words, ONE, way), bare(words, way)
    count = len(adds)
    assert without.stdout.count("node: 4000 blocks, 256 threads, 0 bytes") == 2 * count, without.stdout
    assert "run_ptsz: 0" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [SIZE] * (count + 3 * count)
    assert done.ways == {"graph_node": count}
    assert done.reasons == {"shaped": count}
    assert (done.totals["graph_launches"], done.totals["refused"]) == (3, 0)


@pytest.mark.parametrize("way", ["symbol", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_every_way_to_set_a_node(load: str, way: str, bare: Runner, preloaded: Runner) -> None:
    sets = [verb for verb in SETS if load == "ptx" or not verb.endswith("1")]
    exec_sets = [verb for verb in EXEC_SETS if load == "ptx" or not verb.endswith("1")]
    words = f"{load}=k graph node=k,10,256,64 getnode=0 "
    words += " ".join(f"{verb}=0,{BIG} getnode=0 getnode1=0 {verb}=0,k,10,256,64 getnode=0" for verb in sets)
    words += f" setnode=0,{BIG} make=flags run=0,1 "
    words += " ".join(f"{verb}=0,k,10,256,64 run=0,1 {verb}=0,{BIG} run=0,1" for verb in exec_sets) + " sync"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert not [
        line for line in without.stdout.splitlines() if "node" in line[:7] and not line.endswith((" 0", "bytes"))
    ]
    same(done, without, but=["dynamic_shared"])
    assert [launch["dynamic_shared"] for launch in done.in_graphs] == [SIZE] + [64, SIZE] * len(exec_sets)
    assert done.totals["launches"] == 1, "what is set again is not another launch"


@pytest.mark.parametrize("load", ["ptx", "lib", "captured", "capturedlib"])
def test_setting_what_is_shown_does_not_grow(load: str, bare: Runner, preloaded: Runner) -> None:
    made = f"graph node=k,{BLOCKS},256,100 "
    if load.startswith("captured"):
        made = f"stream=0 begin=1 launch=k,{BLOCKS},256,100,1 end=1 "
    words = f"{'lib' if 'lib' in load else 'ptx'}=k {made}" + "again_node=0 " * 5 + "getnode=0 make=flags run=0,1"
    done = preloaded(words, rule("{blocks_per_sm: 2}"))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [smallest_size(2)] * 7


def test_nodes_that_were_captured_show_what_was_asked(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k stream=0 begin=1 launch=k,{BLOCKS},256,100,1 launch=k,10,256,50,1 end=1 getnode=0 getnode=1 "
    words += (
        f"getnode1=0 again_node=0 make=flags run=1,1 setnode=0,k,{BLOCKS},512,100 getnode=0 make=flags run=1,1 sync"
    )
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert [launch["dynamic_shared"] for launch in done.in_graphs] == [SIZE, 50, SIZE, 50]


def test_of_two_sizes_that_became_one_neither_is_told(bare: Runner, preloaded: Runner) -> None:
    """A known limit: such nodes show what they are launched with, rather than the other one's size."""
    words = f"ptx=k stream=0 begin=1 launch=k,{BLOCKS},256,100,1 launch=k,{BLOCKS},256,200,1 end=1 getnode=0 getnode=1"
    done, without = preloaded(words, ONE), bare(words)
    assert [done.stdout.count(f"{size} bytes") for size in (100, 200, SIZE)] == [0, 0, 2]
    assert done.status == without.status


@pytest.mark.parametrize(
    ("node", "policy", "reason"),
    [
        ("k,1056,256,0", ONE, "one_wave"),
        (BIG, rule("leave"), "rule_leave"),
        (BIG, rule("{blocks_per_sm: 1}", match='kernel: "other"'), "no_rule"),
        (BIG, "observe", "observe_only"),
        (BIG, rule("{blocks_per_sm: 1}", when="overlapping"), "not_overlapping"),
        (BIG, rule("{blocks_per_sm: 1}", more='reads_dynamic_size: ["k"]'), "reads_dynamic_size"),
    ],
)
def test_left_alone_and_the_report_says_why(
    node: str, policy: str, reason: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k graph node={node} any={node} setnode=0,{node} getnode=0 make=flags execnode=0,{node} run=0,2 sync"
    done = preloaded(words, policy)
    same(done, bare(words))
    assert done.reasons == {reason: 2}


@pytest.mark.parametrize("attribute", ["4:2:1:1", "11:2:1:1", "2:1"])
def test_a_node_that_becomes_what_is_never_shaped_is_set_back(attribute: str, bare: Runner, preloaded: Runner) -> None:
    env = {"SIMGPU": "b200"}  # older GPUs have no preferred clusters
    words = f"ptx=k graph node={BIG} nattr=0,{attribute} getnode=0 make=flags run=0,1 sync"
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    as_alone(done, without)
    # What is set later is not shaped either.
    words = f"ptx=k graph node=k,100,256,0 nattr=0,{attribute} setnode=0,{BIG} setany=0,{BIG} make=flags run=0,1 "
    words += f"execnode=0,{BIG} run=0,1 sync"
    as_alone(preloaded(words, ONE, env=env), bare(words, env=env))


def test_attributes_that_are_copied_set_it_back_too(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,other graph node=k,100,256,0 nattr=0,4:2:1:1 node=other,{BLOCKS},256,0 ncopy=1,0 getnode=1 "
    words += "make=flags run=0,1 sync"
    done, without = preloaded(words, ONE), bare(words)
    assert [launch["cluster"] for launch in without.in_graphs] == [2, 2]
    as_alone(done, without)


def test_attributes_that_change_nothing_about_it_leave_it_shaped(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,other graph node={BIG} nattr=0,8:-1 node=other,{BLOCKS},256,0 ncopy=1,0 nget=1,8 getnode=1 "
    words += "make=flags run=0,1 sync"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [SIZE] * 4


@pytest.mark.parametrize(("add", "load"), [*((add, "ptx") for add in ADDS), ("node", "lib"), ("any2", "lib")])
def test_a_node_that_the_driver_refuses_is_made_as_asked(add: str, load: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k graph {add}={BIG} {add}={BIG} launch={BIG} make=flags run=0,1 sync"
    env = {"SIMGPU_REFUSE": "k:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    as_alone(done, without)
    assert done.sizes == [SIZE] + [0] * 5
    assert done.reasons == {"refused": 3}
    assert done.totals["refused"] == 1


@pytest.mark.parametrize("verb", [*SETS, *EXEC_SETS])
def test_a_setting_that_the_driver_refuses_is_made_as_asked(verb: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k graph node=k,10,256,0 make=flags {verb}=0,{BIG} {verb}=0,{BIG} getnode=0 make=flags run=0,1 sync"
    words = words if verb in SETS else words.replace(" make=flags run", " run")
    env = {"SIMGPU_REFUSE": "k:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    as_alone(done, without)
    assert done.sizes == [0, SIZE, 0, 0, 0]
    assert done.totals["refused"] == 1


@pytest.mark.parametrize("verb", ["node", "node1", "any", "any2"])
def test_more_than_the_programs_own_limit_is_refused_as_it_would_be_alone(
    verb: str, bare: Runner, preloaded: Runner
) -> None:
    """The library has raised the limit for its own sizes; the program must not profit."""
    words = f"ptx=k launch={BIG} graph {verb}={BIG} {verb}=k,{BLOCKS},256,60000 {verb}=k,10,256,60000 "
    words += f"setnode=0,k,{BLOCKS},256,60000 setany=0,k,10,256,300000 getnode=0 make=flags "
    words += f"execnode=0,k,{BLOCKS},256,60000 execany=0,k,1,256,60000 set=k,8,60000 {verb}=k,{BLOCKS},256,60000 "
    words += "make=flags run=0,1 sync"
    done, without = preloaded(words, ONE), bare(words)
    assert without.stdout.count(": 1\n") == 6, without.stdout
    assert (done.status, done.stdout) == (without.status, without.stdout)
    # The second one: of two sizes that become the same, neither could be told again.
    assert [size for _, _, size in kernels_of_graphs(done)] == [SIZE, 60000]


@pytest.mark.parametrize("kind", ["nodes", "captured", "child", "clone"])
@pytest.mark.parametrize("form", FORMS)
def test_a_graph_that_is_not_instantiated_is_set_back(form: str, kind: str, bare: Runner, preloaded: Runner) -> None:
    """Real drivers refuse a size when a node gets it; one that does so later must do no harm."""
    built = f"graph node={BIG} node=other,{BLOCKS},256,64,0 "
    if kind == "captured":
        built = f"begin=1 launch=k,{BLOCKS},256,0,1 launch=other,{BLOCKS},256,64,1 end=1 "
    elif kind in ("child", "clone"):
        built += {"child": "graph child=0 ", "clone": "clone "}[kind]
    words = f"ptx=k,other stream=0 {built}make={form} run=1,2 sync "
    words += "" if kind in ("child", "clone") else "getnode=0 getnode=1 again_node=0 "
    words += "make=flags run=1,1 sync"
    env = {"SIMGPU_REFUSE_INSTANTIATE": "k:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert without.stdout.count("make: 0") == 2, without.stdout
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
    assert [size for _, _, size in kernels_of_graphs(done)] == [0, 64] * 3
    assert done.totals["refused"] >= 1


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_that_is_wrong_by_itself_fails_as_it_would_alone(form: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,wrong set=wrong,8,70000 graph node={BIG} node=wrong,{BLOCKS},256,60000 make={form} getnode=0 "
    words += "getnode=1"
    env = {"SIMGPU_REFUSE_INSTANTIATE": "wrong:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert "make: 1" in without.stdout
    assert done.stdout == without.stdout


def test_an_executable_graph_is_updated_from_another(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k graph node={BIG} make=flags run=0,1 graph node=k,{BLOCKS},512,0 update run=0,1 "
    words += "graph node=k,10,64,32 update run=0,1 sync"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert kernels_of_graphs(done) == [("k", BLOCKS, SIZE), ("k", BLOCKS, SIZE), ("k", 10, 32)]


def test_nodes_for_another_device_than_the_current_one(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k device=1 graph node={BIG} any={BIG} make=flags run=0,1 device=0 graph node={BIG} make=flags run=0,1"
    env = {"SIMGPU": "h100,2"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.totals["refused"] == 0


def test_nodes_that_are_no_kernels_and_nonsense(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k graph node=k,0,256,0 any=k,1,4096,0 node1=k,1,0,0 node={BIG} setnode=0,k,0,1,0 make=flags "
    words += "execany=0,k,0,1,0 graph child=0 make=1 run=0,1 sync"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])


@pytest.mark.hazard("peers", "a node keeps an attribute that the driver would have refused")
@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("shaped", [True, False])
@pytest.mark.parametrize("attribute", ["8:-1", "4:2:1:1", "2:1", "14:50"])
def test_an_attribute_of_a_node_beyond_the_programs_limit_is_refused(
    attribute: str, shaped: bool, load: str, bare: Runner, preloaded: Runner
) -> None:
    """The program has lowered the limit since; the library has raised it for its own sizes."""
    number = attribute.split(":", maxsplit=1)[0]
    node = f"k,{BLOCKS if shaped else 10},256,60000"
    words = f"{load}=k set=k,8,60000 launch={BIG} graph node={node} node={node} set=k,8,50000 "
    words += f"nattr=0,{attribute} nget=0,{number} ncopy=0,1 getnode=0 get=k,8 launch={BIG} "
    words += f"set=k,8,60000 nattr=1,8:-1 nget=1,8 getnode=1 launch={BIG} get=k,8 make=flags run=0,1 sync"
    done, without = preloaded(words, ONE), bare(words)
    assert without.stdout.count("nattr: 0\n") == 1
    assert (done.status, done.seen, done.stderr) == (without.status, without.seen, without.stderr)
    assert done.totals["refused"] == 0


@pytest.mark.hazard(
    "peers", "setting an attribute of a node would fail, because its kernel was launched with two sizes"
)
@pytest.mark.parametrize("attribute", ["8:-2", "11:2:1:1"])
def test_an_attribute_is_set_where_the_size_that_was_asked_for_is_not_known(
    attribute: str, bare: Runner, preloaded: Runner
) -> None:
    words = (
        f"ptx=k stream=0 graph node=k,{BLOCKS},256,1024 launch=k,{BLOCKS},256,0,1 nattr=0,{attribute} ncopy=0,0 sync"
    )
    done, without = preloaded(words, ONE), bare(words)
    assert "nattr: 0" in without.stdout
    assert (done.status, done.seen, done.stderr) == (without.status, without.seen, without.stderr)
