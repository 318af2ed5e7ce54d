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


def test_the_limit_set_through_the_function_of_a_kernel_is_seen_too(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k {LAUNCH},0 function=k get=k,8 set=k,8,2048 {LAUNCH},0 get=k,8"
    done = preloaded(words, ONE)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [smallest_size(1)] * 2


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


OVERLAPPING = rule("{blocks_per_sm: 1}", when="overlapping")
COMM = f"launch={NCCL},16,256,0"


def test_overlapping_shapes_in_windows_only(bare: Runner, preloaded: Runner) -> None:
    """From communication on another stream until the host has waited for it."""
    words = f"ptx=k,{NCCL} stream=0 stream=0 repeat=2 {LAUNCH},0,2 {COMM},1 repeat=6 {LAUNCH},0,2 "
    words += f"repeat=3 {LAUNCH},0,1 sync repeat=4 {LAUNCH},0,2"
    done, without = preloaded(words, OVERLAPPING), bare(words)
    same(done, without, but=["dynamic_shared"])
    inside = {"launched_before": 2, "shaped": 6, "same_stream": 3, "not_overlapping": 4}
    assert done.reasons == {"communication": 1, **inside}
    changed = [
        ours["dynamic_shared"] != theirs["dynamic_shared"] for ours, theirs in zip(done.launches, without.launches)
    ]
    assert changed == [False] * 3 + [True] * 6 + [False] * 7


def test_without_communication_overlapping_shapes_nothing(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 repeat=6 {LAUNCH},0,1 repeat=2 {LAUNCH},0"
    done = preloaded(words, OVERLAPPING)
    same(done, bare(words))
    assert done.reasons == {"not_overlapping": 8}


def test_a_window_that_nobody_waits_for_expires(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} stream=0 stream=0 {COMM},1 repeat=600 {LAUNCH},0,2 repeat=3 {LAUNCH},0"
    done = preloaded(words, OVERLAPPING)
    same(done, bare(words), but=["dynamic_shared"])
    assert done.reasons == {"communication": 1, "shaped": 515, "window_expired": 88}


@pytest.mark.parametrize(("in_capture", "shaped"), [(f"{COMM},1", 2), ("launch=other,4000,256,0,1", 0)])
def test_a_graph_that_holds_communication_opens_a_window(
    in_capture: str, shaped: int, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k,other,{NCCL} stream=0 stream=0 begin=1 {in_capture} end=1 {LAUNCH},0,2 go=1,1 "
    words += f"repeat=2 {LAUNCH},0,2"
    done = preloaded(words, rule("{blocks_per_sm: 1}", match='kernel: "k"', when="overlapping"))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.totals["shaped"] == shaped


@pytest.mark.parametrize("between", [0, 1])
@pytest.mark.parametrize("kind", ["blocking", "stream"])
def test_a_launch_on_the_default_stream_orders_the_blocking_ones(
    kind: str, between: int, bare: Runner, preloaded: Runner
) -> None:
    """Also of a kernel of which nothing else matters, and when launches are not looked at one by one any more."""
    other = "launch=other,4000,256,0"
    words = f"ptx=k,other,{NCCL} repeat=5 {other} {kind}=0 {kind}=0 stream=0 {COMM},1 repeat=30 {other},3 "
    words += f"{LAUNCH},0,2 {other if between else ''} {LAUNCH},0,2"
    done = preloaded(words, rule("{blocks_per_sm: 1}", match='kernel: "k"', when="overlapping"))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.totals["shaped"] == (1 if kind == "blocking" and between else 2)


@pytest.mark.parametrize(
    ("words", "same_stream", "waited_for"),
    [
        (f"{LAUNCH},0,1 {COMM},1 repeat=20 {LAUNCH},0,1", 1, 0),
        (f"{COMM},1 repeat=20 {LAUNCH},0,1 {COMM},1 repeat=3 {LAUNCH},0,1 {COMM},1", 2, 0),
        (f"{LAUNCH},0,1 {COMM},1 sync repeat=20 {LAUNCH},0,2", 0, 1),
        (f"{COMM},1 {LAUNCH},0,2 repeat=20 {LAUNCH},0,1", 0, 0),
        (f"{COMM},1 repeat=3 {LAUNCH},0,1 {LAUNCH},0,2 sync repeat=20 {LAUNCH},0,2", 0, 0),
    ],
)
def test_communication_that_can_overlap_nothing_is_counted(
    words: str, same_stream: int, waited_for: int, preloaded: Runner
) -> None:
    done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {words}", OVERLAPPING)
    assert done.totals["communication_same_stream"] == same_stream
    assert done.totals["communication_waited_for"] == waited_for


def test_also_if_it_is_the_first_launch_of_its_thread(preloaded: Runner) -> None:
    for words, counter in ((f"repeat=20 {LAUNCH},0,1", "same_stream"), (f"sync repeat=20 {LAUNCH},0,2", "waited_for")):
        done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {COMM},1 {words}", OVERLAPPING)
        assert done.totals[f"communication_{counter}"] == 1


@pytest.mark.parametrize("before", ["", f"{COMM},1 sync "])
def test_what_the_host_has_waited_for_was_not_beside_it(before: str, preloaded: Runner) -> None:
    launches = f"repeat=3 {LAUNCH},0,2"
    done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {before}{launches} {COMM},1", OVERLAPPING)
    assert done.reasons["launched_before"] == 3
    done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {before}{launches} sync {COMM},1", OVERLAPPING)
    assert done.reasons == {"communication": 1 + bool(before), "not_overlapping": 3}


def test_what_was_launched_before_is_counted_once(preloaded: Runner) -> None:
    words = f"repeat=3 {LAUNCH},0,2 {COMM},1 {COMM},1 {COMM},1 sync repeat=9 {LAUNCH},0,2"
    done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {words}", OVERLAPPING)
    assert done.reasons == {"communication": 3, "launched_before": 3, "not_overlapping": 9}


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (f"{COMM},1 repeat=3 {LAUNCH},0,1 {COMM},2", {"launched_before", "same_stream"}),
        (f"{COMM},1 repeat=600 {LAUNCH},0,2 {COMM},1 {LAUNCH},0,2", {"shaped", "window_expired", "launched_before"}),
        (f"repeat=3 {LAUNCH},0,2 {COMM},1 sync {COMM},1", {"launched_before"}),
        (f"repeat=3 {LAUNCH},0,2 {COMM},1 {COMM},1 {COMM},2", {"launched_before"}),
    ],
)
def test_a_launch_has_one_reason(words: str, reasons: set[str], preloaded: Runner) -> None:
    """Whatever was said of it first, and what turns out later."""
    done = preloaded(f"ptx=k,{NCCL} stream=0 stream=0 {words}", OVERLAPPING)
    assert done.reasons.keys() - {"communication"} <= reasons
    assert sum(done.reasons.values()) == len(done.launches)


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
        (f"attr=4:2:1:1 ex=k,{BLOCKS},256,0", "enough clusters fit; see test_cluster_shaping.py"),
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
        (rule("{dynamic_shared_memory: 226KiB}", match='registers: ">=33"'), "no_rule"),
        (
            'when: always\ncompute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 1}, keep_at_least: 50%}]',
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


def test_the_cap_that_makes_no_room_is_called_so(preloaded: Runner) -> None:
    words = f"ptx=k,{NCCL} set={NCCL},8,82240 launch={NCCL},16,640,82240 {LAUNCH},0"
    done = preloaded(words, rule("{blocks_per_sm: 4}"))
    assert done.reasons == {"communication": 1, "capped_without_room": 1}
    assert done.sizes == [82240, smallest_size(4)]
