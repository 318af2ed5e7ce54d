"""The driver gets the size that the rule asks for; the program never learns of it."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Runner, rule, same, smallest_size

LAUNCH = f"launch=k,{BLOCKS},256"


@pytest.mark.parametrize(
    ("shape", "asked", "size"),
    [
        ("{blocks_per_sm: 1}", 0, smallest_size(1)),
        ("{blocks_per_sm: 2}", 1000, smallest_size(2)),
        ("{blocks_per_sm: 50%}", 0, smallest_size(4)),  # of eight
        ("{dynamic_shared_memory: 96KiB}", 0, 98304),
        ("{dynamic_shared_memory: 40KiB}", 49152, 49152),  # never less than asked
        ("{dynamic_shared_memory: 40KiB}", 100, 40960),
    ],
)
def test_size_is_the_larger_of_asked_and_target(
    shape: str, asked: int, size: int, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k repeat=5 {LAUNCH},{asked} repeat=5 ex=k,{BLOCKS},256,{asked}"
    done = preloaded(words, rule(shape))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [size] * 10
    assert done.totals["shaped"] == (10 if size != asked else 0)
    assert done.totals["refused"] == 0


@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_the_limit_that_the_program_reads_back_is_its_own(load: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k get=k,8 {LAUNCH},0 get=k,8 set=k,8,60000 get=k,8 {LAUNCH},0 get=k,8 {LAUNCH},55000 get=k,8"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert "value 60000" in done.stdout
    assert done.sizes == [smallest_size(1)] * 3


@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_a_program_that_lowers_the_limit_before_each_launch_keeps_working(
    load: str, bare: Runner, preloaded: Runner
) -> None:
    words = f"{load}=k " + f"set=k,8,1024 {LAUNCH},512 {LAUNCH},512 get=k,8 " * 4
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [smallest_size(1)] * 8
    assert done.totals["refused"] == 0


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("size", [49153, 60000, 200000, 262143, 300000])
def test_a_launch_beyond_the_programs_own_limit_fails_as_it_would_alone(
    load: str, size: int, bare: Runner, preloaded: Runner
) -> None:
    """The library has raised the limit for its own sizes; the program must not profit, whatever it launched before."""
    beyond = f"{LAUNCH},{size} launch=k,1,256,{size}"
    words = f"{load}=k {beyond} {LAUNCH},0 {LAUNCH},0 {beyond} {beyond} {LAUNCH},0 get=k,8"
    without, done = bare(words), preloaded(words, ONE)
    assert without.stdout.count("launch: 1") == 6
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"invalid_as_asked": 6, "shaped": 3}
    allowed = f"{load}=k {LAUNCH},0 {beyond} set=k,8,{size} {beyond} set=k,8,100 {beyond} {LAUNCH},100 {LAUNCH},101"
    same(preloaded(allowed, ONE), bare(allowed), but=["dynamic_shared"])


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ("launch=k,1056,256,0", "one_wave"),
        ("launch=k,1,1,0", "one_wave"),
        ("coop=k,1000,256,0", "cooperative"),
        ("coop=k,5000,256,0", "cooperative"),  # which the driver refuses
        ("attr=2:1 ex=k,1000,256,0", "cooperative"),
        (f"attr=6:1 ex=k,{BLOCKS},256,0", "programmatic"),
        (f"attr=7:0 ex=k,{BLOCKS},256,0", "programmatic"),
        (f"launch={NCCL},{BLOCKS},256,0", "communication"),
    ],
)
def test_never_shaped_and_the_report_says_why(launch: str, reason: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} {launch} {launch} {launch}"
    done = preloaded(words, ONE)
    same(done, bare(words))
    assert done.reasons == {reason: 3}
    assert done.totals["shaped"] == 0


@pytest.mark.parametrize(
    ("launch", "more"),
    [
        ("launch=k,1057,256,0", "one block above a wave"),
        (f"attr=4:1:1:1 ex=k,{BLOCKS},256,0", "a cluster of one is none"),
        (f"attr=6:0 ex=k,{BLOCKS},256,0", "not programmatic"),
        (f"attr=2:0 ex=k,{BLOCKS},256,0", "not cooperative"),
    ],
)
def test_shaped_at_the_border(launch: str, more: str, preloaded: Runner) -> None:
    done = preloaded(f"ptx=k {launch} {launch}", ONE)
    assert done.sizes == [smallest_size(1)] * 2, more


def test_one_kernel_with_small_and_large_grids_in_turn(bare: Runner, preloaded: Runner) -> None:
    words = (
        "ptx=k "
        + f"launch=k,1056,256,0 launch=k,1057,256,0 {LAUNCH},0 launch=k,10,256,0 {LAUNCH},64 launch=k,{BLOCKS},512,0 "
        * 5
    )
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    size = smallest_size(1)
    assert done.sizes == [0, size, size, 0, size, size] * 5


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (rule("leave"), "rule_leave"),
        (rule("{blocks_per_sm: 1}", match='kernel: "other*"'), "no_rule"),
        ("observe", "observe_only"),
        (rule("{blocks_per_sm: 8}"), "room_already"),
        (rule("{dynamic_shared_memory: 226KiB}", match='threads: ">=257"'), "no_rule"),
        (
            'compute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 1}, keep_at_least: 50%, when: always}]',
            "below_keep",
        ),
    ],
)
def test_left_alone_and_the_report_says_why(policy: str, reason: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k repeat=4 {LAUNCH},0"
    done = preloaded(words, policy)
    same(done, bare(words))
    assert done.reasons == {reason: 4}


def test_a_policy_for_another_gpu_says_so_once(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k repeat=4 {LAUNCH},0 ex=k,1,32,0"
    done, without = preloaded(words, "a40-paper"), bare(words)
    assert done.stderr.count("\n") == 1
    assert "no policy is for NVIDIA H100" in done.stderr
    assert (done.stdout, done.launches) == (without.stdout, without.launches)
    assert done.reasons == {"observe_only": 5}


def test_communication_is_known_on_a_gpu_without_a_policy(preloaded: Runner) -> None:
    """The families of communication kernels are built in."""
    done = preloaded(f"ptx=k,{NCCL} launch={NCCL},16,640,0 {LAUNCH},0", "a40-paper")
    assert done.reasons == {"communication": 1, "observe_only": 1}
    assert done.totals["communication"] == 1


def test_the_cap_that_makes_no_room_is_called_so(preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} set={NCCL},8,82240 launch={NCCL},16,640,82240 {LAUNCH},0"
    done = preloaded(words, rule("{blocks_per_sm: 4}"))
    assert done.reasons == {"communication": 1, "capped_without_room": 1}
    assert done.sizes == [82240, smallest_size(4)]
