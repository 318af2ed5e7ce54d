"""Overlap windows by themselves: locks that are held, numbers that wrap, threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., str]
SOURCES = (
    "windows_corners.c",
    "core/window.c",
    "core/sync_model.c",
    "core/event.c",
    "core/knowledge.c",
    "core/critical.c",
)


@pytest.fixture(scope="module")
def corners(compile_c: Any) -> Path:
    return compile_c(*SOURCES)


def test_who_waits_for_the_lock_gets_it(corners: Path, run_program: Run) -> None:
    """...although its holder sleeps for a while."""
    assert run_program(corners, "held") == "made 0 made\n"


def test_a_lock_that_nobody_gives_back_locks_nobody_up(corners: Path, run_program: Run) -> None:
    assert run_program(corners, "stuck") == "none 1 none\n"


def test_a_signal_handler_does_not_wait_for_what_it_interrupts(corners: Path, run_program: Run) -> None:
    assert run_program(corners, "inside") == "10nonemade\n"


def test_waiting_for_an_event_whose_record_was_refused_means_nothing(corners: Path, run_program: Run) -> None:
    """...although an event at that address was captured; one that was recorded is waited for."""
    assert run_program(corners, "refused") == "io\n"


def test_what_was_told_before_a_time_without_orders_nothing_after_it(corners: Path, run_program: Run) -> None:
    """Not while a stream captures, nor once one has waited for something unknown."""
    assert run_program(corners, "resumes") == "ic o o-c i oc 1010\n"


def test_numbers_wrap(corners: Path, run_program: Run) -> None:
    records, changes, launches, before = run_program(corners, "wraps").split()
    assert records == "io" * 6
    assert changes.count("o") >= 4 and changes[1::2] == "oooo", "what was waited for is over"
    assert launches == "oooooo"
    assert all(int(count) <= 512 for count in before.rstrip(",").split(","))


def test_nobody_gives_back_more_than_was_taken(corners: Path, run_program: Run) -> None:
    assert run_program(corners, "returns") == "i 512\n"


def test_a_wait_makes_stale_what_depends_on_its_stream(corners: Path, run_program: Run) -> None:
    """Answers of the waiting thread alone, where no other thread keeps one; else of all threads."""
    said = run_program(corners, "stale").removesuffix(" \n").split(" ")
    assert said == ["", "", "mine", "all", "all", "mine", "all", "all"]


@pytest.mark.parametrize("flags", [(), ("-fsanitize=thread", "-Wno-error")], ids=["plain", "tsan"])
def test_recorded_and_waited_for_at_the_same_time(flags: tuple[str, ...], compile_c: Any, run_program: Run) -> None:
    """Who waits knows at least what was recorded when the wait began."""
    program = compile_c(*SOURCES, flags=flags, name="windows_races-tsan" if flags else "windows_races")
    output = run_program(program, "races", TSAN_OPTIONS="halt_on_error=1 exitcode=66")
    assert output == "40000 0 0\n"
