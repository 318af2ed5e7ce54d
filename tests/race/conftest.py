"""The library built with its named points (shim/gpu/point.h), and the program that holds threads at them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from interposing import Build, Done, Runner

from pyshim.start import plan
from tools.checks import shim_build

ROOT = Path(__file__).resolve().parents[2]
Race = Callable[..., Done]


@pytest.fixture(scope="session")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sources in one call of the compiler, so that compile_once.py keeps the library as a whole."""
    build = shim_build.load()
    made = tmp_path_factory.mktemp("points") / "liboverlap.so"
    flags = [*build.COMMON, *build.SHARED, "-O1", "-DOVERLAP_POINTS", *build.INCLUDES["shim"]]
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags, *build.sources("shim"), *build.arguments("shim")]
    subprocess.run([*command, "-o", str(made)], cwd=ROOT, check=True)
    return made


@pytest.fixture
def race(build: Build, points: Path, preloaded: Runner) -> Race:
    """race(order, first, thread 1, ..., last, policy=): every item of the order was reached, and no call has failed.
    lines: how many the library prints on stderr."""
    path = Path(__file__).with_name("race.c")
    program = build("race", str(path), "-rdynamic", link=[plan.SIMULATED_DRIVER])

    def run(order: str, *words: str, policy: str, lines: int = 0) -> Done:
        line = [order, *" / ".join(words).split()]
        env = {"SIMGPU_INVALID": "crashes"}  # a handle that is gone ends the process
        done = preloaded(line, policy, program=program, preload=str(points), env=env)
        assert (done.status, len(done.stderr.splitlines())) == (0, lines), done.stdout + done.stderr
        assert "not reached" not in done.stdout, done.stdout
        return done

    return run
