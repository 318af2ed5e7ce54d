"""Calls that crashed or hung in libraries like this one: of a runtime, and with NULL; more in words/drivers.txt."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from interposing import ONE, Build, Runner, same
from peers import nvidia_runtimes

from pyshim.start import plan
from tools.checks import driver_table

# NVIDIA's runtimes give no place for the status; functions that are no business of a preload stay the driver's own.
ASKED = ("cuInit", "cuLaunchKernel", "cuLaunchKernelEx", "cuNobodyHasThis", "", "cuMemGetInfo", "cuMemAlloc")


def test_the_cuda_runtime_crashes_where_it_gives_no_place_for_the_status(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    program = build("proc-address", "proc_address.c")
    without, done = bare(ASKED, program=program), preloaded(ASKED, program=program)
    assert "cuLaunchKernel: 0 0 1 libcuda.so.1\n" * 2 in without.stdout
    assert "cuNobodyHasThis: 0 1 0 none\n" in without.stdout
    # Ours in front of the launches, and nothing else about any answer.
    assert "cuLaunchKernel: 0 0 1 liboverlap.so\n" * 2 in done.stdout
    assert "cuMemGetInfo: 0 0 1 libcuda.so.1\n" * 2 in done.stdout
    ours = done.stdout.replace("liboverlap.so", "libcuda.so.1")
    assert (done.status, done.stderr, ours) == (without.status, without.stderr, without.stdout)


COUNT = """
import ctypes, sys
count = ctypes.c_int(-1)
print(ctypes.CDLL(sys.argv[1]).cudaGetDeviceCount(ctypes.byref(count)), count.value)
"""


@pytest.mark.parametrize("version", ["12080", "13030"])
@pytest.mark.parametrize("whose", ["simulated 12", "simulated 13", "NVIDIA's 12", "NVIDIA's 13"])
def test_the_first_call_of_a_bundled_runtime_never_returns(
    whose: str, version: str, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """NVIDIA's cannot start on the simulated driver, and says so, but looks up all of its functions first."""
    script = tmp_path / "count.py"
    script.write_text(COUNT)
    words, env = [str(script), str(nvidia_runtimes()[whose]())], {"SIMGPU_DRIVER_VERSION": version}
    without = bare(words, program=sys.executable, env=env)
    assert without.stdout.count("\n") == 1 and without.status == 0, without.stderr
    same(preloaded(words, program=sys.executable, env=env, timeout=300), without)


def words_of(row: driver_table.Row, pointers: bool) -> str:
    """What every_entry.c gives to a function: NULL and 0 for everything, or a buffer for every pointer."""
    parameters = row.parameters.strip("()").split(",")
    return f"{row.name}:{''.join('1' if pointers and '*' in parameter else '0' for parameter in parameters)}"


@pytest.mark.parametrize("given", ["null", "buffer"])
@pytest.mark.parametrize("way", ["dlsym", "symbol"])
def test_a_call_with_null_or_with_nonsense_crashes_in_the_wrapper(
    way: str, given: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Every function that we stand in front of, by name; the answer is the driver's, and what it wrote, too."""
    calls = sorted({words_of(row, given == "buffer") for row in driver_table.rows()})
    program = build("every-entry", "every_entry.c", link=["-Wl,--no-as-needed", plan.SIMULATED_DRIVER])
    without, done = bare([way, *calls], program=program), preloaded([way, *calls], ONE, program=program)
    assert len(without.stdout.splitlines()) == len(calls), without.stderr
    assert done.stdout.splitlines() == without.stdout.splitlines()
    assert done.status == without.status == 0
    assert "missing" not in without.stdout
    if given == "null":
        assert "signal" not in without.stdout
        assert without.stdout.count(" 1 untouched") > 10
    else:
        assert without.stdout.count(" written") >= 10
