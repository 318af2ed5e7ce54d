"""A changed launch that the driver refuses is made again as asked; an error of the program's own is the program's."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Runner, smallest_size

LAUNCH = f"launch=k,{BLOCKS},256,0"


def test_the_program_sees_success_and_the_kernel_is_left_alone_from_then_on(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,other {LAUNCH} {LAUNCH} ex=k,{BLOCKS},128,32 launch=other,{BLOCKS},256,0"
    env = {"SIMGPU_REFUSE": "k:50000"}
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert done.stdout == without.stdout
    assert done.status == 0
    size = smallest_size(1)
    tried = [(launch["kernel"], launch["dynamic_shared"], launch["result"]) for launch in done.launches]
    assert tried == [("k", size, 701), ("k", 0, 0), ("k", 0, 0), ("k", 32, 0), ("other", size, 0)]
    assert done.launches[1:4] == without.launches[:3]  # as asked, to the last parameter
    assert done.totals["refused"] == 1
    assert done.totals["launches"] == 4  # as the program made them
    assert done.reasons == {"refused": 3, "shaped": 1}


def test_refused_again_when_the_kernel_is_loaded_again(preloaded: Runner) -> None:
    """What was learnt about a kernel goes with its module."""
    words = f"ptx=k {LAUNCH} unload=0 ptx=k {LAUNCH} addresses"
    done = preloaded(words, ONE, env={"SIMGPU_REFUSE": "k:50000"})
    assert "addresses: 1" in done.stdout
    assert [launch["result"] for launch in done.launches] == [701, 0, 701, 0]
    assert done.totals["refused"] == 2


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address"])
def test_an_error_of_the_programs_own_is_the_same_and_is_not_a_refusal(
    way: str, bare: Runner, preloaded: Runner
) -> None:
    """The launch fails with the size that the program asked for, too: it sees that error."""
    words = (
        "ptx=k set=k,8,200000 launch=k,2000,256,300000 launch=k,0,256,0 launch=k,2000,2048,0 attr=99:1 ex=k,2000,256,0"
    )
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert without.stdout.count(": 0\n") >= 2
    assert done.stdout == without.stdout
    assert done.totals["launches"] == 4


def test_any_other_error_is_returned_and_the_launch_is_not_repeated(bare: Runner, preloaded: Runner) -> None:
    """A stream whose capture was invalidated refuses every launch, whatever its size."""
    words = f"ptx=k stream=0 begin=1 {LAUNCH},1 sync {LAUNCH},1"
    done, without = preloaded(words, ONE), bare(words)
    assert "launch: 901" in without.stdout
    assert done.stdout == without.stdout
    assert [launch["result"] for launch in done.launches] == [launch["result"] for launch in without.launches]
    assert done.totals["refused"] == 0


def test_a_launch_that_is_wrong_by_itself_says_nothing_about_its_kernel(bare: Runner, preloaded: Runner) -> None:
    """More blocks than any grid may have, and then one that is right."""
    words = f"ptx=k launch=k,3000000000,256,0 {LAUNCH}"
    done, without = preloaded(words, ONE), bare(words)
    assert "launch: 1\n" in without.stdout
    assert done.stdout == without.stdout
    assert done.sizes[-1] == smallest_size(1)
    assert done.totals["refused"] == 0
