"""Programs that do the same again and again (waiting.c), and which of their launches were raised."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from interposing import Build, Done, Runner, same

from pyshim.start import plan

AUTO = """streams: {raise: auto}
compute: [{match: {kernel: "*"}, shape: leave}]"""
Iterations = Callable[..., Done]

# Stream 1 computes, stream 2 has the boundary; both wait for each other at the end of an iteration.
JOIN = "r:1:1 w:2:1 r:2:2 w:1:2"
STYLE_0 = f"k:2:8 c:2 j:1:1000 {JOIN}"
HOST = "k:2:8 j:1:1000 {wait} r:1:1 w:2:1"


@pytest.fixture
def iterations(build: Build, preloaded: Runner, bare: Runner) -> Iterations:
    """iterations(words, count, policy): the process, which must see what it sees without us."""
    program = build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])

    def run(words: str, count: int = 8, policy: str = AUTO, **more: Any) -> Done:
        line = f"{count} {words}"
        env = {"SIMGPU_INVALID": "crashes", **(more.pop("env", {}))}  # a handle that is gone ends the process
        done = preloaded(line, policy, program=program, env=env, **more)
        same(done, bare(line, program=program, env=env), ("priority", "dynamic_shared"))
        assert sum(done.reasons.values()) == done.totals["launches"]
        return done

    return run


def raised(done: Done, kernel: str = "k") -> str:
    """Of the launches of a kernel in the driver's log: a digit for each, how far it was raised."""
    return "".join(str(-launch["priority"]) for launch in done.launches if launch["kernel"] == kernel)
