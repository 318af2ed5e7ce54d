"""Launches into a capturing stream: the capture goes on, and the graph runs with the sizes that the report counts."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Done, Runner, rule, same, smallest_size


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_first_launch_of_a_kernel_may_be_a_captured_one(
    way: str, load: str, bare: Runner, preloaded: Runner
) -> None:
    """Asking the driver about a kernel must not end the capture."""
    words = f"{load}=k stream=0 begin=1 launch=k,{BLOCKS},256,0,1 launch=k,{BLOCKS},256,0,1 end=1 go=1,3 sync"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert "end: 0" in without.stdout
    assert "go: 0" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.totals["launches"] == 2
    assert [launch["dynamic_shared"] for launch in done.launches if launch["captured"]] == [smallest_size(1)] * 2


def test_communication_is_raised_inside_a_graph(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 begin=1 launch={NCCL},16,256,0,1 launch=k,{BLOCKS},256,0,1 end=1 go=1,2 sync"
    done, without = preloaded(words, rule("{blocks_per_sm: 1}", more="communication: {priority: highest}")), bare(words)
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    captured = [launch["priority"] for launch in done.launches if launch["captured"]]
    assert captured == [-5, 0]


def refused_while_capturing(preloaded: Runner, between: str) -> Done:
    """Two captured launches of a kernel with whose larger size a capture is spoiled; then another capture."""
    launch = f"launch=k,{BLOCKS},256,0"
    words = f"ptx=k stream=0 begin=1 {launch},1 {launch},1 end=1 {between}begin=1 {launch},1 end=1 go=1,2 sync"
    return preloaded(words, ONE, env={"SIMGPU_REFUSE": "k:50000"})


def test_a_launch_refused_while_capturing_spoils_the_capture(preloaded: Runner) -> None:
    """So does the real driver: asking as the program did comes too late. Its answers are the program's."""
    done = refused_while_capturing(preloaded, f"launch=k,{BLOCKS},256,0,1 ")
    answers = [line for line in done.stdout.splitlines() if line.startswith(("launch", "end", "go"))]
    assert answers == ["launch: 901", "launch: 901", "end: 901", "launch: 0", "launch: 0", "end: 0", "go: 0"]
    assert [launch["result"] for launch in done.launches[:2]] == [701, 901]
    assert [launch["dynamic_shared"] for launch in done.launches if not launch["result"]] == [0] * 4
    assert done.totals["launches"] == 4


def test_a_kernel_that_spoiled_a_capture_is_left_alone(preloaded: Runner) -> None:
    """The next capture is the program's own."""
    done = refused_while_capturing(preloaded, "")
    answers = [line for line in done.stdout.splitlines() if line.startswith(("launch", "end", "go"))]
    assert answers == ["launch: 901", "launch: 901", "end: 901", "launch: 0", "end: 0", "go: 0"]
    assert done.totals["refused"] == 1


def test_success_while_capturing_proves_nothing(build: Build, preloaded: Runner) -> None:
    """The driver looks at a captured launch later. The first one outside is refused, and is made again as asked."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("captured", "small_stack.c", "-DSTACK=262144", "-DCAPTURED=5", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_REFUSES": "1"}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, extended: 0\n"
    assert (done.totals["launches"], done.totals["shaped"], done.totals["refused"]) == (25, 5, 1)
