"""Children that do nothing but exit, whatever their parent was doing: they do not wait, and leave and say nothing."""

from __future__ import annotations

import pytest
from interposing import Build, Runner


@pytest.mark.parametrize("gpu", ["gpu", "nothing"])
@pytest.mark.parametrize("busy", ["loader", "opening"])
def test_a_child_does_not_wait_for_the_loader(
    busy: str, gpu: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    slow = build.library("libslow.so", "forker_slow.c")
    program = build("forker", "forker.c", "-rdynamic")
    arguments = [busy, gpu, str(slow)]
    without, done = bare(arguments, program=program), preloaded(arguments, program=program, env={"RANK": "0"})
    assert without.stdout.endswith("child: 7\n")
    assert (done.status, done.stdout) == (without.status, without.stdout)
    processes = done.report["processes"]
    assert [(process["forked"], process["ended"], process["launches"]) for process in processes] == (
        [(False, True, 1)] if gpu == "gpu" else []
    )
    assert done.stderr.count("\n") == len(processes), done.stderr


def test_a_child_by_a_raw_system_call_does_not_speak_for_its_parent(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    program = build("forker", "forker.c", "-rdynamic")
    arguments = ["raw", "gpu"]
    without, done = bare(arguments, program=program), preloaded(arguments, program=program, env={"RANK": "0"})
    assert without.stdout == "bad: 0\nchild: 7\n"
    assert (done.status, done.stdout) == (0, without.stdout)
    assert done.stderr == ""  # the parent ends by _exit, so nobody speaks
    assert [(process["forked"], process["ended"]) for process in done.report["processes"]] == [(False, False)]


def test_a_fork_costs_little_memory(build: Build, bare: Runner, preloaded: Runner) -> None:
    """KiB. What the parent has never written, 640 KB of counters, its child does not write either."""
    program = build("fork_cost", "fork_cost.c")
    without, done = bare([], program=program), preloaded([], program=program)
    assert int(without.stdout) > 0 and int(done.stdout) - int(without.stdout) < 500
