"""A thread that is cancelled inside the driver: forced unwinding passes our frames."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner


@pytest.mark.parametrize("policy", [ONE, "default", "observe", None])
def test_a_thread_is_cancelled_inside_the_driver(
    policy: str | None, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """By both ways, with arguments in registers and on the stack."""
    stub = build.library("unwind/libcuda.so.1", "unwind_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("unwind-program", "unwind.c", link=[stub, "-ldl", "-pthread"])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    done = bare([], program=program, env=env) if policy is None else preloaded([], policy, program=program, env=env)
    assert (done.status, done.stdout) == (0, "cancelled: 6 cleaned: 6\n"), done.stderr
