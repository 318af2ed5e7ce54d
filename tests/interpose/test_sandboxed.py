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
    # Known limits (shim/README.md): a thread's first launch of all, and times of communication for a report.
    if not (thread and not before and mode != "none") and not (mode == "strict" and kernel == NCCL and report)
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
