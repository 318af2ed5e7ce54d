"""Streams that something waits for: the smaller ones are raised, all others stay (shim/core/judge.h).

Devices are judged at the 16th, 32nd, 64th, ... wait for one of their streams, and at the first wait for a stream that
communicates.
"""

from __future__ import annotations

import pytest
from interposing import NCCL, Build
from iterating import AUTO, HOST, JOIN, STYLE_0, Iterations, raised
from peers import forwarding_driver

# Two waits a round, the first for stream 2: raised from the ninth round on.
WAITED = "k:2:8 j:1:1000 s:2 r:1:1 e:1"


def again(words: str, count: int) -> str:
    return " ".join([words] * count)


def test_communication_behind_a_boundary(iterations: Iterations) -> None:
    """The device is judged at the first wait for it."""
    done = iterations(STYLE_0)
    assert raised(done) == raised(done, NCCL) == "0" + "5" * 7
    assert raised(done, "j") == "0" * 8
    assert (done.reasons["raised"], done.totals["raised"]) == (7, 14)
    (stream,) = [one for one in done.report["processes"][0]["streams"] if one["status"] == "raised"]
    assert stream["priority"] == -5


@pytest.mark.parametrize("wait", ["s:2", "q:2", "r:3:2 e:3", "r:3:2 Q:3", "r:3:2 w:3:3", "r:3:2 w:1:3"])
def test_who_waits(wait: str, iterations: Iterations) -> None:
    """The host by each of its calls; another stream, whether or not it computes."""
    done = iterations(HOST.format(wait=wait), 12)
    assert raised(done) == "0" * 8 + "5" * 4
    assert raised(done, "j") == "0" * 12


def test_a_stream_that_feeds_one_of_communication(iterations: Iterations) -> None:
    """The boundary on a stream of its own, handed over by an event."""
    done = iterations("k:3:8 r:3:3 w:2:3 c:2 j:1:1000 r:1:1 w:3:1 r:2:2 w:1:2")
    assert raised(done) == "0" + "5" * 7
    assert raised(done, "j") == "0" * 8


def test_a_stream_of_communication_beside_two_that_carry_too_much(iterations: Iterations) -> None:
    """80 % of the threads are of streams 3 and 4, so neither is raised; stream 2 carries none."""
    done = iterations("k:3:400 s:3 j:4:400 s:4 k:1:200 c:2 s:2")
    assert raised(done, NCCL) == "0" + "5" * 7
    assert set(raised(done) + raised(done, "j")) == {"0"}


LEFT_ALONE = {
    "all on one stream": "k:1:8 c:1 j:1:1000 s:1",
    "two equal streams": f"k:1:500 j:2:500 {JOIN}",
    "eight equal streams in turn": " ".join(f"k:{stream}:100 s:{stream}" for stream in range(1, 9)),
    "streams swap their roles": f"k:2:8 j:1:1000 {JOIN} swap:1:2",
    "more than half of the threads": "k:2:520 j:1:480 s:2",
    "nothing waits": "k:2:8 j:1:1000 r:1:1 e:1",
    "it waits for everything": "k:2:8 j:1:1000 x",
    "a stream waits for itself": "k:2:8 r:2:2 w:2:2 j:1:1000 s:1",
    "an event from before the launches of a stream that ended": "n:2 k:2:8 r:2:2 d:2 e:2 j:1:1000 s:1",
    "an event of its record in an earlier life": "n:2 r:2:2 d:2 n:2 begin k:2:8 j:1:1000 e:2",
    "the default stream": "k:0:8 j:1:1000 s:0",
    "a host function": "k:2:8 j:1:1000 h:2 r:1:1 w:2:1",
    "fills memory": "b:2 begin k:2:8 j:1:1000 f s:1",
    "copies inside the device": "b:2 begin k:2:8 j:1:1000 D s:1",
    "a copy, and two streams block": "b:2 b:3 begin k:2:8 j:1:1000 m s:1",
    "a copy, and no stream blocks": "n:2 begin k:2:8 j:1:1000 m s:1",
    "a graph of more than half of the threads": "B:2 k:2:1040 G begin g:2 j:1:1000 s:2",
    "a graph of graphs, with more than half": "B:2 k:2:520 G B:2 g:2 g:2 G begin g:2 j:1:1000 s:2",
    "a graph that honours priorities of its nodes": "B:2 k:2:8 G:2 begin g:2 k:2:8 j:1:1000 s:2",
    "a graph with communication": "B:2 k:2:8 c:2 G begin g:2 k:2:8 j:1:1000 s:2",
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str, iterations: Iterations) -> None:
    done = iterations(LEFT_ALONE[name], 70)
    assert {launch["priority"] for launch in done.launches} == {0}
    assert "raised" not in done.reasons and done.totals["raised"] == 0


