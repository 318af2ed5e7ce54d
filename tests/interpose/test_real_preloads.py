"""Beside the libraries that people preload: allocators, false clocks, sanitizers; in front of ours and behind it.

Compared with the same program and the same library without ours: it says the same, the driver is asked for the same,
and every launch is counted, in the parent, a child and a thread. tests/doctor has what is said of them before a run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from interposing import BLOCKS, NCCL, WAYS, Build, Runner, rule, same
from peers import third_party

from pyshim.start import plan

pytestmark = pytest.mark.plain("a sanitizer has its own allocator and clock, and hangs in a child", sanitized=True)

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WORDS = (
    f"forks=1 ptx=k,{NCCL} repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 launch={NCCL},16,256,0 "
    f"thread repeat=2 launch=k,{BLOCKS},256,0 end_thread fork exit=7 join launch=k,{BLOCKS},256,0"
)
LAUNCHES, SHAPED = 8, 7  # of each of two processes
RAISED = rule("{blocks_per_sm: 1}", more="streams: {raise: auto}")
CHANGED = ["dynamic_shared", "priority", "entry"]
FIRST, BEHIND = "{{}}:{other}", "{other}:{{}}"
# All ways where ours is first, as overlap-run puts it.
PLACES = [(way, FIRST) for way in WAYS] + [("dlsym", BEHIND), ("proc_address_v2", BEHIND)]


class Library(NamedTuple):
    package: str
    file: str
    env: Mapping[str, str] = MappingProxyType({})


LIBRARIES = {
    "jemalloc": Library("libjemalloc2", "libjemalloc.so.2"),
    "tcmalloc": Library("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    "libfaketime": Library("libfaketime", "libfaketime.so.1", {"FAKETIME": "@2001-02-03 04:05:06"}),
    "libfaketime, stopped": Library("libfaketime", "libfaketimeMT.so.1", {"FAKETIME": "2001-02-03 04:05:06"}),
    "libeatmydata": Library("libeatmydata1", "libeatmydata.so.1"),
}
SANITIZERS = ("asan", "tsan", "ubsan", "lsan")
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}


def sanitizer(name: str) -> Path:
    """The runtime that the compiler has."""
    command = [*shlex.split(os.environ.get("CC", "cc")), f"-print-file-name=lib{name}.so"]
    found = Path(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())
    if not found.is_absolute():
        pytest.skip(f"the compiler has no lib{name}.so, which gcc has: apt-get install gcc libc6-dev")
    return found.resolve()


def without_layout(name: str, command: list[str]) -> list[str]:
    """The thread sanitizer needs room at fixed addresses."""
    return ["setarch", "-R", *command] if name == "tsan" and shutil.which("setarch") else command


@pytest.mark.parametrize(("way", "order"), PLACES)
@pytest.mark.parametrize("name", LIBRARIES)
def test_beside_a_library_of_somebody_elses(name: str, way: str, order: str, bare: Runner, preloaded: Runner) -> None:
    package, file, env = LIBRARIES[name]
    other = third_party(package, file)
    without = bare(WORDS, way, env={**env, "LD_PRELOAD": str(other)})
    assert without.stdout.count("child: 0\n") == without.stdout.count("child: 7\n") // 2 == 1, without.stderr
    done = preloaded(WORDS, RAISED, way, env=env, preload=order.format(other=other), timeout=300)
    same(done, without, but=CHANGED)
    assert [(one["launches"], one["shaped"]) for one in done.report["processes"]] == [(LAUNCHES, SHAPED)] * 2


@pytest.mark.parametrize(("name", "order"), [("jemalloc", FIRST), ("tcmalloc", BEHIND)])
def test_sixteen_threads_beside_an_allocator(
    name: str, order: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    other = third_party(*LIBRARIES[name][:2])
    program = build("stress", "stress.c", link=[plan.SIMULATED_DRIVER])
    policy = rule("{blocks_per_sm: 1}", match='kernel: "shape*"')
    done = preloaded(program=program, policy=policy, preload=order.format(other=other), timeout=300)
    assert (done.status, done.stdout, done.stderr) == (0, "120\n" * 16, "")
    assert done.totals["launches"] == 16 * 120


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("name", SANITIZERS)
def test_behind_a_sanitizer_that_is_preloaded(
    name: str, way: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """In front of ours, as it must be; the program itself knows nothing of it."""
    runtime = sanitizer(name)
    command = without_layout(name, [str(build.client(way)), *WORDS.split()])
    env = {**SANITIZER_OPTIONS, "LD_PRELOAD": str(runtime)}
    without = bare(command[1:], program=command[0], env=env)
    if without.status and "unexpected memory mapping" in without.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert without.status == 0, without.stderr
    done = preloaded(command[1:], RAISED, program=command[0], env=SANITIZER_OPTIONS, preload=f"{runtime}:{{}}")
    same(done, without, but=CHANGED)
    assert [process["launches"] for process in done.report["processes"]] == [LAUNCHES] * 2


def test_an_address_sanitizer_behind_ours_ends_the_program(build: Build, preloaded: Runner) -> None:
    """Why overlap-run puts it in front: it says that it must come first."""
    done = preloaded(WORDS, env=SANITIZER_OPTIONS, preload=f"{{}}:{sanitizer('asan')}")
    assert done.status != 0
    assert "ASan runtime does not come first" in done.stderr


RUN = "import os, sys; os.environ['LD_PRELOAD'] = sys.argv.pop(1); from pyshim.cli import run; sys.exit(run.main())"


@pytest.mark.parametrize("name", [*LIBRARIES, *SANITIZERS])
def test_overlap_run_where_another_library_is_preloaded_already(
    name: str, build: Build, bare: Runner, clean_environment: Mapping[str, str]
) -> None:
    """Ours first, but behind a sanitizer that must be; and the program runs as it does with that library alone. The
    variable is set where Python runs already, which goes without it."""
    if name in SANITIZERS:
        other, settings = str(sanitizer(name)), SANITIZER_OPTIONS
    else:
        other, settings = str(third_party(*LIBRARIES[name][:2])), LIBRARIES[name].env
    env = {**clean_environment, **settings}
    command = [sys.executable, "-c", RUN, other, "--simulate", "h100", "--policy", "observe", "--quiet", "--"]

    def run(*program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *program], env=env, capture_output=True, text=True, timeout=300, check=False)

    behind = name in SANITIZERS and name != "ubsan"  # which has no word about its place
    ours = plan.LIBRARY
    order = [other, ours] if behind else [ours, other]
    if name != "tsan":
        assert run("printenv", "LD_PRELOAD").stdout == ":".join(order) + "\n"
    program = without_layout(name, [str(build.client("dlsym")), *WORDS.split()])
    without = bare(program[1:], program=program[0], env={**settings, "LD_PRELOAD": other})
    done = run(*program)
    assert (done.returncode, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
