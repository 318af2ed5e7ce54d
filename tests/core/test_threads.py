"""The lock-free parts under threads, plainly and under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., str]
TSAN = ("-fsanitize=thread",)
NO_REPORT = {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}


@pytest.fixture(scope="module", params=["plain", "tsan"])
def build(request: pytest.FixtureRequest, compile_c: Any) -> Callable[..., Path]:
    def make(source: str, *more: str) -> Path:
        name = f"{source}-{request.param}"
        return compile_c(f"{source}.c", *more, flags=TSAN if request.param == "tsan" else (), name=name)

    return make


def test_a_key_has_what_was_put_for_it_last(build: Callable[..., Path], run_program: Run) -> None:
    """Readers without the lock, while keys come and go, entries are used again, and the table grows."""
    output = run_program(build("table_stress"), 3, 8, **NO_REPORT)
    finds, hits, wrong, entries, differences, used = map(int, output.split())
    assert (wrong, differences, used) == (0, 0, 0)
    assert finds > 10_000 and hits > finds // 50, "it was busy, and it did answer"
    assert entries <= 1 << 14, "entries that were removed are used again"


def test_no_count_is_lost(build: Callable[..., Path], run_program: Run) -> None:
    output = run_program(build("shard_stress", "core/stats.c", "core/rows.c", "core/match.c"), 2000, 1000, **NO_REPORT)
    added, launches, counters, shared = map(int, output.split())
    assert launches == counters == added
    assert shared > 0, "some threads found no shard of their own"


@pytest.fixture(scope="module")
def corners(compile_c: Any, run_program: Run) -> dict[str, list[int]]:
    """By name of the case in lock_corners.c, what lock_take() answered."""
    lines = (
        line.split() for line in run_program(compile_c("lock_corners.c", "gpu/lock.c", "sys/process.c")).splitlines()
    )
    return {name: list(map(int, answers)) for name, *answers in lines}


@pytest.mark.parametrize("stack", ["handler", "on", "below", "above"])
def test_a_signal_handler_does_not_take_the_lock_of_its_thread(stack: str, corners: dict[str, list[int]]) -> None:
    """On whatever stack it runs; and its attempts do not keep the thread from taking it again."""
    assert corners[stack] == [1, 0, 1]


def test_a_thread_that_has_jumped_out_takes_the_lock_over(corners: dict[str, list[int]]) -> None:
    """Not before it has tried a thousand times: until then it may be a handler."""
    attempts, again = corners["jumped"]
    assert 999 <= attempts < 200_000_000
    assert again == 1


def test_the_lock_of_a_thread_that_has_ended_is_taken_over(corners: dict[str, list[int]]) -> None:
    assert corners["ended"] == [1, 1]


def test_a_child_takes_the_lock_that_its_parent_held(corners: dict[str, list[int]]) -> None:
    assert corners["forked"] == [1, 1]


def test_a_wait_for_a_holder_that_does_not_run_ends_and_is_not_repeated(corners: dict[str, list[int]]) -> None:
    """200 more attempts fail at once; once the lock was left, all succeed."""
    first, more, soon, afterwards = corners["stopped"]
    assert (first, more, soon, afterwards) == (0, 0, 1, 200)


def test_a_wait_for_a_holder_that_runs_ends_with_the_lock(corners: dict[str, list[int]]) -> None:
    assert corners["waited"] == [1]


def test_a_thread_with_real_time_priority_waits_for_an_ordinary_one(corners: dict[str, list[int]]) -> None:
    """On the core that both share: the holder gets the waiter's priority, or the waiter sleeps."""
    if corners["realtime"] == [77]:
        pytest.skip("needs leave to use SCHED_FIFO: run as root")
    assert corners["realtime"] == [1]


def test_threads_in_turn(corners: dict[str, list[int]]) -> None:
    assert corners["contended"] == [1, 1]
