"""A handle means the kernel that it means now: addresses come back with another meaning."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, rule, same


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
