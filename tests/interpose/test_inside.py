"""What happens while a call of the driver is in progress: callbacks of a profiler, forks, captures of other threads."""

from __future__ import annotations

from typing import Any

import pytest
from interposing import Build, Runner, rule

WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")


@pytest.fixture
def inside(build: Build) -> dict[str, Any]:
    driver = build.library("inside/libcuda.so.1", "inside.c", "-DDRIVER", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("inside-program", "inside.c", link=[driver])
    return {"program": program, "env": {"LD_LIBRARY_PATH": str(driver.parent)}, "timeout": 120}


@pytest.mark.parametrize("policy", ["default", WINDOWS], ids=["default", "windows"])
@pytest.mark.parametrize("case", ["callbacks", "threads"])
def test_callbacks_that_make_all_calls(case: str, policy: str, inside: dict[str, Any], preloaded: Runner) -> None:
    """Afterwards the rule works as ever."""
    done = preloaded([case], policy, **inside)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == "raised to -5\nbad 0\n"


@pytest.mark.parametrize("case", ["recapture", "refused"])
def test_a_raised_stream_is_captured_into_a_graph_once_more(
    case: str, inside: dict[str, Any], preloaded: Runner
) -> None:
    """The driver compares each node with what it was (CUDA 13.3), so the stream has the program's priority again. Also
    after the driver has refused to destroy it."""
    done = preloaded([case], "default", **inside)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == "raised to -5\nbegins: 1 1 1, priority 0\nraised to -5\nbad 0\n"


def test_a_fork_while_streams_are_raised(inside: dict[str, Any], preloaded: Runner) -> None:
    done = preloaded(["fork"], "default", **inside)
    assert (done.status, done.stdout, done.stderr) == (0, "children that failed: 0\nraised to -5\nbad 0\n", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [("raising", "a capture begins at 0\nbad 0\n"), ("lowering", "raised to -5\na capture begins at 0\nbad 0\n")],
)
def test_a_capture_waits_for_a_change_of_another_thread(
    change: str, said: str, inside: dict[str, Any], preloaded: Runner
) -> None:
    """All streams have the program's priorities by the time that the driver is told to begin: those that the other
    thread is raising, and those that it gives back because its own capture begins. The driver takes 100 ms."""
    done = preloaded([change], "default", **inside)
    assert (done.status, done.stdout) == (0, said)
