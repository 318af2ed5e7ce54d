"""Streams that somebody waits for: those that are a minor part of the computation are raised, all others stay."""

from __future__ import annotations

import resource

import pytest
from iterating import CRITICAL, HOST, JOIN, STYLE_0, Iterations, raised

LEVELS = (-5, -4)


def test_communication_behind_a_boundary(iterations: Iterations) -> None:
    done = iterations(STYLE_0)
    assert raised(done) == "000" + "5" * 5
    assert raised(done, "j") == "0" * 8
    assert done.reasons["critical"] == 5


@pytest.mark.parametrize("wait", ["s:2", "q:2", "r:3:2 e:3", "r:3:2 Q:3"])
def test_the_host_waits(wait: str, iterations: Iterations) -> None:
    done = iterations(HOST.format(wait=wait))
    assert raised(done) == "000" + "4" * 5
    assert raised(done, "j") == "0" * 8


def test_a_stream_that_feeds_one_of_communication(iterations: Iterations) -> None:
    """The boundary on a stream of its own, handed over by an event."""
    done = iterations("k:3:8 r:3:3 w:2:3 c:2 j:1:1000 r:1:1 w:3:1 r:2:2 w:1:2", 10)
    assert raised(done)[-5:] == "5" * 5
    assert raised(done, "j") == "0" * 10


def test_what_feeds_it_and_computes_most(iterations: Iterations) -> None:
    """The boundary on the computing stream: nothing is raised but communication."""
    done = iterations("k:1:8 r:3:1 w:2:3 c:2 j:1:1000 r:2:2 w:1:2", 10)
    assert raised(done) == raised(done, "j") == "0" * 10
    assert "critical" not in done.reasons


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("k:1:8 c:1 j:1:1000", id="all on one stream"),
        pytest.param("k:1:8 j:1:1000 s:1", id="it synchronises its only stream"),
        pytest.param(f"k:1:500 c:1 j:2:500 c:2 {JOIN}", id="two equal streams that both communicate"),
        pytest.param(f"{STYLE_0} swap:1:2", id="streams swap their roles"),
        pytest.param("h:2 j:1:1000 k:1:8 r:1:1 Q:1", id="a thread asks for an event of the main stream"),
        pytest.param(
            "k:2:8 r:3:2 e:3 begin k:2:8 j:1:1000 Q:3", id="it queries an event again that was over before the loop"
        ),
        pytest.param("k:2:8 r:3:2 Q:3 begin k:2:8 j:1:1000 e:3", id="it synchronizes with such an event"),
        pytest.param("k:2:8 j:1:1000 x", id="it waits for everything"),
        pytest.param("k:0:8 j:1:1000 s:0", id="the default stream"),
        pytest.param("j:1:1000 r:1:1 w:2:1 k:2:8 s:2", id="nothing else runs"),
    ],
)
def test_left_alone(words: str, iterations: Iterations) -> None:
    done = iterations(words, 12)
    assert {launch["priority"] for launch in done.launches} == {0}
    assert "critical" not in done.reasons


def test_what_it_did_once_does_not_count(iterations: Iterations) -> None:
    """An exchange on the computing stream before the loop; and each iteration's boundary waits for the interior."""
    done = iterations(f"c:1 begin r:4:1 w:2:4 {STYLE_0}", 10)
    assert raised(done)[-5:] == "5" * 5
    assert raised(done, "j") == "0" * 10


def test_a_host_function(iterations: Iterations) -> None:
    done = iterations("k:2:8 j:1:1000 h:2 r:1:1 w:2:1", 10)
    assert raised(done)[-5:] == "4" * 5


def test_a_copy_that_waits_for_a_blocking_stream(iterations: Iterations) -> None:
    done = iterations("b:2 begin k:2:8 j:1:1000 m r:1:1 w:2:1", 10)
    assert raised(done)[-5:] == "4" * 5
    assert raised(done, "j") == "0" * 10


@pytest.mark.parametrize("number", range(2, 6))
def test_each_launch_on_a_raised_stream_is_counted(number: int, iterations: Iterations) -> None:
    """Also once decisions are found in the cache again: by its handle such a stream is told from those beside it."""
    words = " ".join(f"n:{other}" for other in range(1, 6))
    loop = f"k:{number}:8 j:1:1000 s:{number} " + f"k:{number}:8 " * 4
    done = iterations(f"{words} begin {loop} r:1:1 w:{number}:1", 200)
    assert done.reasons["critical"] == sum(one != "0" for one in raised(done)) > 500


@pytest.mark.parametrize("word", ["f", "D"])
def test_what_the_host_does_not_wait_for(word: str, iterations: Iterations) -> None:
    """Fills, and copies inside the device."""
    done = iterations(f"b:2 begin k:2:8 j:1:1000 {word} r:1:1 w:2:1", 10)
    assert raised(done) == raised(done, "j") == "0" * 10


