"""What a launch says about itself by attributes, or by what was compiled into its kernel."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner, smallest_size

from pyshim.launch import plan


@pytest.mark.parametrize(("width", "reason", "size"), [("2", "cluster", 0), ("1", "shaped", 1), ("0", "shaped", 1)])
def test_clusters_that_are_compiled_in_are_left_alone(
    width: str, reason: str, size: int, build: Build, preloaded: Runner
) -> None:
    """By a driver that does not say how many of them fit."""
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("counting", "counting.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_CLUSTER": width}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1) if size else 0}, asked: 0\n"
    assert done.reasons == {reason: 100}


@pytest.mark.parametrize("policy", [ONE, "default", "observe"])
def test_attributes_that_are_counted_and_not_there(policy: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    program = build("null-attributes", "null_attributes.c", link=[plan.SIMULATED_DRIVER])
    without, done = bare(program=program), preloaded(program=program, policy=policy)
    assert without.stdout.startswith("0: 1 1 1 1 1 1 0 0\n0:")
    # A changed launch that is refused is made again as asked, which the driver's log shows.
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
    assert done.totals["launches"] == 16
