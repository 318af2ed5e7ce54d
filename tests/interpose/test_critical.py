"""Streams that somebody waits for: those that are a minor part of the computation are raised, all others stay."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from interposing import Build, Done, Runner, same

from pyshim.launch import plan

CRITICAL = """communication: {priority: inherit, streams: {carrying_communication: true, priority: highest}}
compute: [{match: {kernel: "*"}, shape: leave}]"""
LEVELS = (-5, -4)
Iterations = Callable[..., Done]

# Stream 1 computes, stream 2 has the boundary; both wait for each other at the end of an iteration.
JOIN = "r:1:1 w:2:1 r:2:2 w:1:2"
STYLE_0 = f"k:2:8 c:2 j:1:1000 {JOIN}"
HOST = "k:2:8 j:1:1000 {wait} r:1:1 w:2:1"


@pytest.fixture
def iterations(build: Build, preloaded: Runner, bare: Runner) -> Iterations:
    """iterations(words, count, policy): the process, which must see what it sees without us."""
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])

    def run(words: str, count: int = 8, policy: str = CRITICAL, **more: Any) -> Done:
        line = f"{count} {words}"
        done, without = preloaded(line, policy, program=program, **more), bare(line, program=program)
        same(done, without, ("priority",))
        assert sum(done.reasons.values()) == done.totals["launches"]
        return done

    return run


def raised(done: Done, kernel: str = "k") -> str:
    """Of the launches of a kernel in the driver's log: a digit for each, how far it was raised."""
    return "".join(str(-launch["priority"]) for launch in done.launches if launch["kernel"] == kernel)


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
