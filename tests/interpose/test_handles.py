"""A handle means the kernel that it means now: addresses come back with another meaning."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, rule, same, smallest_size

SHAPED_K = rule("{blocks_per_sm: 1}", match="kernel: [k, kernel_of_mine]")


@pytest.mark.parametrize("load", ["ptx", "lib", "enum", "enumlib"])
def test_no_stale_decision_after_unload(load: str, bare: Runner, preloaded: Runner) -> None:
    launches = "launch={0},4000,256,0 launch={0},4000,256,0 launch={0},4000,256,0 "
    words = "".join(
        f"{load}={name} {launches.format(name)} unload={i} "
        for i, name in enumerate(["k", "other", "k", NCCL, "other"])
    )
    words += "addresses"
    done, without = preloaded(words, SHAPED_K), bare(words)
    assert "addresses: 10" in without.stdout, "the driver gave out new addresses: nothing was tested"
    same(done, without, but=["dynamic_shared"])
    size = smallest_size(1)
    assert done.sizes == [size] * 3 + [0] * 3 + [size] * 3 + [0] * 6
    assert done.reasons == {"shaped": 6, "no_rule": 6, "communication": 3}


def test_the_limit_of_an_unloaded_kernel_is_not_told_for_the_next(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k set=k,8,60000 launch=k,{BLOCKS},256,0 get=k,8 unload=0 ptx=other get=other,8 unload=1 "
    words += f"ptx=k get=k,8 launch=k,{BLOCKS},256,0 get=k,8"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])


def test_a_kernel_and_its_function_are_one_kernel(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k,other launch=k,{BLOCKS},256,0 function=k launch=k,{BLOCKS},256,0 function=other "
    words += f"launch=other,{BLOCKS},256,0 get=k,8 unload=0"
    done = preloaded(words, SHAPED_K)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [smallest_size(1)] * 2 + [0]


def test_asking_again_for_a_handle_changes_nothing(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k launch=k,{BLOCKS},256,0 " + f"again=0,k launch=k,{BLOCKS},256,0 get=k,8 " * 3
    done = preloaded(words, SHAPED_K)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [smallest_size(1)] * 4


@pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)
def test_a_handle_that_was_never_seen_is_left_alone(
    bare: Runner, preloaded: Runner, build: Build, simulated: dict[str, str]
) -> None:
    deep = build.library("libdeep.so", "deep.c", link=[simulated["LD_LIBRARY_PATH"].split(":")[0] + "/libcuda.so.1"])
    words = f"ptx=k deep={deep},k repeat=3 launch=k,{BLOCKS},256,0"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    # k was asked for by the program, too, so its handle is known...
    assert done.reasons == {"shaped": 3}
    # ...while this one only the other library has asked for.
    words = f"ptxonly=hidden deep={deep},hidden repeat=3 launch=hidden,{BLOCKS},256,0"
    done, without = preloaded(words, ONE), bare(words)
    assert without.stdout.count(": 0\n") == 4, without.stdout
    same(done, without)
    assert done.reasons == {"unknown_footprint": 3}


def test_many_modules_where_there_are_two_devices(bare: Runner, preloaded: Runner) -> None:
    names = [f"kernel{i}" for i in range(40)]
    words = " ".join(f"ptx={name} launch={name},{BLOCKS},256,{i}" for i, name in enumerate(names)) + " "
    words += " ".join(f"launch={name},{BLOCKS},256,{i}" for i, name in enumerate(names))
    env = {"SIMGPU": "h100,2"}
    done = preloaded(words, rule("{blocks_per_sm: 1}", match='kernel: "kernel1*"'), env=env)
    same(done, bare(words, env=env), but=["dynamic_shared"])
    assert [size > 10000 for size in done.sizes] == [name.startswith("kernel1") for name in names] * 2
