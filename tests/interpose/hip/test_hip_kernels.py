"""Kernels by their handles: what was asked about them, which are the same, which are gone, which are none."""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, ONE, Hip, World, by_kernel, rule, runtime, smallest
from interposing import same

LAUNCH = f"launch=k,{BLOCKS},64"
SHAPED = smallest(1)
BY_NAME = rule("{blocks_per_sm: 1}", kernel="k")


@pytest.mark.parametrize(
    ("form", "ask"),
    [("words", "ask=k,64,0"), ("hosts", "ask=k,64,0"), ("hosts", "ask=k,64,30000"), ("hosts", "available=k,2,64")],
)
def test_a_kernel_that_is_asked_about_is_left_alone(form: str, ask: str, world: World, hip: Hip) -> None:
    words = [*getattr(world, form)("k", "leave"), LAUNCH, LAUNCH, ask, LAUNCH, LAUNCH, LAUNCH.replace("=k", "=leave")]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare, but=["dynamic_shared"])
    assert by_kernel(done) == {"k": [SHAPED, SHAPED, 0, 0], "leave": [SHAPED]}
    assert done.reasons == {"shaped": 3, "occupancy_asked": 2}


def test_asked_before_the_first_launch(world: World, hip: Hip) -> None:
    for form in (world.words, world.hosts):
        done = hip([*form("k"), "ask=k,64,0", LAUNCH, LAUNCH], ONE)
        assert (done.sizes, done.reasons) == ([0, 0], {"occupancy_asked": 2})


def test_other_names_of_an_asked_kernel_are_left_alone(world: World, hip: Hip) -> None:
    """Asked as a function of the program, launched as what hipGetFuncBySymbol made of it; and the other way round."""
    one = [*world.hosts("k"), "ask=k,64,0", "alias=k", LAUNCH, LAUNCH]
    other = [*world.hosts("k"), LAUNCH, "alias=k", LAUNCH, "ask=k,64,0", LAUNCH, "alias=k"]
    for words, wanted in ((one, [0, 0]), (other, [SHAPED, SHAPED, 0])):
        bare, done = hip(words), hip(words, ONE)
        same(done, bare, but=["dynamic_shared"])
        assert done.sizes == wanted


def test_asking_through_an_alias_counts_for_the_symbol(world: World, hip: Hip) -> None:
    words = [*world.hosts("k"), LAUNCH, "alias=k", "ask=k,64,0", "host=leave", LAUNCH]
    assert hip(words, ONE).sizes == [SHAPED, 0]
    # The symbol itself again: the client finds the last kernel of a name, so it is launched under another one.
    again = [f"fat={world.fat}", "host=k", LAUNCH, "alias=k", "ask=k,64,0", "first=k", LAUNCH]
    assert hip(again, ONE).sizes == [SHAPED, 0]


@pytest.mark.parametrize("version", ["5", "7"])
def test_handles_of_a_module_that_is_gone(version: str, world: World, hip: Hip) -> None:
    """Their addresses are given out again, for other kernels."""
    words = [*world.words("k"), LAUNCH, LAUNCH, "unload"]
    for _ in range(6):
        words += [f"code={world.code}", "function=leave", f"launch=leave,{BLOCKS},64", "unload"]
        words += [f"code={world.code}", "function=k", LAUNCH, "unload"]
    bare, done = hip(words, version=version), hip(words, BY_NAME, version=version)
    same(done, bare, but=["dynamic_shared"])
    assert by_kernel(done) == {"k": [SHAPED] * 8, "leave": [0] * 6}


def test_launches_of_what_is_gone_are_refused_as_ever(world: World, hip: Hip) -> None:
    words = [*world.words("k"), LAUNCH, "unload", LAUNCH, *world.hosts("k"), LAUNCH, "unregister", LAUNCH]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare, but=["dynamic_shared"])
    assert bare.stdout.count("launch k: 0") == 2
    assert done.totals["refused"] == 0


def test_functions_that_are_no_kernels(world: World, hip: Hip) -> None:
    words = ["nobody=odd", "launch=odd,400,64", "ext=odd,400,64", "ask=odd,64,0", "alias=odd"]
    words += [
        "none=odd",
        "launch=odd,400,64",
        "wild=odd",
        "launch=odd,400,64",
        "items=odd,400,64",
        *world.hosts("k"),
        LAUNCH,
    ]
    for version in ("6", "7"):
        here = [word for word in words if version == "7" or not word.startswith("alias")]
        bare, done = hip(here, version=version), hip(here, ONE, version=version)
        assert bare.status == 0
        assert bare.stdout.count("launch k: 0\n") == 1
        assert bare.stdout.count("odd: 0\n") == 0
        same(done, bare, but=["dynamic_shared"])
        assert done.totals["refused"] == 0


def test_a_kernel_is_shaped_on_whatever_stream_and_grid(world: World, hip: Hip) -> None:
    """From the cache too, where several kernels, threads and sizes meet."""
    words = [*world.words("k", "s1"), "stream=0", "stream=-1"]
    for blocks in (BLOCKS, 10, 40, BLOCKS):
        for kernel in ("k", "s1"):
            for stream in (0, 1, 2):
                words += [f"launch={kernel},{blocks},64,{size},{stream}" for size in (0, 512)]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare, but=["dynamic_shared"])
    for was, now in zip(bare.launches, done.launches):
        wanted = smallest(1, 1 if was["kernel"] == "s1" else 0) if was["blocks"] == BLOCKS else was["dynamic_shared"]
        assert now["dynamic_shared"] == wanted


def test_a_module_that_goes_takes_no_answer_with_it(world: World, hip: Hip) -> None:
    """The function was made from a kernel of the program, and stays what was asked about."""
    words = [*world.hosts("k"), "alias=k", "ask=k,64,0", LAUNCH, f"code={world.code}", "unload", LAUNCH]
    bare, done = hip(words), hip(words, ONE)
    same(done, bare)
    assert done.reasons == {"occupancy_asked": 2}


def test_threads_that_meet_a_kernel_at_the_same_time(world: World, hip: Hip) -> None:
    build = (f'-DRUNTIME="{runtime("7").name}"', "-DVERSION=7", "-DWAY_LINKED", "-pthread")
    program = world.build("hip-race", "hip_race.c", *build, link=[runtime("7")])
    done = hip([world.fat], ONE, program=program, gpu="mi250x,2")
    assert (done.status, done.reasons) == (0, {"shaped": 6000})
