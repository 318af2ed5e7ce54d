"""What orders what is followed only while something can follow from it (shim/vendor/common/sleep.c): what begins late
is learnt all the same, and what was not followed is never taken for known."""

from __future__ import annotations

import pytest
from interposing import Build, Runner
from iterating import CRITICAL, HOST, JOIN, STYLE_0, Iterations, raised

from pyshim.launch import plan

QUICK = HOST.replace("8", "1").replace("1000", "16")  # to simulate
CAPTURED = "B:1 r:5:1 w:2:5 k:2:8 c:2 j:1:1000 r:6:2 w:1:6 G"
# 10,000 calls without communication, in which the host waits for the stream that computes.
LONG = " ".join(["k:1:1 r:1:1 w:2:1 s:1"] * 2500)


@pytest.mark.hazard("resources", "a program that communicates late would get nothing: nobody looks at it any more")
def test_communication_that_begins_late(iterations: Iterations) -> None:
    done = iterations(f"{LONG} begin {STYLE_0}")
    assert raised(done)[2500:] == "000" + "5" * 5
    assert raised(done)[:2500] == "0" * 2500 and raised(done, "j") == "0" * 8


@pytest.mark.parametrize("wait", ["s:2", "q:2", "r:3:2 e:3", "r:3:2 Q:3"])
def test_the_host_waits_late(wait: str, iterations: Iterations) -> None:
    """Of an event that was recorded while nothing was followed the stream is known from the next iteration on."""
    learnt = 4 if "3" in wait else 3
    done = iterations(f"{LONG} begin {HOST.format(wait=wait)}")
    assert raised(done)[2500:] == "0" * learnt + "4" * (8 - learnt)
    assert raised(done, "j") == "0" * 8


@pytest.mark.parametrize("wait", ["s:2", "q:2", "r:3:2 e:3", "r:3:2 Q:3"])
def test_what_is_learnt_stays(wait: str, iterations: Iterations) -> None:
    """Also where most waits go unseen for a long time."""
    done = iterations(QUICK.format(wait=wait), 3000)
    assert raised(done) == "000" + "4" * 2997


def test_a_blocking_copy_that_is_waited_for_late(iterations: Iterations) -> None:
    done = iterations(f"b:2 {LONG} begin k:2:8 j:1:1000 m r:1:1 w:2:1", 10)
    assert raised(done)[-5:] == "4" * 5
    assert raised(done, "j") == "0" * 10


def test_nobody_waits_any_more(iterations: Iterations) -> None:
    """The host waits for nothing at all."""
    loop = " ".join([QUICK.format(wait="s:2")] * 400)
    done = iterations(f"{loop} begin k:2:1 k:2:1", 900)
    assert raised(done)[300] == "4"
    assert raised(done)[-100:] == "0" * 100


def test_the_host_waits_for_another_stream(iterations: Iterations) -> None:
    loop = " ".join([QUICK.format(wait="s:2")] * 400)
    done = iterations(f"{loop} begin k:2:1 j:1:16 s:1", 3000)
    assert raised(done)[300] == "4"
    assert raised(done)[-100:] == "0" * 100


def test_what_a_stream_computes_grows(iterations: Iterations) -> None:
    loop = " ".join([QUICK.format(wait="s:2")] * 400)
    done = iterations(f"{loop} begin {QUICK.format(wait='s:2').replace('k:2:1', 'k:2:64')}", 1500)
    assert raised(done)[300] == "4"
    assert raised(done)[-100:] == "0" * 100


@pytest.mark.hazard("peers", "an event that was recorded anew would stand for the stream of its older record")
def test_an_event_that_was_recorded_anew_meanwhile(iterations: Iterations) -> None:
    """While nothing is followed: it does not say any more that stream 3 feeds communication."""
    known = " ".join(["k:3:8 r:5:3 j:1:1000 w:2:5 s:2"] * 3)
    done = iterations(f"{known} {LONG} r:5:1 begin k:3:8 w:2:5 k:2:8 c:2 j:1:1000 {JOIN}", 10)
    at = {launch["stream"] for launch in done.launches if launch["kernel"] == "k" and launch["priority"]}
    assert len(at) == 1, "the one that communicates"
    assert raised(done)[-6:] == "05" * 3


def test_a_capture_that_begins_late(iterations: Iterations) -> None:
    """What communication waits for is in the graph itself."""
    done = iterations(f"{LONG} {CAPTURED} begin g:1", 6)
    assert raised(done)[2500:] == "0" + "5" * 6
    assert {launch["priority"] for launch in done.in_graphs if launch["kernel"] == "j"} == {0}


@pytest.mark.hazard("peers", "kernels would be shaped long after the communication is over")
def test_a_window_that_is_open_when_nothing_is_followed_any_more(build: Build, preloaded: Runner) -> None:
    """What orders behind that communication is not seen."""
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
    policy = """critical: off
communication: {priority: inherit}
compute: [{match: {kernel: "j"}, shape: {blocks_per_sm: 1}}]"""
    waits = " ".join(["s:1"] * 4200)
    shaped = [
        preloaded(f"4 c:2 {words} begin j:1:4000", policy, program=program).totals["shaped"]
        for words in ("k:1:1", f"{waits} r:2:2 w:1:2")
    ]
    assert shaped == [4, 0]


@pytest.mark.parametrize("wait", ["s:1", "r:9:1 e:9", "x", "m"])
def test_communication_of_which_only_windows_are_known(wait: str, iterations: Iterations) -> None:
    """Nothing is followed until it comes: what overlaps nothing is still said, and what overlaps something is not."""
    policy = "critical: off\ncommunication: {priority: inherit}"
    alone = f"{LONG} begin c:2 r:2:2 w:1:2 {'j:1:8 ' * 16} {wait}"
    beside = f"{LONG} begin c:2 {'j:1:8 ' * 16} r:2:2 w:1:2 {wait}"
    waited = [iterations(words, 8, policy).totals["communication_waited_for"] for words in (alone, beside)]
    assert waited == [8, 0]


@pytest.mark.parametrize("policy", [CRITICAL, "critical: off\ncommunication: {priority: inherit}"])
def test_threads_and_a_child(policy: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """The model wakes and sleeps beside calls of other threads."""
    program = build("sleeping", "sleeping.c", "-pthread", link=[plan.SIMULATED_DRIVER])
    words = ["4", "300"]
    done, without = preloaded(words, policy, program=program), bare(words, program=program)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.status == 0
    assert done.totals["communication"] == 3
    assert sum(done.reasons.values()) == done.totals["launches"]