def test_what_the_first_wait_did_not_show(iterations: Iterations) -> None:
    """It ends with the next judgement, at the 16th wait."""
    done = iterations(f"{STYLE_0} swap:1:2", 70)
    assert "5" in raised(done)[:8] + raised(done, "j")[:8]
    assert set(raised(done)[8:] + raised(done, "j")[8:]) == {"0"}


def test_what_the_first_wait_for_another_stream_shows(iterations: Iterations) -> None:
    """Streams of communication are judged at once, also when another one is raised already: both carry half."""
    done = iterations(f"k:1:500 c:1 j:2:500 c:2 {JOIN}", 70)
    assert set(raised(done) + raised(done, "j")) == {"0"}


def test_a_judgement_at_once_takes_nothing_from_others(iterations: Iterations) -> None:
    """Stream 2 is raised at the 1,024th wait; four waits later a stream communicates for the first time."""
    done = iterations(f"{again(WAITED, 512)} n:4 {again('j:1:1000 r:1:1 e:1', 4)} c:4 s:4 k:2:8 begin", 0)
    assert raised(done)[8:] == "5" * (512 - 8 + 1)


def test_more_threads_than_have_counters_of_their_own(iterations: Iterations) -> None:
    """All forty carry 51.6 % together; 31 of them less than half."""
    assert set(raised(iterations("k:1:150 C:40:1 s:2", 20), "j")) == {"0"}


@pytest.mark.parametrize(
    "words",
    ["k:2:490 j:1:510 s:2", "k:2:300 k:3:300 j:1:410 r:2:2 w:1:2 r:3:3 w:1:3"],
    ids=["nearly half of the threads", "two streams, nearly 60 % together"],
)
def test_as_much_as_may_be(words: str, iterations: Iterations) -> None:
    assert raised(iterations(words, 20))[-1] == "5"


def test_a_blocking_copy_waits_for_the_sole_blocking_stream(iterations: Iterations) -> None:
    done = iterations("b:2 n:3 begin k:2:8 j:1:1000 m s:1", 12)
    assert raised(done) == "0" * 8 + "5" * 4
    done = iterations(f"b:2 b:3 {again('k:2:8 j:1:1000 m s:1', 20)} d:3 begin k:2:8 j:1:1000 m s:1", 60)
    assert raised(done)[:20] == "0" * 20 and raised(done)[-1] == "5", "the other one has ended"


@pytest.mark.parametrize(("streams", "level"), [("off", "0"), ("{share: 5%}", "0"), ("{share: 20%}", "5")])
def test_what_the_policy_says(streams: str, level: str, iterations: Iterations) -> None:
    """A tenth of the threads."""
    done = iterations("k:2:100 j:1:900 s:2", 70, AUTO.replace("auto", streams))
    assert raised(done)[-1] == level


@pytest.mark.parametrize(("policy", "level"), [("default", "5"), ("observe", "0"), ("h100", "5"), ("h100-paper", "5")])
def test_shipped_policies(policy: str, level: str, iterations: Iterations) -> None:
    assert raised(iterations(STYLE_0, 20, policy))[-1] == level


@pytest.mark.parametrize(("multiprocessors", "level"), [("12", "5"), ("11", "0")])
def test_wide_communication(multiprocessors: str, level: str, iterations: Iterations) -> None:
    """Four blocks: raised, they would take more than a third of so few multiprocessors at once."""
    done = iterations(STYLE_0, env={"SIMGPU_MULTIPROCESSORS": multiprocessors})
    assert raised(done)[-1] == level


