"""Executable graphs that hold raised communication: they are updated, and launched, as they would be alone."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Done, Runner, rule, same, smallest_size

HIGHEST = rule("leave", more="communication: {priority: highest}")
AUTO = rule("leave", more="communication: {priority: auto}")
SHAPED = rule("{blocks_per_sm: 1}", more="communication: {priority: highest}")
COMM, BIG, SMALL = f"{NCCL},16,256,0", f"k,{BLOCKS},256,0", "k,16,256,0"
UPDATES = ("update", "update1")
FLAGS = ("0", "8")
ENDS_AUTO = f"launch={COMM},1 launch=k,1000,256,0,0 "  # a grid of one wave beside communication


def captured(*kernels: str, stream: int = 1) -> str:
    return f"begin={stream} " + " ".join(f"launch={kernel},{stream}" for kernel in kernels) + f" end={stream} "


def built(*kernels: str) -> str:
    return "graph " + " ".join(f"node={kernel}" for kernel in kernels) + " "


def of_graphs(done: Done) -> list[tuple[str, int]]:
    return [(launch["kernel"], launch["priority"]) for launch in done.in_graphs]


def as_alone(done: Done, without: Done) -> None:
    same(done, without, but=["priority", "entry", "dynamic_shared"])


# ---- Updates ----


@pytest.mark.hazard("peers", "a graph that was captured while communication was raised cannot be updated any more")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("flags", FLAGS)
def test_auto_ends_between_two_captures(flags: str, update: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG, COMM)}make=flags,{flags} run=1,1 "
    words += f"{ENDS_AUTO}{captured(COMM, SMALL, COMM)}{update} run=1,1 nget=0,8 nget=2,8 sync"
    done, without = preloaded(words, AUTO), bare(words)
    assert "update result 0" in without.stdout
    as_alone(done, without)
    assert done.reasons["one_wave_neighbour"] == 2
    assert of_graphs(done) == [(NCCL, -5), ("k", 0), (NCCL, -5)] * 2


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("flags", FLAGS)
def test_it_is_updated_again_and_again(flags: str, update: str, bare: Runner, preloaded: Runner) -> None:
    again = f"{captured(COMM, BIG)}{update} run=1,1 "
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}make=flags,{flags} run=1,1 "
    words += again * 2 + ENDS_AUTO + again * 2 + "sync"
    done, without = preloaded(words, AUTO), bare(words)
    as_alone(done, without)
    assert of_graphs(done) == [(NCCL, -5), ("k", 0)] * 5


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("policy", [HIGHEST, SHAPED, "h100-paper"], ids=["highest", "shaped", "h100-paper"])
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("way", [captured, built], ids=["captured", "built"])
def test_communication_becomes_another_kernel_and_back(
    way: object, flags: str, policy: str, update: str, bare: Runner, preloaded: Runner
) -> None:
    make = captured if way is captured else built
    words = f"ptx=k,{NCCL} stream=0 {make(COMM, BIG)}make=flags,{flags} run=1,1 "
    words += f"{make(BIG, BIG)}{update} run=1,1 nget=0,8 {make(COMM, BIG)}{update} run=1,1 "
    words += f"{make(BIG, COMM)}{update} run=1,1 {make(COMM, COMM)}{update} run=1,1 sync"
    done, without = preloaded(words, policy), bare(words)
    assert without.stdout.count("update result 0") == 4
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("flags", FLAGS)
def test_a_graph_without_communication_gets_some(flags: str, update: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 launch={COMM},1 {captured(BIG, BIG)}make=flags,{flags} run=1,1 "
    words += f"{captured(BIG, COMM)}{update} run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "update result 0" in without.stdout
    as_alone(done, without)
    assert of_graphs(done)[2:] == [("k", 0), (NCCL, 0)]


@pytest.mark.parametrize("update", UPDATES)
def test_the_updating_graph_was_captured_at_another_priority(update: str, bare: Runner, preloaded: Runner) -> None:
    """Nobody asked for priorities of nodes, so they may differ."""
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}make=flags run=1,1 "
    words += f"stream=-2 {captured(COMM, BIG, stream=2)}{update} nget=1,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "attribute -2" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(
    "other",
    [
        built(COMM, BIG, BIG),  # one more
        f"graph node={COMM} node={BIG},0 ",  # an edge more
        f"graph child=0 node={BIG} ",  # of another kind
        f"graph node={COMM} node={SMALL} nattr=1,2:1 ",  # cooperative
        f"graph node={COMM} nattr=0,2:1 node={SMALL} ",
        "graph ",  # nothing
    ],
)
def test_what_fails_alone_fails_likewise(other: str, flags: str, update: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, SMALL)}make=flags,{flags} run=1,1 "
    words += f"{ENDS_AUTO}{other}{update} nget=0,8 run=1,1 sync"
    done, without = preloaded(words, AUTO), bare(words)
    assert f"{update}: 910" in without.stdout
    assert "attribute" in without.stdout
    # What an added node of communication shows is a known limit.
    assert done.stdout.replace("attribute -5", "attribute 0") == without.stdout
    assert of_graphs(done) == [(NCCL, -5), ("k", 0)] * 2


@pytest.mark.parametrize("update", UPDATES)
def test_a_priority_that_the_program_changes_is_refused_as_alone(update: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, BIG)}make=flags,8 "
    words += f"{built(COMM, BIG)}nattr=1,8:-2 {update} nget=1,8 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "update result 8, node 1" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
def test_graphs_in_graphs(update: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, BIG)}graph child=0 node={BIG} make=flags run=1,1 "
    words += f"{ENDS_AUTO}{built(COMM, SMALL)}graph child=2 node={SMALL} {update} run=1,1 "
    words += f"{built(SMALL, SMALL)}graph child=4 node={SMALL} {update} run=1,1 sync"
    done, without = preloaded(words, AUTO), bare(words)
    assert without.stdout.count("update result 0") == 2
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
def test_a_size_that_only_an_update_refuses_is_taken_back(update: str, bare: Runner, preloaded: Runner) -> None:
    """Like a graph that is not instantiated with our sizes."""
    words = f"ptx=k,other graph node=other,{BLOCKS},256,0 make=flags run=0,1 "
    words += f"graph node={BIG} {update} getnode=0 run=0,1 sync"
    env = {"SIMGPU_REFUSE_INSTANTIATE": "k:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert "update result 0" in without.stdout
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
    assert [launch["dynamic_shared"] for launch in done.in_graphs] == [smallest_size(1), 0]
    assert done.totals["refused"] == 1


# ---- One node of an executable graph ----


@pytest.mark.parametrize("verb", ["execchild", "execchildany"])
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("becomes", [(COMM, SMALL), (SMALL, BIG), (COMM, COMM)])
def test_a_child_graph_of_an_executable_graph_becomes_another(
    becomes: tuple[str, ...], flags: str, verb: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}{ENDS_AUTO}{captured(*becomes)}"
    words += f"graph child=0 node={BIG} make=flags,{flags} run=1,1 {verb}=0,1 run=1,1 use=1 make=flags run=1,1 sync"
    done, without = preloaded(words, AUTO), bare(words)
    assert f"{verb}: 0" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("verb", ["execchild", "execchildany"])
def test_a_child_graph_that_does_not_fit_is_refused(verb: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}{ENDS_AUTO}{captured(COMM)}"
    words += f"graph child=0 make=flags run=1,1 {verb}=0,1 run=1,1 sync"
    done, without = preloaded(words, AUTO), bare(words)
    assert f"{verb}: 910" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("verb", ["execnode", "execnode1", "execany"])
@pytest.mark.parametrize("flags", FLAGS)
def test_a_node_of_communication_becomes_another_kernel(flags: str, verb: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, BIG)}make=flags,{flags} run=1,1 {verb}=0,{BIG} run=1,1 "
    words += f"{verb}=0,{COMM} run=1,1 {verb}=1,{COMM} run=1,1 eflags sync"
    done, without = preloaded(words, "h100-paper"), bare(words)
    assert without.stdout.count(f"{verb}: 0") == 3
    as_alone(done, without)


# ---- The priority of the stream that launches ----


@pytest.mark.hazard("peers", "in graphs that hold communication, computation loses the priority of the stream")
@pytest.mark.parametrize("way", [captured, built], ids=["captured", "built"])
@pytest.mark.parametrize(("capture", "launch"), [(0, -4), (-4, 0), (-4, -4), (-3, -4)])
def test_computation_runs_at_the_priority_of_the_stream(
    capture: int, launch: int, way: object, bare: Runner, preloaded: Runner
) -> None:
    make = captured(COMM, BIG) if way is captured else built(COMM, BIG)
    words = f"ptx=k,{NCCL} stream={capture} stream={launch} {make}make=flags run=2,1 eflags sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    as_alone(done, without)
    assert dict(of_graphs(done))["k"] == dict(of_graphs(without))["k"] == launch


def test_computation_alone_runs_at_the_priority_of_a_stream_that_is_made_later(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {captured(BIG)}make=flags stream=-4 run=2,1 run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    as_alone(done, without)
    assert of_graphs(done) == of_graphs(without) == [("k", -4), ("k", 0)]


@pytest.mark.parametrize("form", ["1", "2", "flags", "params", "params_ptsz"])
def test_it_runs_at_it_in_every_form(form: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 stream=-4 {captured(COMM, BIG)}make={form} run=2,1 run=1,1 eflags sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    as_alone(done, without)
    assert [number for kernel, number in of_graphs(done) if kernel == "k"] == [-4, 0]


@pytest.mark.parametrize("made", ["stream=0 sset=2,8,-4", "stream=0 sset_ptsz=2,8,-4", "green=64 greenstream=0,-4"])
def test_however_a_stream_got_its_priority(made: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {made} {captured(COMM, BIG)}make=flags run=2,1 eflags sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    as_alone(done, without)
    assert dict(of_graphs(without))["k"] == dict(of_graphs(done))["k"] == -4


@pytest.mark.parametrize("shows", [{}, {"SIMGPU_EXEC_FLAGS": "all"}], ids=["as 580", "all"])
@pytest.mark.parametrize("form", ["1", "2", "flags", "params", "params_ptsz"])
@pytest.mark.parametrize("flags", ["0", "1", "8", "9"])
def test_a_graph_has_the_flags_that_the_program_gave_it(
    flags: str, form: str, shows: dict[str, str], bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}make={form},{flags} eflags run=1,1 "
    words += f"{captured(BIG, BIG)}make={form},{flags} eflags edestroy make={form},8 eflags sync"
    done, without = preloaded(words, HIGHEST, env=shows), bare(words, env=shows)
    assert ("flags 8\n" in without.stdout) == bool(shows and form not in ("1", "2"))
    as_alone(done, without)
    assert of_graphs(done) == [(NCCL, -5), ("k", 0)]


def test_a_priority_without_effect_stays_without(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, BIG)}nattr=1,8:-3 make=flags run=1,1 eflags sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    as_alone(done, without)
    assert dict(of_graphs(done))["k"] == 0


# ---- What an executable graph holds ----


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("holds", [True, False])
def test_windows_know_what_it_was_updated_to(holds: bool, update: str, bare: Runner, preloaded: Runner) -> None:
    """Computation is shaped beside communication only, and a graph may hold some, or none any more."""
    before, after = (SMALL, COMM) if holds else (COMM, SMALL)
    words = f"ptx=k,{NCCL} stream=0 stream=0 graph node={COMM} {built(before)}make=flags "
    words += f"{built(after)}{update} run=1,1 launch={BIG},2 sync"
    policy = rule("{blocks_per_sm: 1}", when="overlapping", more="communication: {priority: highest}")
    done, without = preloaded(words, policy), bare(words)
    as_alone(done, without)
    assert done.sizes[-1] == (smallest_size(1) if holds else 0)


@pytest.mark.hazard("peers", "a graph that the program keeps at its own priorities would be updated by one of others")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (built(COMM, COMM), f"{built(COMM, BIG)}nattr=1,8:-2 "),
        (built(COMM, BIG), f"{built(COMM, BIG)}nattr=0,8:-2 "),
        (f"{built(COMM, COMM)}nattr=1,8:-2 ", built(COMM, COMM)),
        (f"{built(COMM, BIG)}nattr=1,8:-2 ", built(COMM, COMM)),
        (f"{built(COMM, BIG)}nattr=0,8:-3 nattr=1,8:-2 ", built(COMM, BIG)),
    ],
)
def test_the_programs_own_priorities_are_compared_as_alone(
    before: str, after: str, update: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 {before}make=flags,8 run=1,1 {after}{update} run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert f"{update}: 910" in without.stdout
    as_alone(done, without)


def at(stream: int, *kernels: str) -> str:
    """Captured on a stream of this priority."""
    return captured(*kernels, stream={0: 1, -2: 2, -5: 3}[stream])


@pytest.mark.hazard("peers", "a graph captured on a stream of the program's priority could not be updated any more")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (at(-2, COMM, BIG), at(-2, BIG, BIG)),
        (at(-2, BIG, BIG), at(-2, COMM, BIG)),
        (at(-2, COMM, BIG), at(-2, COMM, SMALL)),
        (at(-5, COMM, BIG), at(-5, BIG, COMM)),
        (f"{built(COMM, COMM)}nattr=0,8:-5 ", f"{built(BIG, COMM)}nattr=0,8:-5 "),
        (f"graph node={COMM} node={COMM},0 nattr=0,8:-2 ncopy=1,0 ", at(-2, BIG, BIG)),
        (f"{at(-2, COMM, COMM)}clone ", at(-2, BIG, COMM)),
        (at(-2, BIG, COMM), f"{at(-2, COMM, COMM)}clone "),
    ],
)
def test_a_captured_node_is_compared_at_the_priority_of_its_stream(
    before: str, after: str, update: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 stream=-2 stream=-5 {before}make=flags,8 run=1,1 {after}{update} run=1,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    if "clone" not in words:
        assert "update result 0" in without.stdout
    as_alone(done, without)


@pytest.mark.hazard("peers", "a graph that the program keeps at its own priorities would be updated by one of others")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (at(0, COMM, BIG), at(-2, COMM, BIG)),
        (at(-2, COMM, BIG), at(0, COMM, BIG)),
        (at(-2, COMM, BIG), f"{built(COMM)}node={BIG},0 nattr=1,8:-2 "),
        (at(-5, COMM, BIG), at(0, COMM, BIG)),
        (at(0, COMM, BIG), at(-5, COMM, BIG)),
        (f"{built(COMM)}nattr=0,8:-5 ", built(COMM)),
        (built(COMM), f"{built(COMM)}nattr=0,8:-5 "),
        (at(0, COMM, BIG, BIG), f"{at(-2, COMM)}"),  # another topology, too
    ],
)
def test_another_priority_of_the_stream_is_refused(
    before: str, after: str, update: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 stream=-2 stream=-5 {before}make=flags,8 run=1,1 {after}{update} sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert f"{update}: 910" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("flags", FLAGS)
def test_nobody_asks_at_which_node_an_update_fails(flags: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM)}make=flags,{flags} run=1,1 {built(BIG)}update0 run=1,1 "
    words += f"{built(BIG, BIG)}update0 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "update result 0" in without.stdout
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("other", [3, 0])
def test_a_priority_beyond_the_range_is_compared_as_it_was_set(
    other: int, flags: str, update: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,{NCCL} stream=0 {built(COMM, COMM)}nattr=0,8:3 make=flags,{flags} run=1,1 "
    words += f"{built(COMM, COMM)}nattr=0,8:{other} {update} run=1,1 {update} nget=0,8 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert ("update result 0" in without.stdout) == (other == 3 or flags == "0")
    as_alone(done, without)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_limit_of_the_updating_kernel_was_lowered(load: str, update: str, bare: Runner, preloaded: Runner) -> None:
    """The driver sets no priority then, and the limit is the program's again afterwards."""
    words = f"{load}={NCCL},k stream=0 {built(BIG)}make=flags,8 run=1,1 {built(f'{NCCL},16,256,1024')}"
    words += f"set={NCCL},8,100 {update} get={NCCL},8 launch={NCCL},16,256,101,1 launch={NCCL},16,256,100,1 sync"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert "update result 0" in without.stdout
    assert "launch: 1" in without.stdout
    assert (done.status, done.seen) == (without.status, without.seen)


@pytest.mark.hazard(
    "peers", "in a job that makes graphs again and again, one that it keeps could not be updated any more"
)
def test_graphs_that_were_destroyed_take_no_room(bare: Runner, preloaded: Runner) -> None:
    """Whether an executable graph has our flag is kept for 16,384 of them, and those that ended do not count."""
    env = {"SIMGPU_HANDLES": "fresh", "SIMGPU_EXEC_FLAGS": "all"}
    words = f"ptx=k,{NCCL} stream=0 {captured(COMM, BIG)}make=flags eother emany=100000 eother eflags "
    words += f"{ENDS_AUTO}{captured(COMM, SMALL)}update run=1,1 sync"
    done, without = preloaded(words, AUTO, env=env), bare(words, env=env)
    assert "update result 0" in without.stdout
    as_alone(done, without)
