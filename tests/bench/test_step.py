"""What repeated calls cost, in instructions: no times, which are noisy. Their budgets in nanoseconds: `make bench`."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# Of one call, over the driver that does nothing, with gcc 12; about 15 to the nanosecond.
BOUNDS = {
    "launch, one kernel": 170,
    "launch, by cuGetProcAddress": 170,
    "launch, one kernel of 8,000 sizes": 1500,
    "launch on a raised stream": 195,
    "event record, 100 streams": 300,
    "stream waits for an event, 100 streams": 340,
    "the host waits for a stream, 100 streams": 210,
    "event query, 100 streams": 215,
    "event query, not ready": 30,
    "stream query, 100 streams": 210,
    "stream query, not ready": 30,
    "blocking copy, 100 streams": 220,
    "allocation and release, 100 streams": 5,
    "question of occupancy, 100 streams": 80,
    "cuCtxSetCacheConfig, the same value": 150,
    "cuStreamGetPriority": 165,
    "the primary context is retained and released": 400,
    "a context is pushed and popped": 100,
    "launch, from 8 libraries in turn by the shared CUDA runtime": 350,
    "a module is loaded, launched once, unloaded, a name of 20": 30_000,
    "a module is loaded, launched once, unloaded, a name of 300": 30_000,
    "a stream is created, used, destroyed, 100 streams": 3700,
    "a window, and a wait for the context, 100 streams": 1520,
    "CoMD's step, of each of 15 launches": 260,
    "the same, and its questions of occupancy": 335,
    "HIP: launch, by symbol": 165,
    "HIP: event record": 450,
    "HIP: stream waits for an event": 450,
}
THREADS = 16

pytestmark = [
    pytest.mark.plain("a sanitizer costs more than the library", sanitized=True, coverage=True),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt-get install valgrind"),
]


def added(run: ModuleType, folder: Path, name: str, threads: int = 1) -> float:
    """Return the instructions that the library adds to a call of this row of `make bench`."""
    (case,) = (one for one in run.CASES if one.name == name)
    case = dataclasses.replace(case, threads=threads)
    driver = dict(case.driver)
    shim = {**driver, **run.armed(folder, case.policy), "LD_PRELOAD": str(run._native.SHIM)}
    return float(run.instructions(folder, case, shim) - run.instructions(folder, case, driver))


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_repeated_call_executes_few_instructions(name: str, run: ModuleType, folder: Path) -> None:
    assert -1 < added(run, folder, name) <= BOUNDS[name]


def test_other_threads_cost_nothing(run: ModuleType, folder: Path) -> None:
    one, many = (added(run, folder, "launch, one kernel", threads) for threads in (1, THREADS))
    assert many <= 1.05 * one + 5


@pytest.mark.parametrize("way", ["by symbol", "by cuGetProcAddress", "by the shared CUDA runtime"])
def test_a_library_that_is_off_costs_no_more_than_one_that_is_on(way: str, run: ModuleType, folder: Path) -> None:
    assert added(run, folder, f"launch, OVERLAP_RUN=off, {way}") <= added(run, folder, f"launch, {way}") + 5


def test_what_is_measured_is_raised(run: ModuleType, folder: Path, tmp_path: Path) -> None:
    (case,) = (one for one in run.CASES if one.name == "launch on a raised stream")
    shim = {**run.armed(folder, case.policy), "LD_PRELOAD": str(run._native.SHIM), "OVERLAP_REPORT": str(tmp_path)}
    run.ask([str(folder / case.program), case.way, case.call, case.kernel, "1", "60000", *case.more], shim)
    command = [sys.executable, "-m", "pyshim", "report", "--json", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    process: dict[str, Any] = json.loads(done.stdout)["processes"][0]
    assert process["raised"] >= 60_000
    assert "raised" in [stream["status"] for stream in process["streams"]]
