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


def test_a_signal_handler_does_not_take_the_lock_of_its_thread(compile_c: Any, run_program: Run) -> None:
    """But a thread that has jumped out of a handler that held it does; and after a time-out others wait again."""
    taken, in_handler, again, behind_a_jump, other, late, soon = run_program(compile_c("lock_corners.c")).split()
    assert (taken, again, behind_a_jump, late, soon) == ("1", "1", "1", "1", "1")
    assert (in_handler, other) == ("0", "0")