def test_each_launch_on_a_raised_stream_is_counted(iterations: Iterations) -> None:
    """Also those that their thread has made before."""
    done = iterations("k:2:8 j:1:1000 s:2 " + "k:2:8 " * 4, 200)
    assert done.reasons["raised"] == done.totals["raised"] == sum(one != "0" for one in raised(done)) > 500


def test_a_computation_on_a_raised_stream_is_not_shaped(iterations: Iterations) -> None:
    policy = 'compute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 1}, when: always}]'
    done = iterations(f"{again('k:2:4 j:1:1000 s:2', 16)} begin k:2:2000 j:1:3000 s:2", 8, policy)
    assert raised(done)[-8:] == "5" * 8
    assert [launch["dynamic_shared"] > 0 for launch in done.launches[-16:]] == [False, True] * 8


# ---- Given back ----


def test_it_becomes_major(iterations: Iterations) -> None:
    """Judged at the 32nd wait, when half of the rounds since the judgement before ... are of the other kind."""
    done = iterations(f"{again(STYLE_0, 8)} begin k:2:1000 c:2 j:1:8 {JOIN}", 30)
    assert raised(done) == "0" + "5" * 15 + "0" * 22


def test_nothing_waits_for_it_any_more(iterations: Iterations) -> None:
    """The 64th wait comes 32 rounds later."""
    done = iterations(f"{again(WAITED, 16)} begin k:2:8 j:1:1000 s:1", 50)
    assert raised(done) == "0" * 8 + "5" * 40 + "0" * 18


@pytest.mark.parametrize("words", [WAITED, STYLE_0], ids=["computation", "communication"])
def test_nothing_is_launched_any_more(words: str, iterations: Iterations) -> None:
    """Nothing is learned from that."""
    done = iterations(f"{again(words, 16)} {again('s:1 s:2', 600)} k:2:8 j:1:1000 begin", 0)
    assert raised(done)[-1] == "5"
    assert raised(done, "j")[-1] == "0"


@pytest.mark.parametrize("set_it", ["p:5:-1", "n:5 a:5:-1", "n:5 p:6:-1 t:5:6"])
def test_the_program_sets_a_priority(set_it: str, iterations: Iterations) -> None:
    """It decides once a stream with one carries a launch; raised streams are given back then, at once."""
    done = iterations(f"{again(STYLE_0, 6)} {set_it} {again(STYLE_0, 6)} k:5:8 begin {STYLE_0} P:2 P:5", 20)
    assert raised(done) == "0" + "5" * 11 + "1" + "0" * 20


def test_the_program_sets_that_of_a_raised_stream(iterations: Iterations) -> None:
    done = iterations(f"{again(STYLE_0, 6)} a:2:-1 begin {STYLE_0} P:2", 8)
    assert raised(done) == "0" + "5" * 5 + "1" * 8


def test_the_program_sets_a_priority_right_behind_a_judgement(iterations: Iterations) -> None:
    """Nothing was launched since, but who sets priorities has decided."""
    done = iterations(f"p:5:-1 {again(WAITED, 8)} k:5:8 begin {WAITED}", 3)
    assert raised(done) == "0" * 8 + "1" + "0" * 3


@pytest.mark.parametrize("priority", [-2, -5])
@pytest.mark.parametrize("how", ["p:2:{}", "n:2 a:2:{}"])
def test_a_priority_of_the_programs_own(how: str, priority: int, iterations: Iterations) -> None:
    done = iterations(f"{how.format(priority)} begin {STYLE_0} P:2", 20)
    assert set(raised(done)) == {str(-priority)}
    assert "raised" not in done.reasons
    assert "programs" in {stream["status"] for stream in done.report["processes"][0]["streams"]}


def test_pools_of_which_nothing_is_used_decide_nothing(iterations: Iterations) -> None:
    """PyTorch creates 32 streams of each priority at the first use of any."""
    pools = " ".join(f"o:32:{priority}" for priority in range(0, -6, -1))
    done = iterations(f"{pools} p:5:-3 begin {STYLE_0}", 12)
    assert raised(done) == "0" + "5" * 11
    done = iterations(f"{pools} p:5:-3 {again(STYLE_0, 12)} k:5:8 begin {STYLE_0}", 12)
    assert raised(done) == "0" + "5" * 11 + "3" + "0" * 12


