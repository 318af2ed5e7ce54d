"""Shaped kernels ask for the largest carve-out of shared memory, unless the program has its own."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, rule, same, smallest_size

BIG = f"launch=k,{BLOCKS},256,0"
SIZE = smallest_size(1)
MAKE_ROOM = rule("make_room")
SEEN = f"launch={NCCL},16,512,20000"  # the block for which room is made


@pytest.mark.parametrize("load", ["ptx", "lib", "enum", "enumlib"])
def test_the_driver_is_told_and_the_program_is_not(load: str, bare: Runner, preloaded: Runner, build: Build) -> None:
    asked = f"driver={build.deep()},k,9 get=k,9"
    words = f"{load}=k,other {asked} {BIG} {asked} {BIG} {BIG} {asked} driver={build.deep()},other,9"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert (without.told, done.told) == ([-1] * 4, [-1, 100, 100, -1])
    assert done.stdout.count("value -1") == 3


@pytest.mark.parametrize(
    ("policy", "launch", "value"),
    [
        (ONE, f"k,{BLOCKS},256,0", 100),
        (rule("leave"), f"k,{BLOCKS},256,0", -1),
        ("observe", f"k,{BLOCKS},256,0", -1),
        (ONE, "k,100,256,0", -1),  # one wave
        (rule("{blocks_per_sm: 1}", when="overlapping"), f"k,{BLOCKS},256,0", -1),
        (ONE, f"{NCCL},16,256,0", -1),  # which would cost it bandwidth
        (rule("leave"), f"{NCCL},16,256,0", -1),
        ("observe", f"{NCCL},16,256,0", -1),
        (MAKE_ROOM, f"k,{BLOCKS},256,0", 100),
        (MAKE_ROOM, f"k,{BLOCKS},256,60000", -1),  # where there is room already, nothing is changed
    ],
)
def test_which_kernels_ask(policy: str, launch: str, value: int, bare: Runner, preloaded: Runner, build: Build) -> None:
    words = f"ptx=k,{NCCL} {SEEN} set=k,8,60000 launch={launch} launch={launch} "
    words += f"driver={build.deep()},{launch.split(',')[0]},9"
    done = preloaded(words, policy)
    same(done, bare(words), but=["dynamic_shared", "priority", "entry"])
    assert done.told == [value], done.reasons


def test_a_setting_that_went_past_us_stays(bare: Runner, preloaded: Runner, build: Build) -> None:
    driver = f"driver={build.deep()},k,9"
    words = f"ptx=k {driver},50 {BIG} {BIG} {driver} get=k,9"
    done = preloaded(words, ONE.replace("blocks_per_sm: 1", "dynamic_shared_memory: 100KiB"))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.told == [50]
    assert done.sizes == [102400] * 2


def test_in_a_window_they_ask(bare: Runner, preloaded: Runner, build: Build) -> None:
    """Under a rule for windows, once a launch of theirs is in one."""
    asked = f"driver={build.deep()},k,9 get=k,9"
    words = (
        f"ptx=k,{NCCL} stream=0 stream=0 {BIG},2 {asked} launch={NCCL},16,256,0,1 {BIG},2 {asked} sync {BIG},2 {asked}"
    )
    done, without = preloaded(words, rule("{blocks_per_sm: 1}", when="overlapping")), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert (without.told, done.told) == ([-1] * 3, [-1, 100, 100])
    assert done.stdout.count("value -1") == 3


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("own", [0, 50, 100, -1])
def test_what_the_program_has_set_counts(own: int, load: str, bare: Runner, preloaded: Runner, build: Build) -> None:
    asked = f"driver={build.deep()},k,9 get=k,9"
    before = f"{load}=k set=k,9,{own} {BIG} {asked} {BIG} {asked}"
    after = f"{load}=k {BIG} {BIG} set=k,9,{own} {asked} {BIG} {asked}"
    for words in (before, after):
        done, without = preloaded(words, ONE), bare(words)
        assert without.stdout.count(f"value {own}") == 2
        same(done, without, but=["dynamic_shared"])
        assert done.told == without.told == [own] * 2


@pytest.mark.parametrize(("own", "size"), [(-1, 0), (100, 1), (50, 0), (0, 0)])
def test_no_room_is_made_in_a_configuration_that_has_none(own: int, size: int, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} {SEEN} set=k,9,{own} {BIG} {BIG}"
    done = preloaded(words, MAKE_ROOM)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.reasons == {"communication": 1, **({"shaped": 2} if size else {"no_room_shared_memory": 2})}
    # The same when it is set between launches.
    words = f"ptx=k,{NCCL} {SEEN} {BIG} {BIG} set=k,9,{own} {BIG} {BIG}"
    done = preloaded(words, MAKE_ROOM)
    same(done, bare(words), but=["dynamic_shared"])
    shaped = {"shaped": 4} if size else {"shaped": 2, "no_room_shared_memory": 2}
    assert done.reasons == {"communication": 1, **shaped}


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("first", ["plain", "attribute"])
def test_the_carve_out_of_a_launch_counts_more(first: str, load: str, bare: Runner, preloaded: Runner) -> None:
    """An answer for launches without the attribute is not taken for those with it, nor the other way round."""
    ex = f"ex=k,{BLOCKS},256,0"
    plain = f"{ex} {ex} {BIG}"
    small = " ".join(f"attr={value} {ex} attr={value} {ex}" for value in ("14:25", "14:0", "14:-1", "14:100,14:99"))
    words = f"{plain} {small} {plain}" if first == "plain" else f"{small} {plain} {small}"
    words = f"{load}=k,{NCCL} {SEEN} {words}"
    words += f" attr=14:100 {ex} attr=14:25,14:100 {ex} attr=8:-1,14:100 {ex}"
    done, without = preloaded(words, MAKE_ROOM), bare(words)
    same(done, without, but=["dynamic_shared"])
    changed, asked = [True] * 3, [False] * 8
    order = changed + asked + changed if first == "plain" else asked + changed + asked
    assert [size > 0 for size in done.sizes] == [True] + order + [True] * 3
    assert set(done.reasons) == {"communication", "shaped", "no_room_shared_memory"}


def test_the_carve_out_of_a_launch_on_two_devices(bare: Runner, preloaded: Runner) -> None:
    launches = f"attr=14:25 ex=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 "
    words = f"lib=k,{NCCL} {SEEN} device=1 {SEEN} device=0 {launches}device=1 {launches}device=0 {launches}device=1 "
    words += launches
    env = {"SIMGPU": "h100,2"}
    done = preloaded(words, MAKE_ROOM, env=env)
    same(done, bare(words, env=env), but=["dynamic_shared"])
    assert [size > 0 for size in done.sizes] == [True] * 2 + [False, True] * 4


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("config", [0, 1, 2, 3])
def test_what_the_context_prefers(config: int, load: str, bare: Runner, preloaded: Runner, build: Build) -> None:
    """Before the first launch; what is set for the kernel itself counts more."""
    asked = f"driver={build.deep()},k,9 get=k,9"
    words = f"{load}=k,{NCCL} {SEEN} contextcache={config} {BIG} {asked} {BIG} {asked} set=k,9,100 {BIG} {BIG} {asked}"
    done, without = preloaded(words, MAKE_ROOM), bare(words)
    same(done, without, but=["dynamic_shared"])
    room = config < 2
    assert [size > 0 for size in done.sizes] == [True, room, room, True, True]
    assert done.told == ([100, 100, 100] if room else [-1, -1, 100])


@pytest.mark.parametrize("config", [0, 1, 2, 3])
def test_what_the_context_prefers_later_changes_nothing(config: int, bare: Runner, preloaded: Runner) -> None:
    """CoMD sets it twice a step."""
    words = f"ptx=k,{NCCL} {SEEN} {BIG} {BIG} contextcache={config} {BIG} get=k,9 contextcache=0 {BIG} get=k,9"
    done = preloaded(words, MAKE_ROOM)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.reasons == {"communication": 1, "shaped": 4}


@pytest.mark.parametrize("config", [1, 2, 3])
def test_no_room_is_made_beside_a_preference_of_the_kernel(config: int, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} {SEEN} {BIG} {BIG} cache=k,9 {BIG} cache=k,0 {BIG} cache=k,{config} {BIG} {BIG}"
    done = preloaded(words, MAKE_ROOM)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.reasons == {"communication": 1, "shaped": 4, "no_room_shared_memory": 2}


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_preference_for_the_cache_is_the_programs_word(
    when: str, load: str, bare: Runner, preloaded: Runner, build: Build
) -> None:
    asked = f"driver={build.deep()},k,9 get=k,9"
    words = f"{load}=k cache=k,2 {BIG} {asked} {BIG}"
    if when == "after":
        words = f"{load}=k {BIG} {BIG} cache=k,2 {asked} {BIG} {asked}"
    done, without = preloaded(words, ONE), bare(words)
    assert "cache: 0" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.told == without.told == [-1] * len(done.told)


def test_what_a_kernel_has_counts_for_its_function(bare: Runner, preloaded: Runner, build: Build) -> None:
    words = f"lib=k set=k,9,50 function=k {BIG} driver={build.deep()},k,9 get=k,9 {BIG}"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert done.told == without.told == [50]


def test_every_device_is_told(bare: Runner, preloaded: Runner, build: Build) -> None:
    asked = f"driver={build.deep()},k,9 get=k,9 "
    words = f"lib=k {BIG} {asked}device=1 {asked}{BIG} {asked}set=k,9,30 {asked}device=0 {asked}{BIG} {asked}"
    env = {"SIMGPU": "h100,2"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    same(done, without, but=["dynamic_shared"])
    assert done.told == [100, -1, 100, 30, 100, 100]


def test_a_handle_that_comes_back_is_told_again(bare: Runner, preloaded: Runner, build: Build) -> None:
    asked = f"driver={build.deep()},k,9 get=k,9 "
    words = f"ptx=k set=k,9,10 {BIG} {asked}unload=0 ptx=k {asked}{BIG} {asked}unload=1 ptx=k {asked}addresses"
    done, without = preloaded(words, ONE), bare(words)
    assert "addresses: 3" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.told == [10, -1, 100, -1]


def test_a_function_does_not_show_the_carve_out_of_its_kernel(bare: Runner, preloaded: Runner) -> None:
    """A function that was made from a kernel has the kernel's preference until it gets its own."""
    words = f"lib=k {BIG} get=k,9 function=k get=k,9"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [SIZE]
