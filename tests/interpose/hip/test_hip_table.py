"""The runtime's own table of functions: taken, refused, and shared with profilers; every launch is decided once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hip_interposing import (
    BLOCKS,
    ONE,
    PLACES,
    REGISTER,
    Hip,
    World,
    by_kernel,
    past_names,
    profiler_as,
    rule,
    shaped_once,
    smallest,
    told,
)

HOST = PLACES["hipLaunchKernel"]
NOT_KNOWN = "the table of functions that HIP hands out is not one that we know"


@pytest.fixture
def words(world: World) -> list[str]:
    """Eight launches: two by each form before and after one another, some of them from the cache."""
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    made = [*world.words("k"), *world.hosts("k"), "stream=0", "repeat=3", f"launch=k,{BLOCKS},64,0,1"]
    return [
        *made,
        f"code={world.code}",
        "function=k",
        "repeat=3",
        f"launch=k,{BLOCKS},64,0,1",
        f"items=k,{BLOCKS},64",
    ]


@pytest.fixture
def profiler(world: World) -> Path:
    return profiler_as(world, "libhip_profiler.so")


DEEPBIND = pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)


@DEEPBIND
@pytest.mark.parametrize("version", ["6", "7"])
def test_launches_past_every_name_come_by_the_table(version: str, words: list[str], world: World, hip: Hip) -> None:
    past = past_names(world, words, version)
    shaped_once(hip(policy=ONE, **past), hip(**past), "dispatch_table")
    assert hip(policy=ONE, **past_names(world, words, version, SIMGPU_HIP_TABLE="off")).report == {}


@pytest.mark.parametrize("version", ["6", "7"])
@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address"])
def test_a_launch_by_name_is_not_decided_again_by_the_table(version: str, way: str, words: list[str], hip: Hip) -> None:
    bare = hip(words, version=version, way=way)
    shaped_once(hip(words, ONE, version=version, way=way, env=REGISTER), bare, way)


def test_a_launch_that_is_left_alone_is_counted_once(world: World, words: list[str], hip: Hip) -> None:
    launches = [*world.hosts("k"), "stream=0", "coop=k,20,64,0,1"]
    assert hip(launches, ONE, env=REGISTER).reasons == {"cooperative": 1}


@pytest.mark.parametrize("env", [{}, {"SIMGPU_HIP_TABLE": "off"}])
def test_without_a_table_they_come_by_name(env: dict[str, str], words: list[str], hip: Hip) -> None:
    shaped_once(hip(words, ONE, env=env), hip(words), "symbol")


def test_version_5_hands_nothing_out(world: World, words: list[str], hip: Hip) -> None:
    shaped_once(hip(words, ONE, version="5", env=REGISTER), hip(words, version="5"), "symbol")


@pytest.mark.parametrize("env", [{"OVERLAP_RUN": "off"}, {"OVERLAP_TABLE": None, "OVERLAP_REPORT": None}])
def test_not_armed_the_table_is_left_alone(
    env: dict[str, str | None], words: list[str], profiler: Path, hip: Hip
) -> None:
    bare = hip(words, env=REGISTER, preload=str(profiler))
    for preload in (f"{{}}:{profiler}", f"{profiler}:{{}}"):
        done = hip(words, ONE, env={**REGISTER, **env}, preload=preload)
        assert (done.status, done.stdout, done.stderr) == (bare.status, bare.stdout, bare.stderr)
        assert done.launches == bare.launches
    alone = hip(words, ONE, env={**REGISTER, **env})
    assert (alone.stdout, alone.launches) == (hip(words, env=REGISTER).stdout, bare.launches)


def test_the_library_that_calls_is_known(world: World, profiler: Path, hip: Hip) -> None:
    policy = "streams: {raise: off}\ncompute:\n"
    policy += '  - {match: {kernel: "*", library: "libmine.so*"}, shape: {blocks_per_sm: 2}, when: always}\n'
    policy += '  - {match: {kernel: "*", library: "hip-client*"}, shape: {blocks_per_sm: 4}, when: always}\n'
    launches = [*world.hosts("k"), f"library={world.comm('libmine.so.1')}", "stream=0"]
    launches += [f"{how}=k,{BLOCKS},64,0,1" for how in ("launch", "liblaunch", "liblaunch", "launch", "ext")]
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    wanted = [smallest(blocks) for blocks in (4, 2, 2, 4, 4)]
    assert hip(launches, policy).sizes == wanted
    for preload in ("{}", f"{{}}:{profiler}"):
        done = hip(launches, policy, env=REGISTER, preload=preload)
        assert done.sizes == wanted
        assert done.totals["launches"] == 5


def test_the_library_that_creates_a_stream_is_known(world: World, profiler: Path, hip: Hip) -> None:
    policy = 'streams: {created_by: ["libmine.so*"]}'
    # The first call hands out the table.
    words = [*world.hosts("k"), "stream=0", f"library={world.comm('libmine.so.1')}", "libflags=1", "priority=2"]
    words += ["launch=k,8,64,0,1", "launch=k,8,64,0,2"]
    world.build.library("librocprofiler-register.so.0", "hip_register.c")
    for preload in ("{}", f"{{}}:{profiler}"):
        done = hip(words, policy, env=REGISTER, preload=preload)
        assert "priority 0\n" in done.stdout, "the program's own"
        assert done.priorities == [0, -1]


# ---- Profilers ----


def test_a_profiler_behind_us_sees_every_launch(words: list[str], profiler: Path, hip: Hip) -> None:
    bare = hip(words, env=REGISTER, preload=str(profiler))
    assert told(bare) == "profiler: 1 tables, 6 launches"
    done = hip(words, ONE, env=REGISTER, preload=f"{{}}:{profiler}")
    shaped_once(done, bare, "symbol")
    assert told(done) == told(bare)


@DEEPBIND
def test_a_profiler_behind_us_sees_what_comes_by_the_table(
    words: list[str], profiler: Path, world: World, hip: Hip
) -> None:
    past = past_names(world, words)
    bare = hip(**past, preload=str(profiler))
    assert told(bare) == "profiler: 1 tables, 6 launches"
    done = hip(policy=ONE, **past, preload=f"{{}}:{profiler}")
    shaped_once(done, bare, "dispatch_table")
    assert told(done) == told(bare)


def test_a_profiler_in_front_of_us_sees_every_launch(words: list[str], profiler: Path, hip: Hip) -> None:
    """It gets the table, and we what is called by name."""
    bare = hip(words, env=REGISTER, preload=str(profiler))
    done = hip(words, ONE, env=REGISTER, preload=f"{profiler}:{{}}")
    shaped_once(done, bare, "symbol")
    assert told(done) == told(bare)


def test_a_tool_that_waits_for_the_profilers_library_gets_it(world: World, words: list[str], hip: Hip) -> None:
    """The tool is preloaded; librocprofiler-register would load the library, had it not found us."""
    tool = world.build.library("libtool.so", "hip_profiler.c", "-DCONFIGURE_ONLY")
    profiler_as(world, "librocprofiler-sdk.so.1")
    bare = hip(words, env=REGISTER, preload=str(tool))
    assert told(bare) == "profiler: 1 tables, 6 launches"
    for preload in (f"{{}}:{tool}", f"{tool}:{{}}"):
        done = hip(words, ONE, env=REGISTER, preload=preload)
        shaped_once(done, bare, "symbol")
        assert told(done) == told(bare)


def test_a_profiler_of_another_scope_is_left_alone(world: World, words: list[str], profiler: Path, hip: Hip) -> None:
    """One that nothing but its own library sees would not have been asked either."""
    local = [f"library={profiler}", *words]
    bare = hip(local, env=REGISTER)
    assert told(bare) == "profiler: 0 tables, 0 launches"
    done = hip(local, ONE, env=REGISTER)
    shaped_once(done, bare, "symbol")
    assert told(done) == told(bare)


# ---- Tables that are not what they should be ----


@pytest.mark.parametrize(
    "table", ["size=0", "size=8", "size=504", "size=2001", "size=1000000000", f"nowhere={HOST}", f"null={HOST}"]
)
def test_a_table_that_is_none_is_left_as_it_is(table: str, words: list[str], profiler: Path, hip: Hip) -> None:
    bare = hip(words, env={**REGISTER, "HIP_TEST_TABLE": table})
    done = hip(words, ONE, env={**REGISTER, "HIP_TEST_TABLE": table})
    shaped_once(done, bare, "symbol")
    assert done.stderr.count(NOT_KNOWN) == 1
    if table.startswith("null"):
        assert f"member {HOST}: NULL" in done.stdout


@DEEPBIND
@pytest.mark.parametrize("table", ["longer=400", "twice", "twice,longer=1"])
def test_a_table_is_taken_once(table: str, words: list[str], world: World, hip: Hip) -> None:
    """Also one with more members than we know, and one that is handed out twice."""
    past = past_names(world, words, HIP_TEST_TABLE=table)
    done = hip(policy=ONE, **past)
    shaped_once(done, hip(**past), "dispatch_table")
    assert NOT_KNOWN not in done.stderr


@DEEPBIND
def test_a_shorter_table_is_taken_as_far_as_it_goes(words: list[str], world: World, hip: Hip) -> None:
    """hipModuleLaunchKernel is behind its end."""
    done = hip(policy=ONE, **past_names(world, words, HIP_TEST_TABLE=f"size={8 * (int(HOST) + 1)}"))
    assert done.totals["launches"] == 3
    assert done.sizes == [smallest(1)] * 3 + [0] * 4


def test_another_instances_table_is_left_alone(words: list[str], profiler: Path, hip: Hip) -> None:
    env = {**REGISTER, "HIP_TEST_TABLE": "instance=1"}
    shaped_once(hip(words, ONE, env=env), hip(words), "symbol")


@DEEPBIND
def test_kernels_are_left_alone_by_the_table_too(world: World, words: list[str], hip: Hip) -> None:
    policy = rule("{blocks_per_sm: 1}", kernel='"k"')
    launches = [*world.hosts("leave", "k"), "stream=0", f"launch=leave,{BLOCKS},64,0,1", f"launch=k,{BLOCKS},64,0,1"]
    done = hip(policy=policy, **past_names(world, launches))
    assert by_kernel(done) == {"leave": [0], "k": [smallest(1)]}
    assert done.totals["launches"] == 2
