"""A runtime that calls its own entry points through the dynamic linker, as ROCm 7's does: a launch is decided and
counted once, at the program's call, and what the runtime calls meanwhile passes straight through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hip_interposing import BLOCKS, ONE, REGISTER, Hip, World, past_names, profiler_as, shaped_once, smallest, told
from test_hip_table import DEEPBIND

# One of its entry points after the other, each by its name; `thread`: from there on in a thread of the runtime's own.
CHAINS = ("module", "spt", "ext", "own", "thread+own", "own+own+own", "own+thread+ext+module", "spt+ext+spt+module")
LAUNCHES = 8


@pytest.fixture
def words(world: World) -> list[str]:
    """Launches by both names, from the program and from a thread of it, most of them known to the hot path."""
    head = [*world.hosts("k"), "stream=0", "repeat=3", f"launch=k,{BLOCKS},64,0,1", f"ext=k,{BLOCKS},64,0,1"]
    return [*head, "thread", "repeat=3", f"launch=k,{BLOCKS},64,0,1", f"ext=k,{BLOCKS},64,0,1", "end_thread", "sync"]


def itself(chain: str, **more: str) -> dict[str, str]:
    return {"SIMGPU_HIP_ITSELF": chain, **more}


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address"])
@pytest.mark.parametrize("table", [{}, REGISTER], ids=["names", "table"])
@pytest.mark.parametrize("chain", CHAINS)
def test_each_launch_is_decided_once(
    chain: str, table: dict[str, str], way: str, words: list[str], world: World, hip: Hip
) -> None:
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    bare = hip(words, way=way, env=itself(chain))
    done = hip(words, ONE, way=way, env=itself(chain, **table))
    shaped_once(done, bare, way, LAUNCHES)
    assert done.totals["launches"] == LAUNCHES


@pytest.mark.parametrize("version", ["5", "6"])
def test_older_versions(version: str, words: list[str], hip: Hip) -> None:
    env = itself("own+thread+module")
    shaped_once(hip(words, ONE, version=version, env=env), hip(words, version=version, env=env), "symbol", LAUNCHES)


@DEEPBIND
@pytest.mark.parametrize("chain", ["module", "own+ext", "spt+own+module"])
def test_a_launch_past_every_name_is_decided_by_the_table_once(
    chain: str, words: list[str], world: World, hip: Hip
) -> None:
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    past = past_names(world, words, **itself(chain))
    shaped_once(hip(policy=ONE, **past), hip(**past), "dispatch_table", LAUNCHES)


@pytest.mark.parametrize("chain", ["module", "own+own", "thread+own"])
def test_a_profiler_in_between_changes_nothing(chain: str, words: list[str], world: World, hip: Hip) -> None:
    """It is called by the runtime's table, and calls our function there."""
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    profiler: Path = profiler_as(world, "libhip_profiler.so")
    env: dict[str, Any] = {"env": itself(chain, **REGISTER)}
    bare = hip(words, preload=str(profiler), **env)
    done = hip(words, ONE, preload=f"{{}}:{profiler}", **env)
    shaped_once(done, bare, "symbol", LAUNCHES)
    assert told(done) == told(bare)


@pytest.mark.parametrize("chain", ["", "own+thread+ext", "module"])
@pytest.mark.parametrize("table", [{}, REGISTER], ids=["names", "table"])
def test_a_launch_that_only_the_runtime_makes_is_passed_on(
    table: dict[str, str], chain: str, world: World, hip: Hip
) -> None:
    """hipLaunchByPtr is not hooked; the runtime then calls hipModuleLaunchKernel by its name."""
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    words = [*world.hosts("k"), "stream=0", f"pointer=k,{BLOCKS},64,0,1", f"launch=k,{BLOCKS},64,0,1"]
    bare, done = hip(words, env=itself(chain)), hip(words, ONE, env=itself(chain, **table))
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert done.reasons == {"shaped": 1}
    assert done.sizes == [0, smallest(1)]
