"""Calls on handles of a context that is not current: the results are those of a real driver (context_check.c)."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def program(libcuda: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("contexts") / "check"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'tools/simgpu'}"]
    subprocess.run([*compiler, *flags, str(HERE / "context_check.c"), str(libcuda), "-o", str(made)], check=True)
    return made


@pytest.mark.parametrize("handles", ["", "fresh"])
def test_calls_without_the_context_of_their_handles(program: Path, libcuda: Path, handles: str) -> None:
    """fresh: also where no handle is given out twice."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(libcuda.parent), "SIMGPU": "h200", "SIMGPU_HANDLES": handles}
    done = subprocess.run([str(program)], env=env, capture_output=True, text=True, timeout=60, check=False)
    *different, calls = done.stdout.splitlines()
    assert (different, done.stderr, done.returncode) == ([], "", 0)
    assert int(calls.split()[0]) > 200


# Both runtimes retain the primary context again in the thread that has it current still.
RESET = """
import threading
def use(): codes.append(lib.{0}Malloc(C.byref(P()), C.c_size_t(64)))
def thread():
    use(); first.set(); second.wait(); use()
codes, first, second = [], threading.Event(), threading.Event()
other = threading.Thread(target=thread); other.start(); first.wait()
codes.append(lib.{0}DeviceReset()); second.set(); other.join()
answer(codes)
"""


def test_another_thread_goes_on_after_a_reset(simulate: Any, on_hip: Any, libcuda: Path) -> None:
    runtime = libcuda.with_name("libcudart.so.13")
    on_cuda = simulate(f"lib = C.CDLL('{runtime}')\n" + RESET.format("cuda"), LD_LIBRARY_PATH=str(libcuda.parent))
    assert on_cuda.answer == [0, 0, 0]
    assert on_hip("lib = hip.library\n" + RESET.format("hip")).answer == [0, 0, 0]
