"""Launches by the calls before CUDA 4.0, and on several devices at once: counted, and passed on as they are."""

from __future__ import annotations

from typing import Callable

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same

SHAPE = "block=k,256,1,1 bytes=k,1024"


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address", "proc_address_v2"])
@pytest.mark.parametrize("policy", [ONE, "observe"], ids=["shape", "observe"])
def test_counted_and_passed_on(policy: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {SHAPE} stream=-1 legacy=k grid=k,{BLOCKS},1 grid=k,2,2 async=k,{BLOCKS},1,1 "
    words += "multi=1,k,132,256,0,1 sync"
    done, without = preloaded(words, policy, way), bare(words, way)
    assert "grid: 0" in without.stdout
    same(done, without)
    assert done.totals["launches"] == 5
    assert done.reasons == {"unknown_footprint": 4, "cooperative": 1}
    assert done.totals["launches"] == 5


def test_on_several_devices(bare: Runner, preloaded: Runner) -> None:
    """As far as the driver does it; the number is not believed."""
    words = "ptx=k stream=0 " + " ".join(f"multi={count},k,132,256,0,1" for count in (0, 1, 2, 16)) + " sync"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without)
    assert done.reasons == {"cooperative": 19}


def test_wrong_ones_are_the_drivers_to_refuse(bare: Runner, preloaded: Runner) -> None:
    words = "ptx=k grid=k,1,1 block=k,0,0,0 block=k,4096,1,1 legacy=k block=k,32,1,1 grid=k,0,1 grid=k,-1,1 "
    words += "bytes=k,99999999 grid=k,1,1 multi=-1,k,1,32,0,0"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without)


def test_a_kernel_that_is_shaped_elsewhere(bare: Runner, preloaded: Runner) -> None:
    big = f"launch=k,{BLOCKS},256,0"
    words = f"ptx=k {big} {big} block=k,256,1,1 bytes=k,40000 grid=k,{BLOCKS},1 bytes=k,0 grid=k,{BLOCKS},1 {big} sync"
    done, without = preloaded(words, ONE), bare(words)
    assert (done.status, done.seen) == (without.status, without.seen)


@pytest.mark.parametrize("sizes", [(0,), (0, 0), (0, 40000), (40000, 0)], ids=str)
@pytest.mark.parametrize("launch", [f"{SHAPE} grid=k,1,1", "legacy=k", "multi=1,k,132,256,0,1"])
def test_attributes_of_its_nodes_can_be_set(
    launch: str, sizes: tuple[int, ...], bare: Runner, preloaded: Runner
) -> None:
    """The limit of the kernel is the program's again, and the size of a node that was asked for may not be known."""
    words = "ptx=k stream=0 graph " + " ".join(f"node=k,{BLOCKS},256,{size}" for size in sizes)
    words += f" {launch} nattr=0,8:-2 nget=0,8 ncopy=0,0 get=k,8 launch=k,{BLOCKS},256,49153 make=flags run=0,1 sync"
    done, without = preloaded(words, ONE), bare(words)
    assert "nattr: 0" in without.stdout
    assert "ncopy: 0" in without.stdout
    assert "launch: 1" in without.stdout
    assert (done.status, done.seen) == (without.status, without.seen)


Pair = Callable[[int], tuple[list[str], list[str]]]


@pytest.fixture
def pair(build: Build, bare: Runner, preloaded: Runner) -> Pair:
    """pair(bytes): what the driver says to launches of both kinds at the same time, without and with the library."""
    stub = build.library("older/libcuda.so.1", "older_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("older-program", "older.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}

    def run(size: int) -> tuple[list[str], list[str]]:
        done = preloaded([str(size)], ONE, program=program, env=env)
        assert (done.reasons["shaped"], done.reasons["unknown_footprint"]) == (4, 3)  # the last one is left alone, too
        return bare([str(size)], program=program, env=env).stdout.splitlines()[3:], done.stdout.splitlines()[3:]

    return run


@pytest.mark.parametrize("size", [0, 40000, 49152])
def test_a_launch_beside_an_older_one(size: int, pair: Pair) -> None:
    """The size of the older one is known, and the driver takes it whatever the limit is: that is left as it is."""
    without, done = pair(size)
    assert without == ["older: 0", "launch: 0"] * 2 + ["limit: 49152"]
    assert done == without


def test_a_launch_beside_an_older_one_that_must_be_refused(pair: Pair) -> None:
    """A limit (docs/explanation/limits.md): the driver refuses the launch that it has, and no later one."""
    without, done = pair(60000)
    assert without == ["older: 1", "launch: 0"] * 2 + ["limit: 49152"]
    assert done == ["older: 1", "launch: 1", *without[2:]]
