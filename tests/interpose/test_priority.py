"""Communication is launched at the priority that the policy says; nothing else about those launches is different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, ONE, Build, Runner, rule, same

HIGHEST = "communication: {priority: highest}"
ENTRIES = ("launch", "ex", "launch_ptsz", "ex_ptsz", "coop", "coop_ptsz", "extra")


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
def test_every_entry_point_is_raised(way: str, bare: Runner, preloaded: Runner) -> None:
    words = [f"ptx={NCCL}", "stream=-1"] + [
        f"{entry}={NCCL},16,256,0,{stream}" for entry in ENTRIES for stream in (0, 1)
    ] * 2
    done, without = preloaded(words, HIGHEST, way), bare(words, way)
    assert [launch["result"] for launch in without.launches] == [0] * 28
    same(done, without, but=["priority", "entry"])
    assert without.priorities == [0, -1] * 14
    assert done.priorities == [-5] * 28
    assert done.totals["raised"] == done.totals["communication"] == 28
    # Per-thread default streams stay what they are.
    assert [launch["entry"].endswith("_ptsz") for launch in done.launches] == [
        launch["entry"].endswith("_ptsz") for launch in without.launches
    ]


def test_a_stream_that_has_the_priority_already_is_not_counted(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=-5 repeat=3 launch={NCCL},16,256,0,1"
    done = preloaded(words, HIGHEST)
    same(done, bare(words))
    assert (done.totals["raised"], done.totals["communication"]) == (0, 3)


def test_a_number_is_what_it_gets(preloaded: Runner) -> None:
    done = preloaded(f"ptx={NCCL} launch={NCCL},16,256,0", "communication: {priority: -2}")
    assert done.priorities == [-2]


def test_inherit_leaves_it(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} repeat=3 launch={NCCL},16,256,0 attr=8:-3 ex={NCCL},16,256,0"
    done = preloaded(words, "communication: {priority: inherit}")
    same(done, bare(words))
    assert (done.totals["raised"], done.totals["communication"]) == (0, 4)


def test_computation_is_not_raised(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,1,32,0"
    done = preloaded(words, HIGHEST)
    same(done, bare(words))
    assert done.totals["communication"] == 0


@pytest.mark.parametrize("attributes", ["4:2:1:1", "4:2:1:1,8:-1", "8:-1", "2:1,9:1,13:0,1:0,14:50,10:1"])
def test_other_attributes_are_kept_and_nothing_behind_them_is_read(
    attributes: str, bare: Runner, preloaded: Runner
) -> None:
    """The array ends where its page ends, and the next page cannot be read."""
    words = f"ptx={NCCL} attr={attributes} ex={NCCL},16,256,0 attr={attributes} ex_ptsz={NCCL},16,256,64"
    done, without = preloaded(words, HIGHEST), bare(words)
    assert [launch["result"] for launch in without.launches] == [0, 0], without.stdout
    same(done, without, but=["priority"])
    assert done.priorities == [-5, -5]
    assert done.launches[0]["cluster"] == (2 if attributes.startswith("4") else 1)


def test_attributes_of_computation_are_not_read_beyond_their_end(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k attr=4:1:1:1,9:1 ex=k,{BLOCKS},256,0 attr=9:1 ex=k,{BLOCKS},256,0"
    same(preloaded(words, ONE), bare(words), but=["dynamic_shared"])


def test_more_attributes_than_there_is_room_for_are_passed_on_as_they_are(bare: Runner, preloaded: Runner) -> None:
    words = [f"ptx={NCCL}", "attr=" + ",".join(["9:1"] * 16), f"ex={NCCL},16,256,0"]
    done, without = preloaded(words, HIGHEST), bare(words)
    same(done, without, but=["priority"])
    assert done.status == 0


def test_a_driver_before_12_is_not_asked(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} repeat=3 launch={NCCL},16,256,0 ex={NCCL},16,256,0"
    env = {"SIMGPU_DRIVER_VERSION": "11080"}
    done = preloaded(words, HIGHEST, env=env)
    assert done.stderr.count("communication is not raised: the driver is older than CUDA 12.0") == 1
    same(replace(done, stderr=""), bare(words, env=env))
    assert (done.totals["raised"], done.totals["communication"], done.totals["refused"]) == (0, 4, 0)


def test_whatever_a_communication_library_launches_is_communication(
    bare: Runner, preloaded: Runner, build: Build
) -> None:
    words = f"nccl={build.nccl()} ptx=k" + f" ncclk=k,{BLOCKS},256,0 launch=k,{BLOCKS},256,0" * 2
    done = preloaded(words, rule("{blocks_per_sm: 1}", more=HIGHEST))
    same(done, bare(words), but=["priority", "dynamic_shared", "entry"])
    assert done.priorities == [-5, 0, -5, 0]
    assert [size > 0 for size in done.sizes] == [False, True, False, True]
    assert (done.totals["raised"], done.totals["communication"]) == (2, 2)


def test_the_policys_own_kernels_and_libraries_are_communication(preloaded: Runner, build: Build) -> None:
    ours = build.library("libours.so.1", "nccl.c", link=["-L" + str(Path(build.nccl()).parent)])
    words = f"nccl={ours} ptx=mine,k launch=mine,9,32,0 ncclk=k,9,32,0 launch=k,9,32,0"
    done = preloaded(words, 'communication: {kernels: [all, "mine*"], libraries: ["libours.so*"], priority: highest}')
    assert done.priorities == [-5, -5, 0]


@pytest.mark.parametrize(
    ("listed", "raised"),
    [
        ("[all]", [True, True, False]),
        ("[nccl]", [True, False, False]),
        ("nvshmem", [False, True, False]),
        ('[rccl, "mine*"]', [True, False, True]),
        ('["mine*"]', [True, True, True]),
    ],
)
@pytest.mark.hazard("input", "a policy that names one family of communication raises every other as well")
def test_a_list_of_families_restricts_what_is_raised(listed: str, raised: list[bool], preloaded: Runner) -> None:
    """The other families stay communication: they are counted as such, and a rule never shapes them."""
    other = "nvshmemi_barrier_kernel"
    words = (
        f"ptx={NCCL},{other},mine" + f" launch={NCCL},16,256,0 launch={other},16,256,0 launch=mine,{BLOCKS},256,0" * 2
    )
    done = preloaded(words, rule("{blocks_per_sm: 1}", more=f"communication: {{kernels: {listed}, priority: highest}}"))
    assert [priority == -5 for priority in done.priorities] == raised * 2
    mine = "mine" in listed
    assert [size > 0 for size in done.sizes] == [False, False, not mine] * 2
    assert done.totals["communication"] == 4 + 2 * mine
    assert done.totals["raised"] == 2 * sum(raised)


def test_streams_of_a_communication_library_are_raised_but_not_counted_as_raised(
    bare: Runner, preloaded: Runner, build: Build
) -> None:
    words = f"nccl={build.nccl()} ptx=k nccls plain stream=-1 of=1 of=2 of=3 ncclk=k,9,32,0,1 launch=k,9,32,0,2"
    policy = 'communication: {priority: inherit, streams: {created_by: ["libnccl.so*"], priority: highest}}'
    done, without = preloaded(words, policy), bare(words)
    assert [line for line in without.stdout.splitlines() if "priority" in line] == [
        "priority 0",
        "priority 0",
        "priority -1",
    ]
    assert [line for line in done.stdout.splitlines() if "priority" in line] == [
        "priority -5",
        "priority 0",
        "priority -1",
    ]
    assert done.priorities == [-5, 0]
    assert done.totals["raised"] == 0
    assert done.totals["streams_raised"] == 1


def test_a_library_with_a_name_like_it_is_not_taken_for_it(preloaded: Runner, build: Build) -> None:
    other = build.library("libmynccl.so.2", "nccl.c")
    done = preloaded(f"nccl={other} ptx=k nccls of=1 ncclk=k,9,32,0", "h100-paper")
    assert "priority 0" in done.stdout
    assert done.totals["communication"] == 0


def test_a_launch_whose_own_attribute_is_lower_than_its_stream_is_raised_too(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL} stream=-5 attr=8:-1 ex={NCCL},16,256,0,1"
    assert bare(words).priorities == [-1]
    done = preloaded(words, HIGHEST)
    assert done.priorities == [-5]


@pytest.mark.parametrize(
    "change", ["sset=1,8,-5", "sset=1,8,-1 sset=1,8,-5", "scopy=1,2", "sset=1,8,-5 scopy=2,1 scopy=1,2"]
)
def test_a_stream_that_the_program_gives_another_priority_has_it(change: str, bare: Runner, preloaded: Runner) -> None:
    """The priority of a stream is asked once, and not again before the program changes it."""
    launch = f"repeat=3 launch={NCCL},16,256,0"
    words = f"ptx={NCCL} stream=0 stream=-5 {launch},1 {change} {launch},1"
    done = preloaded(words, HIGHEST)
    same(done, bare(words), but=["priority", "entry"])
    assert done.priorities == [-5] * 6
    assert (done.totals["raised"], done.totals["communication"]) == (3, 6)


@pytest.mark.parametrize("change", ["sset=1,8,-2", "scopy=1,2", "destroy=1 stream=-2"])
def test_auto_ends_where_the_program_changes_a_stream(change: str, bare: Runner, preloaded: Runner) -> None:
    launch = f"repeat=3 launch={NCCL},16,256,0"
    words = f"ptx={NCCL} stream=0 stream=-2 {launch},1 {change} {launch},{3 if 'destroy' in change else 1}"
    done = preloaded(words, "communication: {priority: auto}")
    assert done.priorities == [-5] * 3 + [-2] * 3
    assert done.totals["raised"] == 3
    assert done.reasons["program_sets_priority"] == 3
    same(done, bare(words), but=["priority", "entry"])
