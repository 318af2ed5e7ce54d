"""Children of a process whose threads are inside first decisions all the while: tests/programs/forks.c."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner

THREADS = "3"
# How a child is made, and how often; whether it is one that has not exec'ed, and whether it has a page.
WAYS = {
    "fork": (100, True, True),
    "daemon": (50, True, True),
    "clone": (100, True, False),
    "clone_exec": (50, False, True),
    "fork_exec": (50, False, True),
    "vfork": (50, False, True),
    "spawn": (50, False, True),
    "system": (25, False, True),
    "popen": (25, False, True),
}


@pytest.mark.parametrize("way", WAYS)
def test_children_while_other_threads_launch(way: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    count, forked, has_page = WAYS[way]
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program, env = build("forks", "forks.c", link=[stub]), {"LD_LIBRARY_PATH": str(stub.parent)}
    words = [way, str(count), THREADS]
    done = preloaded(words, ONE, program=program, env={**env, "RANK": "0", "OVERLAP_QUIET": "1"})
    without = bare([way, "2", THREADS], program=program, env=env)
    assert without.stdout == "bad: 0, failed: 0\n"
    assert (done.status, done.stdout, done.stderr) == (0, without.stdout, "")
    of_children = [
        process for process in done.report["processes"] if process["forked"] == forked and process["launches"] == 1
    ]
    assert len(of_children) == (count if has_page else 0)
    rest = [process for process in done.report["processes"] if process not in of_children]
    (parent,) = rest
    if way == "fork":
        assert {process["parent"] for process in of_children} == {parent["pid"]}
    # No driver works in a child of a process that has used it, so nothing is decided there.
    assert {process["shaped"] for process in of_children} <= {0 if forked else 1}


@pytest.mark.parametrize("words", ["", "look"])
def test_a_child_of_a_parent_that_has_only_looked_at_the_driver_is_like_any(
    words: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Its parent has not initialised it, so the driver works in the child."""
    program = build("fork-after-look", "fork_after_look.c", "-Wno-strict-prototypes")
    without, done = bare(words, program=program), preloaded(words, ONE, program=program)
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, "") == (0, "failed: 0\n", "")
    assert [process["shaped"] for process in done.report["processes"]] == [3]


def test_a_child_whose_threads_search_and_close_libraries(build: Build, preloaded: Runner) -> None:
    assert preloaded(program=build("fork_closes", "fork_closes.c")).status == 0
