"""Overlap windows: communication is open from its launch until the first wait for it, and computation on another
stream of the device is shaped meanwhile, where the rule says `when: overlapping`. It errs towards outside."""

from __future__ import annotations

import pytest
from interposing import rule
from iterating import Iterations

K = 'kernel: "k"'
POLICY, ALWAYS = rule("{blocks_per_sm: 1}", "overlapping", K), rule("{blocks_per_sm: 1}", "always", K)
INSIDE = "k:2:4000"


def insides(iterations: Iterations, words: str, count: int = 1, policy: str = POLICY, **more: object) -> str:
    """Of the launches of k: i inside, o outside."""
    done = iterations(words, count, policy, **more)
    assert set(done.reasons) <= {"shaped", "not_overlapping", "communication", "captured", "no_rule"}, done.reasons
    found = "".join("io"[not launch["dynamic_shared"]] for launch in done.launches if launch["kernel"] == "k")
    assert done.totals["shaped"] == found.count("i")
    return found


# Stream 1 communicates.
PROGRAMS = {
    "nothing communicates": ("k k", "oo"),
    "until the host waits for its stream": ("k c:1 k k s:1 k", "oiio"),
    "until a query succeeds": ("c:1 k q:1 k", "io"),
    "until a stream waits for an event behind it": ("c:1 r:1:1 k w:2:1 k", "io"),
    "until the host waits for one": ("c:1 r:1:1 k e:1 k", "io"),
    "until a query of one succeeds": ("c:1 r:1:1 k Q:1 k", "io"),
    "until the host waits for the context": ("c:1 k x k", "io"),
    "until a blocking copy waits for its stream": ("b:1 c:1 k m k", "io"),
    "a blocking copy does not wait for it": ("n:1 c:1 m k", "i"),
    "until its stream ends": ("c:1 k d:1 k", "io"),
    "an event in front of it": ("r:1:1 c:1 w:2:1 k", "i"),
    "an event of its stream in an earlier life": ("n:1 r:1:1 d:1 n:1 c:1 e:1 k", "i"),
    "an event recorded again": ("r:1:1 c:1 r:1:1 w:2:1 k", "o"),
    "an event between two": ("c:1 r:1:1 c:1 w:2:1 k", "i"),
    "its own stream waits": ("c:1 r:1:1 w:1:1 k", "i"),
    "on its own stream": ("c:1 k:1:4000 k", "oi"),
    "two streams that communicate": ("c:1 c:3 k s:1 k k:3:4000 s:3 k", "iioo"),
    "each beside the other": ("c:1 c:3 k:1:4000 k:3:4000", "ii"),
    "until a wait beside a capture": ("c:1 B:3 s:1 G k", "o"),
    "opened again": ("c:1 k s:1 k c:1 k", "ioi"),
    "by another thread": ("T:1:1 k:1:4000", "i"),
    "in a graph": ("B:1 c:1 G g:1 k", "o"),
    "captured": ("c:1 B:3 k:3:4000 k G k", "ooi"),
    "begun in a capture of another stream": ("B:3 c:1 k:3:4000 G k", "oo"),
    "of a context that ended": ("z c:1 z k", "o"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_inside(name: str, iterations: Iterations) -> None:
    words, expected = PROGRAMS[name]
    words = " ".join(INSIDE if word == "k" else word for word in words.split())
    assert insides(iterations, f"{words} begin", 0) == expected


def test_it_stays_open(iterations: Iterations) -> None:
    assert insides(iterations, f"c:1 begin {INSIDE}", 700) == "i" * 700


def test_again_and_again(iterations: Iterations) -> None:
    """Answers that threads keep are dropped whenever a window opens or closes."""
    assert insides(iterations, f"c:1 {INSIDE} {INSIDE} s:1 {INSIDE}", 50) == "iio" * 50


def test_devices(iterations: Iterations) -> None:
    words = f"c:1 v:1 {INSIDE} c:1 v:0 {INSIDE} s:1 {INSIDE} v:1 {INSIDE} begin"
    assert insides(iterations, words, 0, env={"SIMGPU": "h100,2"}) == "oioi"


def test_contexts_of_one_device(iterations: Iterations) -> None:
    """A device is one; waiting for one context does not close the window of another."""
    assert insides(iterations, f"c:1 v:2 {INSIDE} x {INSIDE} v:0 x v:2 {INSIDE} begin", 0) == "iio"


def test_always_asks_for_no_window(iterations: Iterations) -> None:
    assert insides(iterations, f"{INSIDE} c:1 {INSIDE} s:1 {INSIDE}", 4, ALWAYS) == "iii" * 4


def test_beside_streams_that_are_raised(iterations: Iterations) -> None:
    """Communication on a raised stream opens windows; a raised stream's own computation is never shaped."""
    done = iterations(f"k:2:4000 c:2 j:1:9000 s:2 {INSIDE}", 6, rule("{blocks_per_sm: 1}", "overlapping", more=""))
    sizes = [(launch["kernel"], launch["dynamic_shared"] > 0) for launch in done.launches if launch["kernel"] in "jk"]
    assert sizes == [("k", False), ("j", True), ("k", False)] * 6
    assert done.reasons["raised"] > 8
