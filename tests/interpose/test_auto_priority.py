"""`priority: auto`: the greatest, until the process shows that it should not be; then as the program has it."""

from __future__ import annotations

import pytest
from interposing import NCCL, Runner, rule, same

AUTO = rule("leave", more="communication: {priority: auto}")
COMM = f"launch={NCCL},16,256,0"
LEAST, MOST = 119, 1056  # blocks of one wave that fill at least 90 % of 132 multiprocessors


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_greatest_by_default(load: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}={NCCL},k stream=0 repeat=5 {COMM} repeat=5 {COMM},1 ex={NCCL},16,256,0 coop={NCCL},16,256,0,1 "
    words += f"launch_ptsz={NCCL},16,256,0 launch=k,4000,256,0 {COMM}"
    done, without = preloaded(words, AUTO, way), bare(words, way)
    same(done, without, but=["priority", "entry"])
    assert done.priorities == [-5] * 13 + [0, -5]
    assert (done.totals["communication"], done.totals["raised"]) == (14, 14)
    assert done.reasons == {"communication": 14, "rule_leave": 1}


PROGRAMS_OWN = {
    "stream": f"stream=-2 {COMM},1",
    "blocking stream": f"blocking=-1 {COMM},1",
    "stream by attribute": f"stream=0 sset=1,8,-3 {COMM},1",
    "launch": f"attr=8:-1 ex={NCCL},16,256,0",
    "launch, last of two": f"attr=8:0,8:-1 ex={NCCL},16,256,0",
    "legacy stream": f"sset=0,8,-2 {COMM}",
    "per-thread stream": f"sset_ptsz=0,8,-2 launch_ptsz={NCCL},16,256,0",
    "captured": f"stream=-2 begin=1 {COMM},1 end=1 go=1,1",
}


@pytest.mark.parametrize("own", PROGRAMS_OWN)
def test_a_priority_of_the_programs_own_ends_it(own: str, bare: Runner, preloaded: Runner) -> None:
    """That very launch, and all that come."""
    words = f"ptx={NCCL},k {COMM} {COMM} {PROGRAMS_OWN[own]} {COMM} {PROGRAMS_OWN[own].split()[-1]} {COMM}"
    if own == "captured":
        words = f"ptx={NCCL},k {COMM} {COMM} {PROGRAMS_OWN[own]} {COMM} {COMM}"
    done, without = preloaded(words, AUTO), bare(words)
    same(done, without, but=["priority", "entry"])
    assert done.launches[2:] == without.launches[2:]
    assert done.priorities[:2] == [-5, -5]
    assert done.reasons["communication"] == 2
    assert done.reasons == {"communication": 2, "program_sets_priority": done.totals["communication"] - 2}
    assert done.totals["raised"] == 2


NOT_ITS_OWN = {
    "stream of 0": f"stream=0 {COMM},1",
    "attribute 0": f"attr=8:0 ex={NCCL},16,256,0",
    "last of two": f"attr=8:-1,8:0 ex={NCCL},16,256,0",
    "computation on a stream of its own": "stream=-3 launch=k,4000,256,0,1",
    "computation by attribute": "attr=8:-3 ex=k,4000,256,0",
    "nothing on the stream": "stream=-4 plain",
}