def test_a_driver_that_refuses_is_not_asked_again(iterations: Iterations) -> None:
    """Streams have attributes since CUDA 11.0, a priority among them since 11.7."""
    done = iterations("k:2:8 j:1:1000 s:2 " + STYLE_0.replace("P", ""), 40, env={"SIMGPU_DRIVER_VERSION": "11060"})
    assert set(raised(done)) == {"0"}
    assert "fixed" in {stream["status"] for stream in done.report["processes"][0]["streams"]}


def test_each_stream_has_a_record_of_its_own(iterations: Iterations) -> None:
    """There are 16 in the report. A stream that idles may lose its record to another one, and gets a new one later."""
    all_records = " ".join(f"k:{stream}:8" for stream in range(3, 17))
    new = "k:20:8 j:1:1000 s:20"
    words = f"{all_records} {again(WAITED, 16)} {new} {again(WAITED, 16)} {new} {again(WAITED, 32)}"
    done = iterations(f"{words} {again(f'k:3:8 {new}', 64)} d:3 begin", 0)
    streams = done.report["processes"][0]["streams"]
    assert [stream["priority"] for stream in streams if stream["status"] == "raised"] == [-5, -5]


def test_streams_that_were_raised_once_give_way(iterations: Iterations) -> None:
    """17 streams are raised in turn and never used again. The one that is used now is in the report."""
    once = " ".join(f"{again(f'k:{stream}:8 s:{stream} j:1:1000', 40)}" for stream in range(3, 20))
    done = iterations(f"{once} begin k:20:8 j:1:1000 s:20", 1200)
    streams = done.report["processes"][0]["streams"]
    assert max(stream["threads"] for stream in streams if stream["status"] == "raised") > 8 * 256 * 300, (
        "judged at the 1,024th wait"
    )


# ---- What the program sees ----


def test_what_the_program_reads_back(iterations: Iterations) -> None:
    assert "5" in raised(iterations(f"{STYLE_0} P:1 P:2"))


def test_what_another_thread_reads_back(iterations: Iterations) -> None:
    """While the stream is raised and given back again and again: captures give it back."""
    done = iterations(f"n:1 n:2 n:3 {again(WAITED, 8)} R:2 begin k:2:8 B:3 G", 500)
    assert done.stdout == "another priority: 0 times\n"
    assert raised(done) == "0" * 8 + "5" * 500


def test_copied_attributes(iterations: Iterations) -> None:
    """What is copied is what the program has set."""
    done = iterations(f"begin {STYLE_0} end t:3:2 P:3 k:3:8")
    assert raised(done)[-2:] == "50"


def test_attributes_copied_to_the_default_stream(iterations: Iterations) -> None:
    """From a stream that was raised when it was created: its copy has the program's priority."""
    done = iterations("k:0:8 p:5:-3 t:0:5 P:0 P:5 begin", 0, 'streams: {created_by: ["waiting"]}')
    assert done.stdout == "priority -3 -3\n" * 2
    assert done.totals["streams_created_raised"] >= 1


# ---- Captures ----


def test_while_a_capture_is_open_all_is_as_the_program_has_it(iterations: Iterations) -> None:
    done = iterations(f"{again(STYLE_0, 6)} B:3 k:2:8 k:3:8 P:2 k:2:8 G k:2:8 begin g:3", 2)
    assert raised(done) == "0" + "5" * 5 + "000" + "5" + "00"
    assert {launch["priority"] for launch in done.in_graphs} == {0}
    assert done.reasons["raised"] == 6


def test_waits_beside_a_capture_do_not_count(iterations: Iterations) -> None:
    done = iterations("n:2 B:3 k:3:8 begin k:2:8 j:1:1000 s:2 end G k:2:8 s:2 k:2:8", 100)
    assert set(raised(done)) == {"0"}
    done = iterations("n:2 B:3 k:3:8 begin k:2:8 j:1:1000 s:2 end G k:2:8 j:1:1000 s:2 k:2:8", 15)
    assert set(raised(done)) == {"0"}, "the 16th would have the device judged"


