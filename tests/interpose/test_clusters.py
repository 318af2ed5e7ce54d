"""What a launch says about itself by attributes, or by what was compiled into its kernel."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner, smallest_size

SIZE = smallest_size(1)


@pytest.mark.parametrize(("width", "reason", "size"), [("2", "cluster", 0), ("1", "shaped", 1), ("0", "shaped", 1)])
def test_clusters_that_are_compiled_in_are_left_alone(
    width: str, reason: str, size: int, build: Build, preloaded: Runner
) -> None:
    stub = build.library("limiting/libcuda.so.1", "stub_driver.c", "-DCOUNTS", "-DSLOW")
    program = build("counting", "counting.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_CLUSTER": width}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {SIZE if size else 0}, asked: 0\n"
    assert done.reasons == {reason: 100}
