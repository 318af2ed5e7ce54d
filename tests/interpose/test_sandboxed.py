"""Programs that enter a sandbox before they launch, in which system calls end them: tests/programs/sandboxed.c."""

from __future__ import annotations

import itertools

import pytest
from interposing import NCCL, ONE, Build, Runner, rule

WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")
CASES = [
    (mode, kernel, before, thread, report)
    for mode, kernel, before, thread, report in itertools.product(
        ("none", "strict", "kill"), ("k", NCCL), (0, 1), (False, True), (False, True)
    )
    # A first launch takes memory and makes system calls of its own: where they kill, it has to come before.
    if not (mode == "strict" and not before) and not (mode == "kill" and thread and not before)
]


@pytest.mark.parametrize(("mode", "kernel", "before", "thread", "report"), CASES)
@pytest.mark.parametrize("policy", [ONE, WINDOWS], ids=["always", "windows"])
def test_launches_inside(
    mode: str,
    kernel: str,
    before: int,
    thread: bool,
    report: bool,
    policy: str,
    build: Build,
    bare: Runner,
    preloaded: Runner,
) -> None:
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")  # the simulated driver makes system calls itself
    program = build("sandboxed", "sandboxed.c", "-DWAY_DLSYM", "-pthread")
    words = [mode, kernel, str(before), *["thread"] * thread]
    env = {"LD_LIBRARY_PATH": str(stub.parent), **({} if report else {"OVERLAP_REPORT": ""})}
    without, done = bare(words, program=program, env=env), preloaded(words, policy, program=program, env=env)
    assert (without.status, without.stdout) == (0, "bad: 0\n"), without.stdout + without.stderr
    assert (done.status, done.stdout) == (0, "bad: 0\n"), done.stdout + done.stderr
    if report:
        assert done.totals["launches"] == 2 * (600 + before)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("thread", [False, True], ids=["main thread", "another thread"])
@pytest.mark.parametrize("policy", [ONE, WINDOWS], ids=["always", "windows"])
def test_memory_is_refused(
    policy: str, thread: bool, before: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """As if there were no library, and one line says so; what was there before still acts."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("sandboxed", "sandboxed.c", "-DWAY_DLSYM", "-pthread")
    words = ["refuse", "k", str(before), *["thread"] * thread]
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without, done = bare(words, program=program, env=env), preloaded(words, policy, program=program, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout) == (0, "bad: 0\n"), done.stderr
    refused = "overlap: the system refuses memory"
    assert [line for line in done.stderr.splitlines() if not line.startswith(refused)] == []
    assert len(done.stderr.splitlines()) == (0 if before else 1), done.stderr