def test_a_raised_stream_that_launches_a_graph_of_unknown_work_is_given_back(iterations: Iterations) -> None:
    done = iterations(f"B:3 c:3 k:3:8 G {again(WAITED, 9)} begin g:2 k:2:8", 1)
    assert raised(done)[-3:] == "500", "before, in the graph, behind it"
    assert done.totals["graphs_raised"] == 0


@pytest.mark.parametrize("how", ["", ":3", ":4", ":5"])
def test_a_stream_that_launches_small_graphs(how: str, iterations: Iterations) -> None:
    """Their kernels run at the priority of the stream, however the graph was instantiated."""
    first = "B:2 k:2:8 G " if how == ":5" else ""
    done = iterations(f"{first}B:2 k:2:4 k:2:4 G{how} begin g:2 j:1:1000 s:2", 70)
    assert [launch["priority"] for launch in done.in_graphs] == [0] * 2 * 16 + [-5] * 2 * (70 - 16)
    assert done.totals["graphs_raised"] == 70 - 16 and done.totals["graph_launches"] == 70
    (judged,) = [stream for stream in done.report["processes"][0]["streams"] if stream["status"] == "raised"]
    assert judged["threads"] % (8 * 256) == 0 and 0.007 <= judged["share"] <= 0.009


def test_a_program_that_launches_graphs_alone(iterations: Iterations) -> None:
    """Its only launches are the captured ones."""
    done = iterations("B:1 j:1:1000 G:6 B:2 k:2:8 G begin g:2 g:1:1 s:2", 70)
    assert (done.totals["launches"], done.totals["graphs_raised"]) == (2, 70 - 16)
    assert [launch["priority"] for launch in done.in_graphs if launch["kernel"] == "k"][16:] == [-5] * (70 - 16)
    assert {launch["priority"] for launch in done.in_graphs if launch["kernel"] == "j"} == {0}


@pytest.mark.parametrize("function", ["cuGraphKernelNodeGetParams", "cuGraphNodeGetType", "cuGraphChildGraph"])
def test_a_driver_that_does_not_say_what_graphs_hold(function: str, iterations: Iterations, build: Build) -> None:
    """cuGraphKernelNodeGetParams_v2 came with CUDA 12."""
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "EARLY", function).parent)}
    done = iterations("B:2 k:2:8 G begin g:2 j:1:1000 s:2", 70, env=env)
    assert (done.totals["graphs_raised"], done.totals["graph_launches"]) == (0, 70)
    assert {launch["priority"] for launch in done.in_graphs} == {0}


def test_a_graph_of_copies_alone_counts_like_the_copies(iterations: Iterations) -> None:
    done = iterations("n:2 B:2 A:2 G begin g:2 j:1:1000 s:2", 70)
    (stream,) = done.report["processes"][0]["streams"]
    assert stream["status"] == "not_waited" and done.totals["graphs_raised"] == 0
    done = iterations(f"n:2 B:2 A:2 G {again(WAITED, 8)} begin g:2 k:2:8 j:1:1000 s:2", 4)
    assert raised(done)[8:] == "5" * 4, "nor does it end a raise"


def test_captured_launches_are_no_work(iterations: Iterations) -> None:
    """Stream 2 carries less than a hundredth of what ran, and most of what was captured."""
    done = iterations(f"{again(WAITED, 8)} begin B:3 r:3:3 w:2:3 k:2:5000 r:2:2 w:3:2 G:1 {WAITED}", 20)
    assert raised(done)[-2:] == "05"


@pytest.mark.parametrize("end", ["d:3", "G d:3", "x B:4 G:1 d:3"])
def test_a_stream_that_ends_takes_its_capture_along(end: str, iterations: Iterations) -> None:
    done = iterations(f"{again(STYLE_0, 6)} B:3 k:2:8 {end} k:2:8 begin", 0)
    assert raised(done)[-2:] == "05"


def test_a_copy_between_two_streams_that_capture(iterations: Iterations) -> None:
    done = iterations(f"begin {STYLE_0} end n:3 B:2 B:3 t:3:2 P:3")
    assert done.reasons["raised"]


