"""Programs under valgrind: the library touches nothing that it should not, and leaves no memory of malloc behind.

A few in every run; all of them in `make sanitize`, which sets OVERLAP_TEST_MEMCHECK=all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from interposing import BLOCKS, NCCL, WAYS, Build, Runner, rule
from iterating import STYLE_0

from pyshim.start import plan

pytestmark = pytest.mark.plain("valgrind takes the place of a sanitizer", sanitized=True, coverage=True)

OPTIONS = ("--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=none", "--error-exitcode=9")
POLICY = rule("{blocks_per_sm: 1}", more="streams: {raise: auto}")
ROOM = rule("make_room", when="overlapping", more="streams: {raise: auto}")
BIG = f"launch=k,{BLOCKS},256,0"
LOAD = f"ptx=k,{NCCL} lib=other"
LAUNCHES = f"{LOAD} repeat=3 {BIG} ex=k,{BLOCKS},256,0 coop=k,100,256,0 launch={NCCL},16,256,0 {BIG}"
GRAPHS = f"{LOAD} stream=0 begin=1 {BIG},1 launch={NCCL},16,256,0,1 end=1 go=1,3 {BIG}"


class Case(NamedTuple):
    program: str  # of the functions below
    words: str
    policy: str = POLICY


FEW = {
    "launches by cuGetProcAddress": Case("proc_address_v2", LAUNCHES),
    "graphs, a thread and a child": Case("symbol", f"{GRAPHS} thread {BIG} end_thread fork {BIG} join {BIG}"),
    "four threads while everything comes and goes": Case("churn", "4 3"),
}
MORE = {
    **{f"launches by {way}": Case(way, LAUNCHES) for way in WAYS if way != "proc_address_v2"},
    "children first": Case("symbol", f"forks=3 {LAUNCHES}"),
    "module after module": Case("dlsym", f"ptx=k {BIG} unload=0 lib=k {BIG} unload=1 ptx=k {BIG} stream=-1 {BIG},1"),
    "streams, contexts and captures come and go": Case(
        "waiting", f"9 z n:1 n:2 {STYLE_0} {STYLE_0} B:3 k:3:8 G d:2 F", ROOM
    ),
    "observing": Case("symbol", LAUNCHES, "observe"),
}
CASES = {**FEW, **MORE} if os.environ.get("OVERLAP_TEST_MEMCHECK") == "all" else FEW


@pytest.fixture(scope="module")
def valgrind() -> str:
    found = shutil.which("valgrind")
    if not found:
        pytest.skip("needs valgrind: apt-get install valgrind libc6-dbg")
    alone = subprocess.run([found, "/bin/true"], capture_output=True, text=True, check=False)
    if alone.returncode and "libc6-dbg" in alone.stderr:
        pytest.skip("valgrind needs the C library's symbols: apt-get install libc6-dbg")
    return found


def program_of(build: Build, name: str) -> Path:
    return build.client(name) if name in WAYS else build(name, f"{name}.c", link=[plan.SIMULATED_DRIVER])


def findings(folder: Path) -> list[str]:
    """What valgrind says of any process: every error, and of what was not freed what our functions have allocated."""
    found = []
    for path in sorted(folder.iterdir()):
        text = re.sub(r"^==\d+== ?", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.M)
        for block in text.split("\n\n"):  # frames of this repository: (shim/sys/page.c:7); the first one allocated
            loss = re.search(r"in loss record", block)
            allocated_by = re.search(r"\(\S*?\b(shim|tools|tests)/", block)
            others = loss and not (allocated_by and allocated_by[1] == "shim")
            if not re.search(r"^ +(at|by) 0x", block, re.M) or others:
                continue
            found.append(block)
    return found


def check(valgrind: str, folder: Path, run: Runner, command: Sequence[str], **more: object) -> None:
    folder.mkdir()
    options = [*OPTIONS, "--fullpath-after=", f"--log-file={folder}/%p", *command]
    done = run(options, program=valgrind, **more)
    assert not findings(folder), "\n\n".join(findings(folder))
    assert (done.status, done.stderr) == (0, "")
    assert list(folder.iterdir()), "valgrind wrote nothing"
    assert done.totals["launches"] > 0


@pytest.mark.parametrize("name", CASES)
def test_clean(name: str, valgrind: str, build: Build, preloaded: Runner, tmp_path: Path) -> None:
    case = CASES[name]
    command = [str(program_of(build, case.program)), *case.words.split()]
    env = {"SIMGPU_MULTIPROCESSORS": "4"}
    check(valgrind, tmp_path / "said", preloaded, command, policy=case.policy, env=env, timeout=300)