def test_it_becomes_major(iterations: Iterations) -> None:
    """After eight iterations the same stream computes most."""
    some = " ".join([STYLE_0] * 8 + [f"k:2:1000 c:2 j:1:8 {JOIN}"] * 8)
    done = iterations(f"{some} begin", 0)
    assert raised(done) == "000" + "5" * 7 + raised(done)[10:]
    assert raised(done)[-5:] == "0" * 5


def test_nobody_waits_any_more(iterations: Iterations) -> None:
    done = iterations(" ".join([STYLE_0] * 6) + " begin k:2:8 k:2:8", 600)
    assert raised(done)[6] == "5"
    assert raised(done)[-100:] == "0" * 100


def test_what_the_program_reads_back(iterations: Iterations) -> None:
    iterations(f"{STYLE_0} P:1 P:2")


def test_copied_attributes(iterations: Iterations) -> None:
    """What is copied is what the program has set."""
    done = iterations(f"begin {STYLE_0} end t:3:2 P:3 k:3:8")
    assert raised(done)[-1] == "0"


def test_a_copy_between_two_streams_that_capture_is_not_shown(iterations: Iterations) -> None:
    """The priority cannot be taken back before the copy, and the program must not see it behind the copy."""
    done = iterations(f"begin {STYLE_0} end n:3 B:2 B:3 t:3:2 P:3")
    assert done.reasons["critical"]


@pytest.mark.parametrize("priority", [-2, -5])
@pytest.mark.parametrize("how", ["p:2:{}", "n:2 a:2:{}"])
def test_a_priority_of_the_programs_own(how: str, priority: int, iterations: Iterations) -> None:
    done = iterations(f"{how.format(priority)} begin {STYLE_0} P:2")
    assert set(raised(done)) == {str(-priority)}
    assert "critical" not in done.reasons


def test_the_program_sets_it_afterwards(iterations: Iterations) -> None:
    done = iterations(" ".join([STYLE_0] * 6) + f" a:2:-1 begin {STYLE_0} P:2")
    assert raised(done) == "000555" + "1" * 8


def test_events_that_nobody_needs(iterations: Iterations) -> None:
    """A program that marks each iteration with events of its own: they are kept only while something is counted."""
    faults = []
    for policy in (CRITICAL, CRITICAL.replace("auto", "off", 1)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        iterations("k:2:1 j:1:8 u:1 u:1 s:2", 1500, policy)
        faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
    assert faults[0] < faults[1] + 1000, faults


# Shapes nothing here, and needs to know of no event.
NO_MODEL = """communication: {priority: inherit}
when: always
compute: [{match: {kernel: "no*"}, shape: {blocks_per_sm: 1}}]"""


@pytest.mark.hazard("resources", "a page fault for each event that a program makes")
def test_new_events_lie_side_by_side(iterations: Iterations) -> None:
    """Each tells of communication that the host has not seen to be over, so all are kept."""
    faults = []
    for policy in (CRITICAL, NO_MODEL):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        iterations("c:2 u:2 u:2", 1500, policy)
        faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
    assert faults[0] < faults[1] + 1000, faults


def test_streams_that_went_with_their_context(iterations: Iterations) -> None:
    """Others get their addresses, and have the priority that the program gives them."""
    many = " ".join(f"p:{stream}:-2 P:{stream} k:{stream}:8" for stream in range(2, 10))
    done = iterations(f"z n:1 n:2 {' '.join([STYLE_0] * 6)} z {many} begin", 0)
    assert raised(done) == "000555" + "2" * 8


def test_many_streams_that_went_with_their_contexts(iterations: Iterations) -> None:
    """More than can be raised at a time, at addresses that nobody gets again."""
    words = (f"z n:1 {'n:3 ' * (20 - i)} n:2 {' '.join([STYLE_0] * 6)}" for i in range(20))
    done = iterations(f"{' '.join(words)} begin", 0)
    assert raised(done)[-3:] == "555"


def test_streams_that_are_made_anew(iterations: Iterations) -> None:
    """By the same code, which has made none of another kind."""
    done = iterations(f"p:1:0 begin n:2 {STYLE_0} P:2 s:1 d:2", 10)
    assert raised(done)[-5:] == "5" * 5
    assert raised(done, "j") == "0" * 10


CAPTURED = "B:1 r:5:1 w:2:5 k:2:8 c:2 j:1:1000 r:6:2 w:1:6 G"


def test_a_graph_that_is_captured_once_it_is_known(iterations: Iterations) -> None:
    done = iterations(" ".join([STYLE_0] * 6) + f" {CAPTURED} begin g:1", 6)
    assert raised(done) == "000555" + "5" * 7  # one of them is the capture itself
    assert {launch["priority"] for launch in done.in_graphs if launch["kernel"] == "j"} == {0}


def test_a_graph_that_is_captured_at_once(iterations: Iterations) -> None:
    """What communication waits for is in the graph itself."""
    done = iterations(f"{CAPTURED} begin g:1", 6)
    assert raised(done) == "0" + "5" * 6
    assert {launch["priority"] for launch in done.in_graphs if launch["kernel"] == "j"} == {0}
