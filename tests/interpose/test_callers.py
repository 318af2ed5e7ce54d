"""Many libraries that launch in turn through one shared runtime: tests/programs/callers.c.

No launch is decided twice, or takes a lock of the loader to find out who calls.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interposing import Build, Runner
from null_driver import ARMED, HANG, HIDDEN

ROUNDS = 20


@pytest.mark.parametrize("setting", ["off", *ARMED])
@pytest.mark.parametrize("libraries", [1, 5, 33, 64])
def test_libraries_launch_in_turn(
    libraries: int, setting: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    driver = build.library("many/libcuda.so.1", "many_driver.c", *HIDDEN)
    runtime = build.library("many/libcudart.so.13", "../../tools/bench/null_runtime.c", *HIDDEN, link=[driver])
    caller = build.library("libcaller.so", "../../tools/bench/null_caller.c", *HIDDEN, link=[runtime])
    words = [str(ROUNDS)]
    for number in range(libraries):  # copies, because the loader opens a file only once
        words.append(str(shutil.copy(caller, tmp_path / f"libcaller{number}.so")))
    more = {"program": build("callers", "callers.c", link=[driver]), "timeout": HANG}
    env = {"LD_LIBRARY_PATH": str(driver.parent)}
    without = bare(words, env=env, **more)
    if setting == "off":
        done = preloaded(words, env={**env, "OVERLAP_RUN": "off"}, **more)
    else:
        done = preloaded(words, setting, env=env, **more)
        assert done.totals["launches"] == ROUNDS * libraries
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert without.stdout == f"bad: 0\nlaunches: {ROUNDS * libraries}\nasked: 0\n"
