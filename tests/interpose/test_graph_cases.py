"""Nodes of graphs, devices, and what the program may see of what was done to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, rule, same, smallest_size

from pyshim.launch import plan

SIZE = smallest_size(1)
HIGHEST = "communication: {priority: highest}"


def program(build: Build) -> Path:
    return build("graph-cases", "graph_cases.c", link=[plan.SIMULATED_DRIVER])


def test_a_node_for_another_device_decides_nothing_for_that_device(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Its function is launched on its own GPU afterwards, which is of another kind."""
    env = {"SIMGPU": "h100+a100"}
    done = preloaded(["other_device"], ONE, program=program(build), env=env)
    same(done, bare(["other_device"], program=program(build), env=env), but=["dynamic_shared"])
    assert done.sizes == [0, SIZE]


def test_a_node_with_a_programmatic_dependency_is_never_shaped(build: Build, bare: Runner, preloaded: Runner) -> None:
    done = preloaded(["programmatic"], ONE, program=program(build))
    same(done, bare(["programmatic"], program=program(build)))
    assert "programmatic" in done.reasons


@pytest.mark.parametrize("attribute", ["4 2", "11 2"])
def test_a_node_that_must_not_be_shaped_stays_so_when_it_is_set_again(
    attribute: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    words, env = f"attribute {attribute}", {"SIMGPU": "b200"}  # older GPUs have no preferred clusters
    without, done = bare(words, program=program(build), env=env), preloaded(words, ONE, program=program(build), env=env)
    assert without.stdout.count(": 0\n") == 6
    assert done.stdout == without.stdout
    assert done.sizes[-1] == 0


def test_a_captured_kernel_of_a_library_shows_what_was_asked(build: Build, bare: Runner, preloaded: Runner) -> None:
    done = preloaded(["captured"], ONE, program=program(build))
    same(done, bare(["captured"], program=program(build)), but=["dynamic_shared"])
    assert done.sizes == [SIZE]


def test_the_priority_of_a_captured_kernel_of_a_library_is_honoured(build: Build, preloaded: Runner) -> None:
    done = preloaded(["captured_communication"], HIGHEST, program=program(build))
    assert done.totals["raised"] == 1
    assert [launch["priority"] for launch in done.launches if launch["graph"]] == [-5]


def test_the_priority_of_what_a_communication_library_launched_is_honoured(build: Build, preloaded: Runner) -> None:
    """Its kernel's name says nothing: it is communication by who launches it."""
    words = f"nccl={build.nccl()} ptx=k stream=0 begin=1 ncclk=k,9,32,0,1 end=1 go=1,1"
    done = preloaded(words, HIGHEST)
    assert done.totals["raised"] == 1
    assert [launch["priority"] for launch in done.launches if launch["graph"]] == [-5]


def test_a_node_that_is_wrong_by_itself_says_nothing_about_its_kernel(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    done = preloaded(["wrong_node"], ONE, program=program(build))
    without = bare(["wrong_node"], program=program(build))
    assert done.stdout == without.stdout
    assert done.sizes[-1] == SIZE
    assert done.totals["refused"] == 0


def test_what_was_asked_about_stays_so_whichever_call_names_it(build: Build, bare: Runner, preloaded: Runner) -> None:
    """Enumerated without a name, asked how many of its blocks fit, and got by its name afterwards."""
    done = preloaded(["enumerated"], ONE, program=program(build))
    same(done, bare(["enumerated"], program=program(build)))
    assert done.reasons == {"occupancy_asked": 1}


@pytest.mark.parametrize("launched_before", [1, 0])
def test_a_limit_that_is_set_by_the_function_of_a_librarys_module_counts(
    launched_before: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """As for the function that cuKernelGetFunction gives: it is the same one."""
    words = f"function_of_module {launched_before}"
    done = preloaded(words, ONE, program=program(build))
    same(done, bare(words, program=program(build)), but=["dynamic_shared"])
    assert done.totals["refused"] == 0


def test_a_function_does_not_show_the_carve_out_of_its_kernel(bare: Runner, preloaded: Runner) -> None:
    """A function that was made from a kernel has the kernel's preference until it gets its own."""
    words = f"lib=k launch=k,{BLOCKS},256,0 get=k,9 function=k get=k,9"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [SIZE]


# ---- Priorities ----


def test_auto_raises_communication(preloaded: Runner) -> None:
    """The default, as long as nothing speaks against it: the greatest priority."""
    words = f"ptx=k,{NCCL} stream=0 repeat=2 launch={NCCL},16,256,0,1 launch=k,{BLOCKS},256,0"
    done = preloaded(words, rule("leave", more="communication: {priority: auto}"))
    assert done.priorities == [-5, -5, 0]
    assert done.totals["raised"] == 2


def test_auto_ends_where_streams_are_raised_too(preloaded: Runner) -> None:
    """A grid that fills the GPU in one wave, on another stream than the communication: the default one."""
    more = "critical: {host_waits: false, feeding: false}\ncommunication: {priority: auto}"
    small, big = f"launch=k,10,256,0,1 launch={NCCL},16,256,0,1 ", "launch=k,4000,256,0,2 "
    words = f"ptx=k,{NCCL} stream=0 stream=0 {(big + small) * 6}launch=k,1000,256,0,0 launch={NCCL},16,256,0,1"
    done = preloaded(words, rule("leave", more=more))
    assert done.priorities[-2:] == [0, -5], "the stream stays raised"
    assert done.reasons["one_wave_neighbour"] >= 1


def test_auto_does_not_end_before_there_was_communication(preloaded: Runner) -> None:
    footprint = "{threads: 640, registers: 96, static_shared_memory: 0, dynamic_shared_memory: 82240}"
    policy = rule("leave", more=f"communication: {{priority: auto, footprint: {footprint}}}")
    words = f"ptx=k,{NCCL} stream=0 stream=0 launch=k,1000,256,0,1 launch={NCCL},16,256,0,2"
    assert preloaded(words, policy).priorities == [0, -5]


def test_auto_leaves_what_runs_at_the_greatest_priority_already(bare: Runner, preloaded: Runner) -> None:
    """A program that has communication at several priorities, the greatest among them."""
    words = f"ptx={NCCL} stream=-5 stream=0 " + f"launch={NCCL},16,256,0,1 launch={NCCL},16,256,0,2 " * 2
    done = preloaded(words, "communication: {priority: auto}")
    same(done, bare(words))
    assert done.priorities == [-5, 0] * 2
    assert done.reasons == {"program_sets_priority": 4}


def test_auto_is_not_ended_by_what_we_raised_ourselves(build: Build, preloaded: Runner) -> None:
    policy = 'communication: {priority: auto, streams: {created_by: ["libnccl.so*"], priority: -2}}'
    words = f"nccl={build.nccl()} ptx=k nccls" + " ncclk=k,9,32,0,1" * 2
    done = preloaded(words, policy)
    assert done.totals["streams_raised"] == 1
    assert done.priorities == [-5, -5]


def test_a_launch_that_is_wrong_by_itself_says_nothing_about_its_kernel(bare: Runner, preloaded: Runner) -> None:
    """More blocks than any grid may have, and then one that is right."""
    words = f"ptx=k launch=k,3000000000,256,0 launch=k,{BLOCKS},256,0"
    done, without = preloaded(words, ONE), bare(words)
    assert "launch: 1\n" in without.stdout
    assert done.stdout == without.stdout
    assert done.sizes[-1] == SIZE
    assert done.totals["refused"] == 0


def test_every_thread_has_a_default_stream_of_its_own(preloaded: Runner) -> None:
    """A grid that fills the GPU in one wave, on that of another thread than the communication's."""
    words = f"ptx=k,{NCCL} launch_ptsz={NCCL},16,256,0 thread launch_ptsz=k,1000,256,0 end_thread "
    words += f"launch_ptsz={NCCL},16,256,0"
    done = preloaded(words, rule("leave", more="communication: {priority: auto}"))
    assert done.priorities == [-5, 0, 0]
    assert done.reasons["one_wave_neighbour"] == 1
