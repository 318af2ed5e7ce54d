"""Our lines have no consequences: nobody may read them, and nobody may be there any more."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from interposing import BLOCKS, Build

from pyshim.start import plan

WORDS = ["ptx=k", f"launch=k,{BLOCKS},256,0"]


@pytest.fixture
def speaking(
    build: Build, table_of: Callable[[str], Mapping[str, str]]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """A process that has a line to say at its end. (Python gives SIGPIPE its usual meaning back in a child.)"""

    def run(stderr: int, *more: str, policy: str = "observe") -> subprocess.CompletedProcess[bytes]:
        env = {**table_of(policy), "RANK": "0"}
        command = [str(build.client()), *WORDS, *more]
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=stderr, timeout=300, check=False)

    return run


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        with contextlib.suppress(OSError):  # closed by the test
            os.close(end)


# a40-paper speaks in the middle, too: no policy is for this GPU.
@pytest.mark.parametrize("policy", ["observe", "a40-paper"])
def test_a_pipe_without_a_reader(
    policy: str, speaking: Callable[..., subprocess.CompletedProcess[bytes]], pipe: tuple[int, int]
) -> None:
    os.close(pipe[0])
    done = speaking(pipe[1], "exit=5", policy=policy)
    assert done.returncode == 5
    assert b"launch: 0\n" in done.stdout


@pytest.mark.parametrize("policy", ["observe", "a40-paper"])
def test_a_full_pipe_that_nobody_drains(
    policy: str, speaking: Callable[..., subprocess.CompletedProcess[bytes]], pipe: tuple[int, int]
) -> None:
    flags = fcntl.fcntl(pipe[1], fcntl.F_GETFL)
    fcntl.fcntl(pipe[1], fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(pipe[1], bytes(4096))
    fcntl.fcntl(pipe[1], fcntl.F_SETFL, flags)
    done = speaking(pipe[1], "exit=5", policy=policy)
    assert done.returncode == 5
    assert b"launch: 0\n" in done.stdout


def test_a_pipe_that_somebody_reads_gets_the_line(
    speaking: Callable[..., subprocess.CompletedProcess[bytes]], pipe: tuple[int, int]
) -> None:
    done = speaking(pipe[1], "exit=5")
    assert done.returncode == 5
    assert os.read(pipe[0], 4096).startswith(b"overlap: observed; the default would raise no stream (0 of 1 launch), ")


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_a_program_that_only_counts_the_gpus_is_not_spoken_of(
    vendor: str, build: Build, table_of: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    """As torchrun does, which is no rank and is started by overlap-run."""
    library = plan.SIMULATED_DRIVER if vendor == "cuda" else plan.SIMULATED_RUNTIME
    defined = ["-DHIP"] if vendor == "hip" else []
    program = build(f"only-count-{vendor}", "only_count.c", *defined, link=[library])
    env = {**table_of("observe"), "LD_LIBRARY_PATH": os.path.dirname(library), "OVERLAP_REPORT": str(tmp_path)}
    env |= {"SIMGPU": "h100" if vendor == "cuda" else "mi250x", "RANK": "0"}
    done = subprocess.run([str(program)], env=env, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0 1\n", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_only_looks_for_the_driver_is_not_spoken_of(
    build: Build, table_of: Callable[[str], Mapping[str, str]]
) -> None:
    program = build("only-open", "only_open.c")
    env = {**table_of("observe"), "RANK": "0"}
    done = subprocess.run([str(program)], env=env, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1 1\n", b"")
