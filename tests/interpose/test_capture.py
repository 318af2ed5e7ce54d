"""Launches into a capturing stream: the graph is exactly what the program makes it, whatever the policy would do."""

from __future__ import annotations

from interposing import ONE, Build, Runner, smallest_size


def test_a_driver_that_refuses_sizes(build: Build, preloaded: Runner) -> None:
    """The first launch outside a capture is refused, and is made again as asked."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("captured", "small_stack.c", "-DSTACK=262144", "-DCAPTURED=5", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent), "STUB_REFUSES": "1"}
    done = preloaded(program=program, policy=ONE, env=env)
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, extended: 0\n"
    assert (done.totals["launches"], done.totals["refused"]) == (25, 1)
