"""Threads that share a core, where one that yields for another may never let it run: tests/programs/one_core.c."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from interposing import Build, Done, Runner

SETTINGS = ("bare", "off", "observe", "default", "h100-paper")
HANG = 60  # seconds; what is run here takes less than one
REFUSED = 77
CALLS = 400
# Nanoseconds of processor time of a call, in the mean; bare 500. 20,000 yields of the waiting thread take 4,000,000.
MOST = 100_000


@pytest.fixture
def one_core(build: Build, bare: Runner, preloaded: Runner) -> Any:
    """one_core(words, setting): the program under one of SETTINGS, and what it said."""
    stub = build.library("null/libcuda.so.1", "../../tools/bench/null_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("one_core", "one_core.c", link=[stub])

    def run(words: str, setting: str) -> tuple[Done, dict[str, int]]:
        env = {"LD_LIBRARY_PATH": str(stub.parent), **({"OVERLAP_RUN": "off"} if setting == "off" else {})}
        policy = "default" if setting == "off" else setting
        runner, more = (bare, {}) if setting == "bare" else (preloaded, {"policy": policy})
        done = runner(words, program=program, env=env, timeout=HANG, **more)
        if done.status == REFUSED:
            pytest.skip("needs leave to use SCHED_FIFO: run as root")
        said = {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", done.stderr, re.M)}
        if setting not in ("bare", "off"):
            assert done.totals["launches"] == said["launches"]
        return done, said

    return run


@pytest.mark.plain("a sanitizer makes every call slower", sanitized=True)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_real_time_thread_among_ordinary_ones(setting: str, one_core: Any) -> None:
    """It makes all of its calls, none of them as a launch that could not be decided, and does not spend its time on waiting."""
    done, said = one_core(f"1 4 {CALLS}", setting)
    assert (done.status, done.stdout) == (0, f"bad: 0\nmade: {CALLS}\n"), done.stderr
    assert said["mean"] < MOST
    if setting not in ("bare", "off"):
        assert "unknown_footprint" not in done.reasons


@pytest.mark.parametrize("setting", SETTINGS)
def test_eight_threads_that_create_load_launch_and_wait(setting: str, one_core: Any) -> None:
    done, _ = one_core("0 8 100", setting)
    assert (done.status, done.stdout) == (0, "bad: 0\nmade: 0\n"), done.stderr
