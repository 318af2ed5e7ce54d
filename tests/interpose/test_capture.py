"""Launches into a capturing stream: the graph is exactly what the program makes it, whatever the policy would do."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, same, smallest_size

LAUNCH = f"launch=k,{BLOCKS},256,0"


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_first_launch_of_a_kernel_may_be_a_captured_one(
    way: str, load: str, bare: Runner, preloaded: Runner
) -> None:
    """Asking the driver about a kernel must not end the capture. The answer is another one afterwards."""
    words = f"{load}=k stream=0 begin=1 {LAUNCH},1 {LAUNCH},1 end=1 go=1,3 sync"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert "end: 0" in without.stdout
    assert "go: 0" in without.stdout
    same(done, without)
    assert done.reasons == {"captured": 2}
    assert preloaded(f"{words} {LAUNCH} {LAUNCH},1", ONE, way).sizes[-2:] == [smallest_size(1)] * 2


def test_a_kernel_that_was_shaped_before(bare: Runner, preloaded: Runner) -> None:
    """Also launches beside the capture, on other streams, are as asked while it is open."""
    words = (
        f"ptx=k,{NCCL} stream=0 stream=0 {LAUNCH},1 {LAUNCH},2 begin=1 launch={NCCL},16,256,0,1 {LAUNCH},1 {LAUNCH},2 "
    )
    words += f"end=1 go=1,2 {LAUNCH},1 sync"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert {launch["dynamic_shared"] for launch in done.in_graphs} == {0}
    assert done.reasons == {"shaped": 3, "captured": 2, "communication": 1}
    assert done.totals["graph_launches"] == 2


@pytest.mark.parametrize("spoil", ["launch=k,0,256,0,1", "sync"])
def test_a_capture_that_is_spoiled_is_over(spoil: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k stream=0 begin=1 {LAUNCH},1 {spoil} {LAUNCH},1 end=1 {LAUNCH},1 sync"
    done, without = preloaded(words, ONE), bare(words)
    assert done.stdout == without.stdout
    assert done.sizes[-1] == smallest_size(1)


def test_calls_that_end_no_capture(bare: Runner, preloaded: Runner) -> None:
    """The wrong stream, and a stream that captures already."""
    words = f"ptx=k stream=0 stream=0 begin=1 end=2 begin=1 {LAUNCH},1 end=1 {LAUNCH},1 end=1 {LAUNCH},1"
    done, without = preloaded(words, ONE), bare(words)
    assert done.stdout == without.stdout
    assert done.sizes[-3:] == [0, smallest_size(1), smallest_size(1)]


def test_a_driver_that_refuses_sizes(build: Build, preloaded: Runner) -> None:
    """The first launch outside a capture is refused, and is made again as asked."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("captured", "small_stack.c", "-DSTACK=262144", "-DCAPTURED=5", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_REFUSES": "1"}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, extended: 0\n"
    assert (done.totals["launches"], done.totals["refused"]) == (25, 1)
