"""A function whose occupancy the program asks for is left alone from then on; the answer is what it is without us."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, rule, same, smallest_size

BIG = f"launch=k,{BLOCKS},256,0"
SIZE = smallest_size(1)
QUESTIONS = {
    "blocks": "occ=k,256,0",
    "blocks_flags": "occflags=k,256,0",
    "size": "occsize=k,0",
    "size_flags": "occsizeflags=k,0",
    "available": "occavail=k,1,256",
    "clusters": f"attr=4:2:1:1 occclusters=k,{BLOCKS},256,0",
    "cluster_size": f"occcluster=k,{BLOCKS},256,0",
}
# Answers that depend on the limit of dynamic shared memory, which the library raises for its own sizes.
BEYOND = "occ=k,256,60000 occflags=k,256,60000 occsize=k,60000 occsizeflags=k,60000 occavail=k,1,256 occavail=k,2,256 "
BEYOND += f"occcluster=k,{BLOCKS},256,60000 attr=4:2:1:1 occclusters=k,{BLOCKS},256,60000 occ=k,256,300000"


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_asked_before_the_first_launch(question: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {QUESTIONS[question]} repeat=3 {BIG}"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert "occupancy -1" not in without.stdout
    same(done, without)
    assert done.reasons == {"occupancy_asked": 3}


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_asked_after_it_was_shaped(question: str, load: str, bare: Runner, preloaded: Runner, build: Build) -> None:
    """It has our size, our limit and our carve-out by then; the answer knows of none of them."""
    words = f"{load}=k,other repeat=4 {BIG} driver={build.deep()},k,9 {QUESTIONS[question]} repeat=4 {BIG} "
    words += f"launch=other,{BLOCKS},256,0 driver={build.deep()},k,9 get=k,8 get=k,9"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [SIZE] * 4 + [0] * 4 + [SIZE]
    assert done.reasons == {"shaped": 5, "occupancy_asked": 4}
    assert (done.told, without.told) == ([100, -1], [-1, -1])


@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_limit_that_was_raised_does_not_show_in_the_answers(load: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k repeat=4 {BIG} {BEYOND} set=k,8,60000 {BEYOND} set=k,8,1000 {BEYOND}"
    words += f" launch=k,{BLOCKS},256,1001 launch=k,{BLOCKS},256,1000"
    done, without = preloaded(words, ONE), bare(words)
    assert "occupancy 0 -1" in without.stdout
    assert "occupancy 49152 -1" in without.stdout
    assert "occupancy 3 -1" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.totals["shaped"] == 4


def test_all_forms_of_a_kernel_are_one(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k,other {BIG} function=k {BIG} occ=k,256,0 {BIG} launch=other,{BLOCKS},256,0 function=k {BIG} "
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [SIZE, SIZE, 0, SIZE, 0]
    words = f"lib=k occ=k,256,0 function=k {BIG} occ=k,256,60000 {BEYOND}"
    same(preloaded(words, ONE), bare(words))


def test_a_handle_that_comes_back_was_not_asked_about(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k occ=k,256,0 {BIG} unload=0 ptx=k {BIG} addresses"
    done, without = preloaded(words, ONE), bare(words)
    assert "addresses: 1" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [0, SIZE]


def test_wrong_questions_are_answered_as_they_are(bare: Runner, preloaded: Runner) -> None:
    words = (
        f"ptx=k {BIG} occ=k,0,0 occ=k,2048,0 occavail=k,0,0 occavail=k,99,256 occflags=k,256,999999 occsize=k,999999"
    )
    words += f" occclusters=k,{BLOCKS},256,0 {BIG}"
    same(preloaded(words, ONE), bare(words), but=["dynamic_shared"])


def test_observing_marks_nothing(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k occ=k,256,0 {BIG} {BEYOND}"
    done = preloaded(words, "observe")
    same(done, bare(words))
    assert done.reasons == {"observe_only": 1}


def test_a_rule_that_leaves_it_says_so_first(preloaded: Runner) -> None:
    assert preloaded(f"ptx=k occ=k,256,0 {BIG}", rule("leave")).reasons == {"rule_leave": 1}


def test_what_was_asked_about_stays_so_whichever_call_names_it(bare: Runner, preloaded: Runner) -> None:
    """Enumerated without a name, asked how many of its blocks fit, and got by its name afterwards."""
    words = f"libonly=k module=0 enum_from=k occ=k,256,0 get_from=k {BIG}"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without)
    assert "launch: 0" in without.stdout
    assert done.reasons == {"occupancy_asked": 1}
