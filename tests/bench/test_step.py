"""What the calls of a step cost that orders streams by events, in instructions: no times, which are noisy."""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "tools" / "bench"
# Of one call, over the driver that does nothing: 371, 214 and 257 with gcc 12.
# They were 474, 284 and 350 when clocks were copied whole and each wait changed the version.
BOUNDS = {"a step of nine calls": 415, "event record": 245, "stream wait": 300}
THREADS, OF_MANY = 16, 700  # 552 of each call of a step; 1,021 where each clock is copied whole
# A launch that is in the cache, outside of windows, and a call of the step over it.
CACHED, OVER_CACHED = 100, 5

pytestmark = [
    pytest.mark.plain("a sanitizer costs more than the library", address=True, coverage=True),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt-get install valgrind"),
]


@pytest.fixture(scope="module")
def run() -> ModuleType:
    """Return tools/bench/run.py, with the modules beside it."""
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module("run")
    finally:
        sys.path.remove(str(BENCH))


@pytest.fixture(scope="module")
def folder(run: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("step")
    run.compile_all(made)
    return made


def added(run: ModuleType, folder: Path, name: str, threads: int = 1) -> float:
    """Return the instructions that the library adds to a call of the row `windows: name` of `make bench`."""
    (case,) = (one for one in run.CASES if one.name == f"windows: {name}")
    case = dataclasses.replace(case, threads=threads)
    shim = {**run.armed(folder, run.WINDOWS), "LD_PRELOAD": str(run._native.SHIM)}
    return float(run.instructions(folder, case, shim) - run.instructions(folder, case, {}))


@pytest.mark.hazard("resources", "a step that orders streams by events would cost many times what its launches cost")
@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_call_that_orders_streams_executes_few_instructions(name: str, run: ModuleType, folder: Path) -> None:
    assert added(run, folder, name) <= BOUNDS[name]


def test_a_step_costs_little_more_than_launches_in_the_cache(run: ModuleType, folder: Path) -> None:
    cached = added(run, folder, "outside")
    assert 0 < cached <= CACHED
    assert added(run, folder, "a step of nine calls") <= OVER_CACHED * cached


@pytest.mark.hazard("resources", "each thread that uses events would make those of all others slower")
def test_streams_of_other_threads_cost_little(run: ModuleType, folder: Path) -> None:
    assert added(run, folder, "a step of nine calls", THREADS) <= OF_MANY


def test_what_is_measured_is_shaped(run: ModuleType, folder: Path, tmp_path: Path) -> None:
    """The driver that does nothing once said that kernels have a carve-out of their own: none was shaped."""
    (case,) = (one for one in run.CASES if one.name == "windows: a step of nine calls")
    shim = {**run.armed(folder, run.WINDOWS), "LD_PRELOAD": str(run._native.SHIM), "OVERLAP_REPORT": str(tmp_path)}
    run.ask([str(folder / case.program), case.way, case.call, case.kernel, "1", "9000"], shim)
    command = [sys.executable, "-m", "pyshim", "report", "--json", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    (process,) = json.loads(done.stdout)["processes"]
    assert process["shaped"] > 1000 and process["communication"] > 1000