@pytest.mark.parametrize("other", NOT_ITS_OWN)
def test_what_is_no_priority_of_communications_own_does_not(other: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k {COMM} {NOT_ITS_OWN[other]} {COMM} {COMM}"
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert {launch["priority"] for launch in done.launches if launch["kernel"] == NCCL} == {-5}
    assert "program_sets_priority" not in done.reasons


@pytest.mark.parametrize(
    ("launch", "ends"),
    [
        (f"launch=k,{LEAST},256,0,1", True),
        (f"launch=k,{LEAST - 1},256,0,1", False),
        (f"launch=k,{MOST},256,0,1", True),
        (f"launch=k,{MOST + 1},256,0,1", False),
        ("launch=k,1000,256,0,1", True),
        ("launch=k,1000,256,0", False),  # on the stream of the communication
        ("coop=k,132,256,0,1", True),
        ("launch=k,264,1024,0,1", True),
        ("launch=k,265,1024,0,1", False),
        ("launch=k,0,256,0,1", False),
        ("begin=1 launch=k,1000,256,0,1 end=1 go=1,1", False),  # no communication of the same capture is beside it
        ("sync launch=k,1000,256,0,1 sync", False),  # the host has waited before and behind it
        ("launch=k,1000,256,0,1 sync", True),
        ("launch=k,4000,256,0,1 sync", False),
    ],
)
def test_a_grid_that_fills_the_gpu_in_one_wave_ends_it(
    launch: str, ends: bool, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx={NCCL},k stream=0 {COMM} {COMM} {launch} {COMM} {COMM}"
    done, without = preloaded(words, AUTO), bare(words)
    same(done, without, but=["priority", "entry"])
    last = [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL]
    assert last == ([-5, -5, 0, 0] if ends else [-5] * 4)
    assert done.reasons.get("one_wave_neighbour", 0) == (2 if ends else 0)
    assert done.totals["raised"] == (2 if ends else 4)


def test_a_grid_that_was_launched_before_ends_it_once_communication_is_beside_it(
    bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx={NCCL},k stream=0 {COMM} {COMM} sync launch=k,1000,256,0,1 {COMM} {COMM}"
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL] == [-5, -5, -5, 0]
    assert done.reasons == {"communication": 3, "one_wave_neighbour": 1, "rule_leave": 1}


def test_large_and_small_grids_in_turn(bare: Runner, preloaded: Runner) -> None:
    """Each has an answer of its own in the cache."""
    small = " ".join(f"launch=k,{blocks},256,0,1" for blocks in (10, 4000, 118, 1057, 10, 4000))
    words = f"ptx={NCCL},k stream=0 {COMM} {small} {COMM} {small} launch=k,500,256,0,1 {COMM}"
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL] == [-5, -5, 0]


def test_before_communication_was_seen_it_does_not_count(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 repeat=3 launch=k,1000,256,0,1 {COMM} {COMM} launch=k,1000,256,0,1 {COMM}"
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert done.priorities == [0] * 3 + [-5, -5, 0, 0]


def test_the_first_reason_stays(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=-1 {COMM} launch=k,1000,256,0,1 {COMM} {COMM},1 {COMM}"
    done, without = preloaded(words, AUTO), bare(words)
    same(done, without, but=["priority", "entry"])
    assert done.reasons == {"communication": 1, "one_wave_neighbour": 3, "rule_leave": 1}
    words = f"ptx={NCCL},k stream=-1 {COMM} {COMM},1 launch=k,1000,256,0,1 {COMM}"
    assert preloaded(words, AUTO).reasons == {"communication": 1, "program_sets_priority": 2, "rule_leave": 1}


def test_it_is_the_same_for_every_thread_and_kernel(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},ncclDevKernel_Other,k stream=0 {COMM} launch=ncclDevKernel_Other,16,256,0 "
    words += (
        f"thread launch=k,1000,256,0,1 end_thread {COMM} launch=ncclDevKernel_Other,16,256,0 thread {COMM} end_thread"
    )
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert done.priorities == [-5, -5, 0, 0, 0, 0]


def test_fewer_multiprocessors_are_filled_sooner(bare: Runner, preloaded: Runner) -> None:
    small = f"launch={NCCL},5,256,0"
    words = f"ptx={NCCL},k stream=0 {small} launch=k,14,256,0,1 {small} launch=k,15,256,0,1 {small}"
    env = {"SIMGPU_MULTIPROCESSORS": "16"}
    done = preloaded(words, AUTO, env=env)
    same(done, bare(words, env=env), but=["priority", "entry"])
    assert [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL] == [-5, -5, 0]


@pytest.mark.parametrize(
    ("blocks", "multiprocessors", "ends"),
    [(44, 132, False), (45, 132, True), (64, 132, True), (5, 16, False), (6, 16, True)],
)
def test_communication_that_takes_more_than_a_third_of_the_gpu_ends_it(
    blocks: int, multiprocessors: int, ends: bool, bare: Runner, preloaded: Runner
) -> None:
    """Narrow launches of the same kernel before and behind it; each has an answer of its own in the cache."""
    narrow = f"launch={NCCL},{multiprocessors // 3},256,0"
    words = f"ptx={NCCL},k {narrow} {narrow} launch={NCCL},{blocks},256,0 {narrow} launch=k,4000,256,0"
    env = {"SIMGPU_MULTIPROCESSORS": str(multiprocessors)}
    done = preloaded(words, AUTO, env=env)
    same(done, bare(words, env=env), but=["priority", "entry"])
    given = [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL]
    assert given == [-5] * (len(given) - 2) + ([0, 0] if ends else [-5, -5])
    assert done.totals["communication_wide"] == (2 if ends else 0)
    assert done.totals["communication_unhurried"] == 0
    assert set(done.reasons) == {"communication", "rule_leave"}


@pytest.mark.parametrize("priority", ["highest", "-2"])
def test_wide_communication_is_raised_where_the_policy_says_so(priority: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k launch={NCCL},132,256,0 launch={NCCL},64,256,0"
    done = preloaded(words, rule("leave", more=f"communication: {{priority: {priority}}}"))
    same(done, bare(words), but=["priority", "entry"])
    assert (done.totals["raised"], done.totals["communication_wide"]) == (2, 0)


@pytest.mark.parametrize("priority", ["highest", "-2", "inherit"])
def test_only_auto_ends(priority: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=-1 {COMM} launch=k,1000,256,0,1 {COMM},1 attr=8:-1 ex={NCCL},16,256,0 {COMM}"
    done, without = preloaded(words, rule("leave", more=f"communication: {{priority: {priority}}}")), bare(words)
    same(done, without, but=["priority", "entry"])
    wanted = {"highest": [-5, -5, -5, -5], "-2": [-2, -2, -2, -2], "inherit": [0, -1, -1, 0]}[priority]
    assert [launch["priority"] for launch in done.launches if launch["kernel"] == NCCL] == wanted


def test_a_graph_that_was_made_before_keeps_its_priority(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx={NCCL},k stream=0 graph node={NCCL},16,256,0 make=flags run=0,1 {COMM} launch=k,1000,256,0,1 "
    words += f"run=0,1 graph node={NCCL},16,256,0 make=flags run=0,1 sync"
    done = preloaded(words, AUTO)
    same(done, bare(words), but=["priority", "entry"])
    assert [launch["priority"] for launch in done.in_graphs] == [-5, -5, 0]


def test_a_driver_before_12_says_so_and_nothing_is_raised(preloaded: Runner) -> None:
    done = preloaded(f"ptx={NCCL} {COMM} {COMM}", AUTO, env={"SIMGPU_DRIVER_VERSION": "11080"})
    assert done.priorities == [0, 0]
    assert done.stderr.count("communication is not raised") == 1


def test_a_question_about_the_legacy_stream_does_not_end_a_capture(bare: Runner, preloaded: Runner) -> None:
    """While a blocking stream captures, asking the legacy stream for its priority ends that (seen on driver 580)."""
    wrong = f"launch={NCCL},0,256,0"  # refused before anything happens to a stream
    for before in ("", "sset=0,8,0 "):
        words = f"ptx={NCCL},k blocking=0 {before}{COMM} begin=1 {wrong} launch=k,10,256,0,1 end=1 go=1,1 sync"
        done, without = preloaded(words, AUTO), bare(words)
        assert "end: 0" in without.stdout
        assert done.seen == without.seen
