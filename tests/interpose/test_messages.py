"""What the library says, where names, drivers and ends of processes are odd."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner

from pyshim.start.environment import quote

WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"
RANK = {"RANK": "0"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"a\nb", "a?b"),
        (b"a\xff\xc3b", "a??b"),
        (b"a\x1b[31mb", "a?[31mb"),
        ("größe – 大".encode(), "größe – 大"),
        (b"\xc0\xaf \xed\xa0\x80 \xf5 \xe2\x80\xae", "?? ??? ? ???"),
        ("a\x85b".encode(), "a??b"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_a_folder_of_any_name(name: bytes, shown: str, there: bool, preloaded: Runner, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(name)
    if there:
        folder.mkdir()
    done = preloaded(WORDS, env={**RANK, "PWD": "/", "OVERLAP_REPORT": quote(str(folder))}, report=tmp_path / "none")
    lines = done.stderr.splitlines()
    assert len(lines) == (1 if there else 2), done.stderr
    assert f"{tmp_path.name}/{shown}" in lines[0]
    assert "\ufffd" not in done.stderr  # all of it is UTF-8


def test_a_launch_that_fails_without_us_too(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k without=k,{BLOCKS},256,0 launch=k,{BLOCKS},256,49153"
    without, done = bare(words), preloaded(words, ONE)
    assert (done.stdout, without.stdout.count(": 1\n")) == (without.stdout, 2)
    assert done.reasons == {"invalid_as_asked": 2}
    shaped = preloaded(f"{words} launch=k,{BLOCKS},256,0", ONE)  # says nothing about its kernel
    assert shaped.reasons == {"invalid_as_asked": 2, "shaped": 1}


def test_a_gpu_whose_limits_are_not_told(build: Build, preloaded: Runner, tmp_path: Path) -> None:
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    env = {**RANK, "LD_LIBRARY_PATH": str(stub.parent), "STUB_NO_LIMITS": "1"}
    program = build("sandboxed", "sandboxed.c", "-DWAY_DLSYM", "-pthread")
    done = preloaded("none k 1", ONE, program=program, env=env)
    assert (done.status, done.stdout, done.reasons) == (0, "bad: 0\n", {"unknown_limits": 1202})
    assert done.stderr.startswith("overlap: the driver does not tell the limits of NVIDIA H100")
    assert "no policy is for" not in done.stderr
    observed = preloaded("none k 1", program=program, env=env)
    assert (observed.reasons, "limits of" in observed.stderr) == ({"observe_only": 1202}, False)
