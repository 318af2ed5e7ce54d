"""What a launch says about itself by attributes, or by what was compiled into its kernel."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same, smallest_size

SIZE = smallest_size(1)


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_launches_in_clusters_are_left_alone(load: str, way: str, bare: Runner, preloaded: Runner) -> None:
    """The same kernel is shaped when it is launched without them."""
    plain = f"launch=k,{BLOCKS},256,0"
    words = f"{load}=k attr=4:2:1:1 ex=k,{BLOCKS},256,0 attr=4:2:1:1 ex=k,{BLOCKS},256,0 {plain} {plain} "
    words += f"attr=4:8:1:1 ex=k,{BLOCKS},256,0 {plain}"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert [launch["cluster"] for launch in without.launches] == [2, 2, 1, 1, 8, 1]
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [0, 0, SIZE, SIZE, 0, SIZE]
    assert done.reasons == {"cluster": 3, "shaped": 3}


@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_clusters_that_a_function_requires_are_left_alone(load: str, bare: Runner, preloaded: Runner) -> None:
    """Set by the program, also for a kernel that was shaped before."""
    launches = f"launch=k,{BLOCKS},256,0 " * 4
    required = "set=k,11,2 set=k,12,1 set=k,13,1 "
    if load == "lib":
        required = required.replace("set=", "function=k set=", 1)
    for words in (f"{load}=k {required}{launches}", f"{load}=k {launches}{required}{launches}"):
        done, without = preloaded(words, ONE), bare(words)
        assert without.launches[-1]["cluster"] == 2
        same(done, without, but=["dynamic_shared"])
        assert done.sizes[-4:] == [0] * 4
        assert done.reasons["cluster"] == 4


@pytest.mark.parametrize(("width", "reason", "size"), [("2", "cluster", 0), ("1", "shaped", 1), ("0", "shaped", 1)])
def test_clusters_that_are_compiled_in_are_left_alone(
    width: str, reason: str, size: int, build: Build, preloaded: Runner
) -> None:
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("counting", "counting.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_CLUSTER": width}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {SIZE if size else 0}, asked: 0\n"
    assert done.reasons == {reason: 100}
