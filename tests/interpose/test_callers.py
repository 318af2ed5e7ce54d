"""Many libraries that launch in turn through one shared runtime: tests/programs/callers.c.

No launch is decided twice, or takes a lock of the loader to find out who calls.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interposing import Build, Runner

ROUNDS = 20
HANG = 60  # seconds


@pytest.mark.parametrize("policy", ["off", "observe", "default", "h100-paper"])
@pytest.mark.parametrize("libraries", [1, 5, 33, 64, 130])
def test_libraries_launch_in_turn(
    libraries: int, policy: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    hidden = ("-fvisibility=hidden", "-Wl,-Bsymbolic")
    stub = build.library("many/libcuda.so.1", "many_driver.c", *hidden)
    runtime = build.library("many/libcudart.so.13", "../../tools/bench/null_runtime.c", *hidden, link=[stub])
    caller = build.library("libcaller.so", "../../tools/bench/null_caller.c", *hidden, link=[runtime])
    program = build("callers", "callers.c", link=[stub])
    words = [str(ROUNDS)]
    for number in range(libraries):  # copies, because the loader opens a file only once
        words.append(shutil.copy(caller, tmp_path / f"libcaller{number}.so"))
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without = bare(words, program=program, env=env)
    if policy == "off":
        done = preloaded(words, program=program, env={**env, "OVERLAP_RUN": "off"}, timeout=HANG)
    else:
        done = preloaded(words, policy, program=program, env=env, timeout=HANG)
        assert done.totals["launches"] == ROUNDS * libraries
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert without.stdout == f"bad: 0\nlaunches: {ROUNDS * libraries}\nasked: 0\n"
