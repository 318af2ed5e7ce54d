"""Signals that come while the library is at work: tests/programs/signals.c.

No program should launch kernels in a handler; one that does must not hang because of us. At most, launches are left.
"""

from __future__ import annotations

import itertools
import platform
import re
from pathlib import Path
from typing import Any

import pytest
from interposing import ONE, Build, Runner, rule

KERNELS = 3000
WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")


@pytest.fixture
def signals(build: Build) -> dict[str, Any]:
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    return {"program": build("signals", "signals.c", link=[stub]), "env": {"LD_LIBRARY_PATH": str(stub.parent)}}


def came(stderr: str) -> int:
    found = re.search(r"signals: (\d+)", stderr)
    assert found, stderr
    return int(found[1])


@pytest.mark.parametrize("policy", [ONE, WINDOWS], ids=["always", "windows"])
@pytest.mark.parametrize("source", ["timers", "thread", "altstack"])
def test_a_handler_that_launches_while_decisions_are_made(
    source: str, policy: str, signals: dict[str, Any], bare: Runner, preloaded: Runner
) -> None:
    words = ["launch", source, str(KERNELS)]
    without, done = bare(words, **signals), preloaded(words, policy, **signals)
    assert (done.status, done.stdout) == (without.status, without.stdout) == (0, "bad: 0\n")
    handled = came(done.stderr)
    assert handled > 4, "hardly anything was tested"  # a busy machine gives the thread that sends little time
    assert 2 * KERNELS < done.totals["launches"] <= 2 * KERNELS + handled + 3  # a count that is interrupted may be lost
    assert done.reasons.get("unknown_footprint", 0) <= handled
    if policy == ONE:
        assert done.totals["shaped"] >= KERNELS


def test_a_handler_that_forks_and_execs(signals: dict[str, Any], preloaded: Runner) -> None:
    done = preloaded(["exec", "timers", "2000"], ONE, **signals)
    assert (done.status, done.stdout) == (0, "bad: 0\n")
    children = [process for process in done.report["processes"] if process["forked"]]
    assert len(children) >= 3, "hardly anything was tested"
    assert {process["launches"] for process in children} == {1}
    (parent,) = [process for process in done.report["processes"] if not process["forked"]]
    assert parent["launches"] == 2 * 2000 + 3


def test_a_line_is_said_without_a_trace_in_signal_masks(
    signals: dict[str, Any], bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """SIGPIPE is blocked while a line is written: before and after, the mask and what is pending are the program's."""
    words, env = ["mask", "none", "1"], {**signals["env"], "RANK": "0", "OVERLAP_REPORT": str(tmp_path / "missing")}
    without = bare(words, program=signals["program"], env=env)
    done = preloaded(words, program=signals["program"], env=env)
    assert "no statistics in" in done.stderr
    assert (done.status, done.stdout) == (without.status, without.stdout)


@pytest.fixture
def steps(build: Build, vendor: str) -> dict[str, Any]:
    if platform.machine() != "x86_64":
        pytest.skip("the trap flag is that of x86-64")
    driver, source = {
        "cuda": ("steps/libcuda.so.1", "../../tools/bench/null_driver.c"),
        "hip": ("steps/libamdhip64.so.6", "../../tools/bench/null_hip.c"),
    }[vendor]
    stub = build.library(driver, source, "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build(f"steps_{vendor}", "steps.c", *(["-DHIP"] if vendor == "hip" else []), link=[stub])
    return {"program": program, "env": {"LD_LIBRARY_PATH": str(stub.parent)}}


@pytest.mark.slow
@pytest.mark.plain("what a sanitizer does at every instruction is stepped through, too", sanitized=True, coverage=True)
@pytest.mark.parametrize("policy", [ONE, WINDOWS], ids=["always", "windows"])
@pytest.mark.parametrize(
    ("vendor", "case"),
    [*itertools.product(["cuda", "hip"], ["hit", "ex", "communication", "first", "windows"]), ("cuda", "streams")],
)
def test_a_handler_that_launches_at_every_instruction(
    case: str, policy: str, steps: dict[str, Any], preloaded: Runner
) -> None:
    done = preloaded([case, {"first": "14", "streams": "110"}.get(case, "60")], policy, **steps)
    assert done.status == 0, done.stderr
    made = dict(re.findall(r"(\w+): (\d+)", done.stdout))
    assert int(made["launches"]) > (200 if case == "streams" else 500), "hardly anything was tested"
    for name in ("launches", "communication"):  # counts that are interrupted may be lost
        assert int(made[name]) // 2 <= done.totals[name] <= int(made[name])


@pytest.mark.parametrize("call", ["launch", "attribute", "wait"])
def test_a_handler_that_jumps_out_of_a_call(call: str, build: Build, preloaded: Runner) -> None:
    """Afterwards the stream is raised as ever, shows the program's own priority, and is destroyed."""
    driver = build.library("jumps/libcuda.so.1", "jumps.c", "-DDRIVER", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("jumps-program", "jumps.c", link=[driver])
    done = preloaded([call], "default", program=program, env={"LD_LIBRARY_PATH": str(driver.parent)}, timeout=60)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == "bad 0, left 1, priority 0, launched at -5\nbad 0\n"
