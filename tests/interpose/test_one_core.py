"""Threads that share a core, where one that yields for another may never let it run: tests/programs/one_core.c."""

from __future__ import annotations

import pytest
from interposing import Done
from null_driver import ARMED, SETTINGS, Under, said

REFUSED = 77
CALLS = 400
# Nanoseconds of processor time of a call, in the mean; bare 500. 20,000 yields of the waiting thread take 4,000,000.
MOST = 100_000


def run(under: Under, setting: str, words: str, made: int) -> Done:
    done = under(setting, "one_core", words)
    if done.status == REFUSED:
        pytest.skip("needs leave to use SCHED_FIFO: run as root")
    assert (done.status, done.stdout) == (0, f"bad: 0\nmade: {made}\n"), done.stderr
    if setting in ARMED:
        assert done.totals["launches"] == said(done, "launches")
    return done


@pytest.mark.plain("a sanitizer makes every call slower", sanitized=True)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_real_time_thread_among_ordinary_ones(setting: str, under: Under) -> None:
    """It makes all of its calls, all of them are decided, and it does not spend its time on waiting."""
    done = run(under, setting, f"1 4 {CALLS}", CALLS)
    assert said(done, "mean") < MOST
    if setting in ARMED:
        assert "unknown_footprint" not in done.reasons


@pytest.mark.parametrize("setting", SETTINGS)
def test_eight_threads_that_create_load_launch_and_wait(setting: str, under: Under) -> None:
    run(under, setting, "0 8 100", 0)
