"""What a driver, or a program, does that is newer or more than the library expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import Build, Runner
from iterating import AUTO, raised

from pyshim.start import plan

HERE = Path(__file__).parent


def test_a_newer_version_of_a_function_is_called_with_all_that_it_takes(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """The rows tell of functions up to 13.5: another one of the same name is left alone."""
    driver = build("newer/libcuda.so.1", str(HERE / "newer_driver.c"), "-shared", "-fPIC")
    program = build("newer_caller", str(HERE / "newer_caller.c"))
    env = {"LD_LIBRARY_PATH": str(driver.parent)}
    without, done = bare([], program=program, env=env), preloaded([], AUTO, program=program, env=env)
    assert without.stdout == "destroy 0x1000, flags 0x77\nlaunch 0x200010, more 0x1234\n", "nothing was tested"
    assert (done.status, done.stdout) == (0, without.stdout)


@pytest.mark.parametrize("other", ["", "other"])
def test_streams_of_a_green_context_end_with_the_primary_one(other: str, build: Build, preloaded: Runner) -> None:
    """Also beside a context that the program has made. Else the capture sets the priority of a stream that is gone."""
    program = build("green", str(HERE / "green.c"), link=[plan.SIMULATED_DRIVER])
    done = preloaded(other.split(), AUTO, program=program, env={"SIMGPU_INVALID": "crashes"})
    assert done.status == 0, done.stdout + done.stderr
    assert raised(done)[-1] == "5", "nothing was tested"


def test_streams_and_captures_of_a_context_of_its_own_do_not_end_with_the_primary_one(
    build: Build, preloaded: Runner
) -> None:
    program = build("green", str(HERE / "green.c"), link=[plan.SIMULATED_DRIVER])
    done = preloaded(["own"], AUTO, program=program, env={"SIMGPU_INVALID": "crashes"})
    assert done.status == 0, done.stdout + done.stderr
    assert {launch["priority"] for launch in done.in_graphs} == {0}
    assert raised(done)[-1] == "5" and done.totals["raised"] == raised(done).count("5")


@pytest.mark.parametrize("count", [64, 65, 200])
def test_however_many_captures_are_open_at_once_the_rule_goes_on_after_them(
    count: int, build: Build, preloaded: Runner
) -> None:
    program = build("many_captures", str(HERE / "many_captures.c"), link=[plan.SIMULATED_DRIVER])
    done = preloaded([str(count)], AUTO, program=program)
    assert done.status == 0 and raised(done)[-1] == "5", done.stdout + done.stderr