@pytest.mark.parametrize("source", ["1", "2"])
def test_attributes_are_copied_to_the_default_stream_beside_a_capture(source: str, iterations: Iterations) -> None:
    """A question about the default stream would end it."""
    done = iterations(f"n:1 b:4 {again(STYLE_0, 6)} B:4 k:4:8 t:0:{source} G:1 k:2:8 begin", 0)
    assert done.stdout == "1 nodes\n"
    assert raised(done)[-1] == "5"


def test_captures_again_and_again(iterations: Iterations) -> None:
    done = iterations(f"{again(STYLE_0, 6)} begin B:3 k:2:8 k:3:8 G k:2:8", 100)
    assert raised(done)[6:] == "005" * 100


def test_an_update_of_a_graph_that_honours_priorities(iterations: Iterations) -> None:
    """By what the stream captures once it is raised: with another priority the driver would refuse it (910)."""
    done = iterations(f"{again(STYLE_0, 2)} B:4 k:4:8 U {again(STYLE_0, 6)} B:2 k:2:8 U k:2:8 begin", 0)
    assert raised(done) == "0" + "5" * 1 + "0" + "5" * 6 + "0" + "5"


# ---- Contexts, devices, streams that end ----


def test_a_stream_at_the_address_of_a_raised_one(iterations: Iterations) -> None:
    done = iterations(f"n:1 n:2 {again(STYLE_0, 6)} d:2 n:2 P:2 k:2:8 begin", 0)
    assert raised(done) == "0" + "5" * 5 + "0"
    streams = [launch["stream"] for launch in done.launches if launch["kernel"] == "k"]
    assert streams[0] == streams[-1]
    assert done.totals["raised"] == 5 + 5, "of k and of communication"
    assert {stream["priority"] for stream in done.report["processes"][0]["streams"]} == {None}, (
        "the raised one has ended"
    )


def test_streams_that_went_with_their_context(iterations: Iterations) -> None:
    """Others get their addresses, and have the priority that the program gives them."""
    many = " ".join(f"p:{stream}:-2 P:{stream} k:{stream}:8" for stream in range(2, 10))
    done = iterations(f"z n:1 n:2 {again(STYLE_0, 6)} z {many} begin", 0)
    assert raised(done) == "0" + "5" * 5 + "2" * 8


def test_many_streams_that_went_with_their_contexts(iterations: Iterations) -> None:
    words = (f"z n:1 {'n:3 ' * (20 - i)} n:2 {again(STYLE_0, 6)}" for i in range(20))
    done = iterations(f"{' '.join(words)} begin", 0)
    assert raised(done) == ("0" + "5" * 5) * 20


def test_a_capture_ends_with_its_context(iterations: Iterations) -> None:
    done = iterations(f"z B:3 k:3:8 z begin {STYLE_0}", 6)
    assert raised(done)[-5:] == "5" * 5


@pytest.mark.parametrize("reset", ["Z:0", "B:3 Z:0"])
def test_a_device_that_is_reset(reset: str, iterations: Iterations) -> None:
    """What was raised there is never named to the driver again: a capture on another device lowers all others."""
    words = f"v:1 n:3 {again(STYLE_0, 6)} v:0 {again(STYLE_0, 6)} {reset} v:1 B:3 k:3:8 G k:2:8"
    done = iterations(f"{words} begin", 0, env={"SIMGPU": "h100,2"})
    assert raised(done) == ("0" + "5" * 5) * 2 + "0" + "5"


def test_a_reset_of_another_device(iterations: Iterations) -> None:
    """The graph that is captured meanwhile can update the first one; and two streams still block here."""
    graph = "r:5:3 w:2:5 k:2:8 r:6:2 w:3:6 U"
    words = f"v:1 n:1 v:0 n:1 b:2 {again(STYLE_0, 6)} B:3 {graph} B:3 Z:1 {graph} n:2 b:3"
    done = iterations(f"{words} begin k:3:8 j:1:1000 m s:1", 30, env={"SIMGPU": "h100,2"})
    assert raised(done) == "0" + "5" * 5 + "0" * 32


def test_devices_are_judged_by_themselves(iterations: Iterations) -> None:
    """The boundary of the first device has the name of the interior of the second."""
    second = STYLE_0.replace("k:2", "k:1").replace("j:1", "j:2").replace("c:2", "c:1")
    done = iterations(f"v:0 {STYLE_0} v:1 {second}", 8, env={"SIMGPU": "h100,2"})
    assert raised(done) == "00" + "55" * 7
    assert raised(done, "j") == "0" * 16


