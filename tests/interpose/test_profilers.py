"""Signals of profilers, whose handlers walk the loaded objects, while the library works: tests/programs/interrupted.c.

A profiler's handler may come at any instruction of the program's thread, also while that takes a lock of the loader. It
then waits for itself, unless no call of ours takes one. A handler may use the driver, too.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interposing import Done
from null_driver import ARMED, SETTINGS, Under, said
from peers import third_party

SIGNALS = 1500
Interrupted = Callable[..., Done]

pytestmark = pytest.mark.plain("a sanitizer walks the loaded objects itself, also in handlers", sanitized=True)


@pytest.fixture
def interrupted(under: Under) -> Interrupted:
    """interrupted(words, setting): the program, which must end as it does bare."""

    def run(words: str, setting: str, **more: Any) -> Done:
        done = under(setting, "interrupted", words, **more)
        assert (done.status, done.stdout) == (0, "bad: 0\n"), done.stderr
        return done

    return run


def counted(done: Done, setting: str, in_handlers: int) -> None:
    """Every launch is counted, but for counts that were interrupted, and no handler has made the library blind."""
    if setting in ARMED:
        signals, launches = said(done, "signals"), said(done, "launches")
        assert launches - 2 * signals <= done.totals["launches"] <= launches
        assert done.reasons.get("unknown_footprint", 0) <= (in_handlers + 1) * signals


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("work", "handler", "launches"),
    [
        *((work, "walk", 0) for work in ("retain", "jit", "first", "stream")),
        *((work, "backtrace", 0) for work in ("retain", "jit", "walk")),
        *((work, "launch", 3) for work in ("retain", "jit", "stream", "walk")),
        *((work, "jit", 1) for work in ("retain", "jit", "first")),
    ],
)
def test_a_handler_comes_while_the_library_works(
    work: str, handler: str, launches: int, setting: str, interrupted: Interrupted
) -> None:
    counted(interrupted(f"{work} {handler} own timer {SIGNALS}", setting), setting, launches)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("stack", ["on", "below", "above"])
@pytest.mark.parametrize(
    ("work", "handler", "launches"),
    [("retain", "launch", 3), ("jit", "jit", 1), ("first", "jit", 1), ("stream", "launch", 3)],
)
def test_a_handler_on_a_stack_of_its_own(
    work: str, handler: str, launches: int, stack: str, setting: str, interrupted: Interrupted
) -> None:
    """Neither the address of its frame nor what the system says of its stack tells that it is a handler."""
    counted(interrupted(f"{work} {handler} {stack} timer {SIGNALS}", setting), setting, launches)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("work", ["retain", "jit", "first", "stream"])
def test_another_thread_is_walking_all_the_time(work: str, setting: str, interrupted: Interrupted) -> None:
    """So whatever takes that lock of the loader would never end. What calls us was loaded with the program."""
    counted(interrupted(f"{work} launch own locked 300", setting), setting, 3)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the trap flag is that of x86-64")
@pytest.mark.plain("what coverage does at every instruction is stepped through, too", sanitized=True, coverage=True)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("work", "handler"), [("retain", "walk"), ("first", "walk"), ("walk", "launch")])
def test_a_handler_comes_at_every_instruction(work: str, handler: str, setting: str, interrupted: Interrupted) -> None:
    done = interrupted(f"{work} {handler} own step 5", setting)
    assert said(done, "signals") > 100, "hardly anything was tested"


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("work", "handler", "stack"),
    [
        ("retain", "walk", "own"),
        ("jit", "walk", "own"),
        ("walk", "launch", "own"),
        ("jit", "jit", "above"),
        ("stream", "launch", "below"),
    ],
)
def test_fifty_runs(work: str, handler: str, stack: str, setting: str, interrupted: Interrupted) -> None:
    for _ in range(50):
        interrupted(f"{work} {handler} {stack} timer 1000", setting)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("work", ["retain", "jit", "walk"])
def test_under_gperftools(work: str, setting: str, interrupted: Interrupted, tmp_path: Path) -> None:
    """Its CPU profiler unwinds in a handler, 4,000 times a second here."""
    third_party("libunwind8", "libunwind.so.8")
    profiler, profile = third_party("libgoogle-perftools4", "libprofiler.so.0"), tmp_path / "profile"
    env = {"CPUPROFILE": str(profile), "CPUPROFILE_FREQUENCY": "4000", "CPUPROFILE_REALTIME": "1"}
    done = interrupted(f"{work} launch own others 1500", setting, preload=profiler, env=env)
    assert "PROFILE: interrupts" in done.stderr and profile.stat().st_size > 1000, "nothing was profiled"


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_under_perf(setting: str, interrupted: Interrupted, tmp_path: Path) -> None:
    """The kernel unwinds, so no handler runs; perf is the parent."""
    perf, data = shutil.which("perf"), tmp_path / "perf.data"
    record = [perf or "perf", "record", "-q", "-g", "-F", "4000", "-o", str(data), "--"]
    if not perf or subprocess.run([*record, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs perf, which may record: apt-get install linux-perf, and as root")
    interrupted("jit launch own others 1000", setting, command=record)
    assert data.stat().st_size > 10_000, "nothing was recorded"
