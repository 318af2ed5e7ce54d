"""Functions of the program that have a name of libc's which ISO C leaves to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import Build, Runner, rule

WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")


@pytest.mark.parametrize("policy", ["observe", WINDOWS])
@pytest.mark.plain("sanitizers call them", sanitized=True)
def test_the_library_calls_none_of_them(
    policy: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """With everything that needs the system: a page, a line on stderr, a fork handler, thread ids, a clock."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("own-names", "own_names.c", "-rdynamic", "-fno-builtin", "-Wno-error=missing-prototypes")
    env = {"RANK": "0"}
    without = bare([str(stub), "100"], program=program, env=env)
    assert (without.status, without.stdout) == (0, "launched\n"), without.stdout
    done = preloaded([str(stub), "100"], policy, program=program, env=env)
    assert (done.status, done.stdout) == (0, "launched\n")
    assert done.totals["launches"] == 101
    raised = "observed; the default would raise" if policy == "observe" else "raised"
    assert done.stderr.startswith(f"overlap: {raised} no stream (0 of 101 launches), ")
    missing = preloaded([str(stub), "1"], policy, program=program, env={**env, "OVERLAP_REPORT": str(tmp_path / "no")})
    assert (missing.status, missing.stdout) == (0, "launched\n")
    assert "there is no such folder" in missing.stderr
