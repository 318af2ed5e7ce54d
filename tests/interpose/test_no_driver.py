"""A machine without a driver must not look equipped, and nothing may crash there."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from interposing import Build, Runner, same


@pytest.fixture
def nowhere(simulated: Mapping[str, str]) -> dict[str, str]:
    """No folder with a driver."""
    return {"LD_LIBRARY_PATH": ":".join(simulated["LD_LIBRARY_PATH"].split(":")[1:])}


@pytest.mark.parametrize("armed", [True, False])
def test_the_driver_is_missing_and_looks_missing(
    armed: bool, build: Build, bare: Runner, preloaded: Runner, nowhere: dict[str, str]
) -> None:
    """Without the library cuInit is not there at all; with it, linked weakly, it answers 3 (not initialized)."""
    program = build("no-driver", "no_driver.c")
    env = nowhere if armed else {**nowhere, "OVERLAP_RUN": "off"}
    without, done = bare(program=program, env=nowhere), preloaded(program=program, env=env)
    # Which object the text of dlerror begins with is the loader's business.
    looked_up, seen = ([re.sub(r" /\S+:", "", line) for line in run.stdout.splitlines()[:6]] for run in (without, done))
    assert looked_up[1] == "cuLaunchKernel 0 undefined symbol: cuLaunchKernel"
    assert seen == looked_up
    assert without.stdout.splitlines()[6:] == ["not linked"]
    assert done.stdout.splitlines()[6:] == [" ".join("3" * 8)] * 2
    assert (done.status, done.stderr) == (0, "")
    assert done.report["processes"] == []


@pytest.mark.parametrize("way", ["dlsym", "proc_address", "proc_address_v2"])
def test_a_program_that_opens_the_driver_says_what_it_always_said(
    way: str, bare: Runner, preloaded: Runner, nowhere: dict[str, str]
) -> None:
    done, without = preloaded("ptx=k", way=way, env=nowhere), bare("ptx=k", way, env=nowhere)
    assert "libcuda.so.1: cannot open shared object file" in without.stdout
    same(done, without)


@pytest.mark.parametrize("armed", [True, False])
def test_nothing_comes_next(
    armed: bool, build: Build, bare: Runner, preloaded: Runner, nowhere: dict[str, str]
) -> None:
    program = build("next-of-nothing", "next_of_nothing.c")
    done = preloaded(program=program, env=nowhere if armed else {**nowhere, "OVERLAP_RUN": "off"})
    without = bare(program=program, env=nowhere)
    assert "hipInit 0 0\n" in without.stdout
    if armed:  # that name is looked for, and there for it
        assert done.stdout.replace("rocprofiler_configure 1 1", "rocprofiler_configure 0 0") == without.stdout
    else:
        assert done.stdout == without.stdout
    assert done.status == without.status == 0
