"""Streams of communication libraries are created at the greatest priority (`created_by`); and who is communication."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Done, Runner, rule, same

CREATED = rule("leave", more="streams: {raise: off, created_by: [nccl]}")
COMM = f"launch={NCCL},16,256,0"


def read_back(done: Done) -> list[int]:
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("priority")]


def test_every_way_in_which_a_communication_library_creates_streams(
    bare: Runner, preloaded: Runner, build: Build
) -> None:
    """The program reads back what was asked for, by each call, and so does who copies its attributes."""
    words = f"nccl={build.nccl()} ptx=k,{NCCL} nccls ncclp=0 ncclp=-2 ncclp=-5 plain stream=-1 "
    words += " ".join(f"of={i} sget={i},8 {COMM},{i}" for i in range(1, 7)) + " scopy=5,1 of=5 launch=k,9,32,0,5"
    done, without = preloaded(words, CREATED), bare(words)
    same(done, without, but=["priority"])
    assert read_back(without) == [0, 0, -2, -5, 0, -1, 0]
    assert done.priorities == [-5] * 4 + [0, -1, 0]
    assert done.totals["streams_created_raised"] == 3
    assert done.totals["raised"] == 3


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address", "proc_address_v2"])
def test_whichever_way_leads_into_the_driver(way: str, bare: Runner, preloaded: Runner, build: Build) -> None:
    words = (
        f"nccl={build.nccl()} ptx={NCCL} nccls of=1 {COMM},1 coop={NCCL},16,256,0,1 sset=1,8,-2 of=1 {COMM},1 destroy=1"
    )
    done, without = preloaded(words, CREATED, way), bare(words, way)
    same(done, without, but=["priority"])
    assert done.priorities == [-5, -5, -2], "what the program sets afterwards stays"


def test_streams_of_green_contexts(bare: Runner, preloaded: Runner, build: Build) -> None:
    words = f"nccl={build.nccl()} ptx={NCCL},k green=16 greenstream=0,0 greenstream=0,-1 nccli=0,0 nccli=-1,0 "
    words += f"of=1 of=2 of=3 of=4 launch=k,{BLOCKS},256,0,1 {COMM},1 of=1 greenend=0"
    without = bare(words)
    assert "greenstream: 0" in without.stdout, without.stdout
    same(preloaded(words, CREATED), without, but=["priority"])
    same(preloaded(words, "default"), without, but=["priority"])


def test_a_stream_at_the_address_of_a_raised_one_has_the_programs_priority(preloaded: Runner, build: Build) -> None:
    words = f"nccl={build.nccl()} ptx={NCCL} ncclp=0 of=1 {COMM},1 destroy=1 stream=-2 of=2 {COMM},2"
    done = preloaded(words, CREATED)
    assert read_back(done) == [0, -2]
    assert done.launches[0]["stream"] == done.launches[1]["stream"]
    assert done.priorities == [-5, -2]


def test_one_that_is_created_beside_a_capture_is_raised_when_that_ends(preloaded: Runner, build: Build) -> None:
    words = f"nccl={build.nccl()} ptx={NCCL} stream=0 begin=1 nccls {COMM},2 end=1 {COMM},2"
    assert preloaded(words, CREATED).priorities == [0, -5]


def test_it_stays_raised_whatever_the_rule_says(preloaded: Runner, build: Build) -> None:
    """It carries all of the computation, and nothing waits for it."""
    policy = rule("leave", more="streams: {raise: auto, created_by: [nccl]}")
    words = f"nccl={build.nccl()} ptx=k ncclp=0 stream=0 " + f"launch=k,{BLOCKS},256,0,1 launch=k,9,32,0,2 sync " * 40
    assert preloaded(words, policy).priorities == [-5, 0] * 40


def test_wrong_streams_are_the_drivers_to_refuse(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=0 destroy=1 of=1 sget=1,8 destroy=1 destroy=0 sset=1,8,-1 scopy=1,0 {COMM},1 {COMM}"
    done, without = preloaded(words, "default"), bare(words)
    assert done.seen == without.seen


def test_a_library_with_a_name_like_it_is_not_taken_for_it(preloaded: Runner, build: Build) -> None:
    other = build.library("libmynccl.so.2", "nccl.c")
    done = preloaded(f"nccl={other} ptx=k nccls ncclk=k,9,32,0,1", "h100-paper")
    assert done.priorities == [0]
    assert done.totals["communication"] == done.totals["streams_created_raised"] == 0


# ---- Who is communication ----


def test_whatever_a_communication_library_launches_is_communication(
    bare: Runner, preloaded: Runner, build: Build
) -> None:
    words = f"nccl={build.nccl()} ptx=k" + f" ncclk=k,{BLOCKS},256,0 launch=k,{BLOCKS},256,0" * 2
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert [size > 0 for size in done.sizes] == [False, True, False, True]
    assert done.totals["communication"] == 2


def test_the_policys_own_kernels_and_libraries_are_communication(preloaded: Runner, build: Build) -> None:
    ours = build.library("libours.so.1", "nccl.c", link=["-L" + str(Path(build.nccl()).parent)])
    launches = [f"{how},{BLOCKS},256,0" for how in ("launch=mine", "ncclk=k", "launch=k")]
    policy = rule("{blocks_per_sm: 1}", more='communication: {kernels: [all, "mine*"], libraries: ["libours.so*"]}')
    done = preloaded(f"nccl={ours} ptx=mine,k {' '.join(launches)}", policy)
    assert [size > 0 for size in done.sizes] == [False, False, True]
    assert done.totals["communication"] == 2


@pytest.mark.parametrize("listed", ["[all]", "[nccl]", "nvshmem", '[rccl, "mine*"]', '["mine*"]'])
def test_known_families_always_communicate(listed: str, preloaded: Runner) -> None:
    """Whatever the list says: they are counted as such, and a rule never shapes them."""
    kernels = (NCCL, "nvshmemi_barrier_kernel", "mine")
    words = f"ptx={','.join(kernels)} " + " ".join(f"launch={kernel},{BLOCKS},256,0" for kernel in kernels * 2)
    done = preloaded(words, rule("{blocks_per_sm: 1}", more=f"communication: {{kernels: {listed}}}"))
    mine = "mine" in listed
    assert [size > 0 for size in done.sizes] == [False, False, not mine] * 2
    assert done.totals["communication"] == 4 + 2 * mine


# ---- Attributes of launches ----


@pytest.mark.parametrize("attributes", ["4:2:1:1", "4:2:1:1,8:-1", "8:-1", "2:1,9:1,13:0,1:0,14:50,10:1"])
def test_attributes_of_communication_are_passed_on(attributes: str, bare: Runner, preloaded: Runner) -> None:
    """The array ends where its page ends, and the next page cannot be read."""
    words = f"ptx={NCCL} attr={attributes} ex={NCCL},16,256,0 attr={attributes} ex_ptsz={NCCL},16,256,64"
    done, without = preloaded(words, "default"), bare(words)
    assert [launch["result"] for launch in without.launches] == [0, 0], without.stdout
    same(done, without)


def test_attributes_of_computation_are_not_read_beyond_their_end(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k attr=4:1:1:1,9:1 ex=k,{BLOCKS},256,0 attr=9:1 ex=k,{BLOCKS},256,0 attr=" + ",".join(["9:1"] * 16)
    words += f" ex=k,{BLOCKS},256,0"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.totals["shaped"] == 3