def test_a_second_context_is_not_taken_for_the_first(iterations: Iterations) -> None:
    """In each a copy waits for its sole blocking stream; their default streams are two; a device is judged as one."""
    one = "k:2:8 j:1:1000 m"
    done = iterations(f"b:2 v:2 b:2 begin v:0 {one} k:0:8 v:2 {one} k:0:8", 30)
    on = [launch["stream"] for launch in done.launches if launch["kernel"] == "k"]
    levels = raised(done)
    assert levels[-4:] == "5050" and on[-4] != on[-2]


def test_a_judgement_is_of_every_context_of_the_device(iterations: Iterations) -> None:
    """Stream 2 of the first context stays raised while it has no turn; with more than a thousandth of the work and not
    waited for, it is given back, while the second one is current."""
    there = f"v:2 {again('k:5:8 j:6:1000 s:5 s:6', 60)} v:0"
    done = iterations(f"{again(WAITED, 16)} {there} k:2:100 {there} k:2:8 s:2 k:2:8 begin", 0)
    levels = raised(done)
    assert levels[-63] == "5" and levels[-2:] == "00"
    assert levels[70] == "5", "that of the second context is raised"


def test_more_streams_than_are_tracked(iterations: Iterations) -> None:
    done = iterations(
        f"n:1 n:2 {again(STYLE_0, 6)} o:17000:0 n:3 n:4 {again('k:3:8 j:4:1000 s:3', 20)} begin {STYLE_0}", 9
    )
    assert raised(done) == "0" + "5" * 5 + "0" * 20 + "5" * 9
    full = "o:16379:0 n:13 n:10 n:11 n:12 b:1 d:10 b:2 d:11 d:12 b:3 d:1 d:2 d:13 b:4 b:5 m"
    assert iterations(full, 1).status == 0, "blocking streams are counted from the time at which there is room"


# ---- Processes ----


@pytest.mark.parametrize("state", ["", "B:3 k:3:8 "], ids=["raised", "in a capture"])
def test_a_fork(state: str, iterations: Iterations) -> None:
    """The driver refuses the child's launch, with and without us; the parent goes on."""
    done = iterations(f"{again(STYLE_0, 6)} {state}begin F {'' if state else STYLE_0}", 5)
    assert done.stdout == ""
    assert raised(done)[-1] == ("0" if state else "5")


def test_communication_in_a_graph_is_known_by_the_library_that_was_captured(iterations: Iterations) -> None:
    """Its kernels have names of their own. A graph that holds it counts as large (docs/explanation/limits.md)."""
    policy = AUTO + '\ncommunication: {libraries: ["waiting*"]}'
    words = "n:2 n:1 B:2 k:2:100 G B:1 j:1:1000 G:6 begin g:2 g:1:1 s:2"
    assert {one["priority"] for one in iterations(words, 60, policy).in_graphs} == {0}
    assert {one["priority"] for one in iterations(words, 60).in_graphs if one["kernel"] == "k"} == {0, -5}


@pytest.mark.parametrize("waits", ["x", "s:0"], ids=["for the context", "for the default stream"])
def test_what_was_raised_is_given_back_though_nothing_waits_for_a_stream_any_more(
    iterations: Iterations, waits: str
) -> None:
    """Stream 2 has nearly all of the work in the second phase, and no wait names a stream."""
    first = " ".join(["k:2:8 j:1:1000 s:2 r:1:1 e:1"] * 20)
    done = iterations(f"{first} begin k:2:1000 j:1:8 {waits}", 2000)
    assert raised(done)[19] == "5" and raised(done)[-1] == "0"


def test_more_streams_than_the_page_has_records_for(iterations: Iterations) -> None:
    """34 are raised. The last line does not say that these are all."""
    words = " ".join(f"k:{stream}:1 s:{stream}" for stream in range(2, 36))
    done = iterations(f"{words} j:1:1000 s:1", 60)
    assert (
        done.report["processes"][0]["launches"] and "raised 16 of at least 16 streams" in done.report["verdict"]["done"]
    )
