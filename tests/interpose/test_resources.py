"""Where a process has hardly anything: no memory, files, /proc, stack or system calls. It runs as it would alone.

What may be lost is the page, and one line says so.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, NCCL, ONE, WAYS, Build, Done, Runner, rule, same

OVERLAPPING = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")
WORDS = f"ptx=k,{NCCL} repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 launch={NCCL},16,256,0"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change what a process sees: run as root")
QUIET = {"SIMGPU_LAUNCHES": ""}  # the driver's own log needs files, too


def limited(**limits: int) -> dict[str, Any]:
    """Of the process from its start on: by name of a resource in small letters."""

    def set_limits() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))

    return {"preexec_fn": set_limits}


def one_line(done: Done, without: Done) -> None:
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.stderr.count("\n") == 1 and "no statistics in " in done.stderr, done.stderr


@pytest.mark.parametrize("limits", [{"stack": 65536}, {"nproc": 1}, {"core": 0}, {"memlock": 0}], ids=str)
def test_small_limits(limits: dict[str, int], bare: Runner, preloaded: Runner) -> None:
    without, done = bare(WORDS, **limited(**limits)), preloaded(WORDS, ONE, **limited(**limits))
    assert len(without.launches) == 5
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert done.totals["launches"] == 5


@pytest.mark.plain("a sanitizer reserves terabytes of address space", sanitized=True)
@pytest.mark.parametrize("mebibytes", [24, 48, 64, 96, 128, 512])
def test_little_address_space(mebibytes: int, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    """Where there is no room for the library, the loader says so and goes on without it."""
    limit = limited(**{"as": mebibytes << 20})
    words = ["-c", "echo hello; /bin/true; exit 3"]
    without, done = bare(words, program="/bin/sh", **limit), preloaded(words, program="/bin/sh", **limit)
    assert (without.status, without.stdout) == (3, "hello\n")
    assert (done.status, done.stdout) == (without.status, without.stdout)
    lines = [line for line in done.stderr.splitlines() if "cannot be preloaded" not in line]
    assert lines == [] and (mebibytes < 96 or done.stderr == "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(closed: str, build: Build, preloaded: Runner, tmp_path: Path) -> None:
    script = f'exec "$@" {closed}'
    pages = tmp_path / "pages"
    pages.mkdir()
    done = preloaded(
        ["-c", script, "sh", str(build.client()), *WORDS.split(), "error=mine"],
        ONE,
        program="/bin/sh",
        report=pages,
        env={**QUIET, "RANK": "0"},
    )
    assert done.totals["launches"] == 5
    for path in pages.iterdir():
        assert b"mine" not in path.read_bytes(), path
    if "2>&-" in closed:
        assert done.stderr == ""


@pytest.mark.parametrize("umask", [0o777, 0o477, 0])
def test_any_umask(umask: int, preloaded: Runner, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    preloaded(WORDS, ONE, report=pages, umask=umask)
    assert [(path.suffix, path.stat().st_mode & 0o777) for path in pages.iterdir()] == [(".page", 0o600)]


@pytest.mark.parametrize(
    "start", ["mkdir gone; cd gone; rmdir ../gone; exec", "exec -a ''", 'exec -a "$(printf %5000s)"']
)
def test_odd_starts(start: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    words = ["-c", f'cd {tmp_path}; {start} "$@"', "sh", str(build.client()), *WORDS.split()]
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    without, done = bare(words, program="bash"), preloaded(words, ONE, program="bash")
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert [process["launches"] for process in done.report["processes"]] == [5]


def test_a_hundred_thousand_variables(bare: Runner, preloaded: Runner) -> None:
    many = {f"V{number}": "x" for number in range(100_000)}
    without, done = bare(WORDS, env=many), preloaded(WORDS, ONE, env=many)
    assert len(without.launches) == 5
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert done.totals["launches"] == 5


def outside(script: str, build: Build, words: str) -> dict[str, Any]:
    """The client in a mount namespace of its own, where the script has run."""
    command = ["--mount", "sh", "-c", f'{script} && exec "$@"', "sh", str(build.client()), *words.split()]
    return {"words": command, "program": shutil.which("unshare") or "unshare"}


@NEEDS_ROOT
@pytest.mark.parametrize(
    "script", ["mount -t tmpfs none /proc", "mount -t proc -o hidepid=2 none /proc", "mount -t tmpfs none /sys"]
)
def test_without_proc(script: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    without, done = (
        bare(**outside(script, build, WORDS)),
        preloaded(policy=ONE, env={"RANK": "0"}, **outside(script, build, WORDS)),
    )
    if without.status:
        pytest.skip(f"no such mount here: {without.stderr.strip()}")
    assert (done.status, done.stdout) == (0, without.stdout)
    assert re.match(r"overlap: (without child processes: )?raised no stream \(0 of 5 launches\), ", done.stderr), (
        done.stderr
    )  # the script is a child
    assert done.totals["launches"] == 5


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """disk(options): a file system of its own for reports."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True
        ).returncode:
            pytest.skip("only root may mount a disk: run as root")
        return folder

    yield mount
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@NEEDS_ROOT
def test_read_only_file_system(disk: Callable[[str], Path], bare: Runner, preloaded: Runner) -> None:
    one_line(preloaded(WORDS, report=disk("ro")), bare(WORDS))


def test_the_report_is_removed_while_the_program_runs(
    build: Build, table_of: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    """Its page lives on without a name. (Who cuts it short ends the process; only the user can: shim/README.md.)"""
    pages = tmp_path / "report"
    pages.mkdir()
    env = {**table_of(ONE), "OVERLAP_REPORT": str(pages)}
    words = [str(build.client()), *WORDS.split(), "wait", "repeat=99", "launch=k,3,256,0", "print=end"]
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # printed before it waits
        assert len(list(pages.iterdir())) == 1
        shutil.rmtree(pages)
        out, err = process.communicate(b"\n", timeout=300)
    assert (process.returncode, err) == (0, b"")
    assert out.rstrip().endswith(b"end")
    assert not pages.exists()


@NEEDS_ROOT
def test_an_empty_root(bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    words = f"before:chroot={root} {WORDS}"
    without, done = bare(words, env=QUIET), preloaded(words, ONE, env=QUIET)
    assert without.status == 0
    one_line(done, without)


@pytest.mark.plain("a sanitizer ends where its own system calls are refused", sanitized=True)
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_refused_system_calls(error: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """tests/programs/seccomp.c lists them. A sandbox that kills for them kills, of course."""
    words = [str(getattr(errno, error)), str(build.client()), *WORDS.split()]
    program = build("seccomp", "seccomp.c")
    without, done = bare(words, program=program), preloaded(words, ONE, program=program, env={"RANK": "0"})
    if without.status:
        pytest.skip(f"no sandbox here: {without.stderr}")
    assert (done.status, done.stdout) == (0, without.stdout)
    assert len(done.launches) == len(without.launches) == 5
    assert done.stderr.count("\n") <= 2, done.stderr


@pytest.mark.plain("a sanitizer takes memory for itself", sanitized=True)
@pytest.mark.parametrize("report", [True, False], ids=["report", "no report"])
@pytest.mark.parametrize("least", [0, 2048], ids=["no memory", "no large pieces"])
def test_no_memory(least: int, report: bool, build: Build, bare: Runner, preloaded: Runner) -> None:
    """Launches, graphs, streams, waits and captures, first of all; at most one line is said."""
    little = build.library(f"liblittle{least}.so", "little_memory.c", f"-DLARGE={least}", "-DLARGEST=131071")
    words = (
        f"ptx=k,{NCCL} stream=0 begin=1 launch=k,9,32,0,1 end=1 go=1,2 stream=0 stream=-1 launch=k,{BLOCKS},256,0,1 "
    )
    words += f"launch={NCCL},16,256,0,2 sget=2,8 begin=1 launch=k,9,32,0,1 end=1 go=1,2 sync "
    words += "destroy=2 repeat=99 launch=k,9,32,0,3"
    env = {} if report else {"OVERLAP_REPORT": ""}
    for policy in ("default", OVERLAPPING):
        done = preloaded(words, policy, preload=f"{{}}:{little}", env=env)
        without = bare(words, env={"LD_PRELOAD": str(little)})
        assert (done.status, done.stdout, len(done.launches)) == (without.status, without.stdout, len(without.launches))
        assert without.status == 0 and done.stderr.count("\n") <= 2, done.stderr


# ---- Stacks ----

ADDED = 9 * 1024  # bytes: of 16 KiB, thread-local storage and the program's own frames need the rest
GRAPH = f"begin=1 launch=k,{BLOCKS},256,0,1 end=1 go=1,1"
IN_THREAD = f"thread stream=0 stream=0 {WORDS} launch={NCCL},16,256,0,1 launch=k,{BLOCKS},256,0,2 {GRAPH} end_thread"


def used(done: Done) -> int:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("stack: ")]
    return int(line.split()[1])


@pytest.mark.parametrize("policy", [ONE, OVERLAPPING], ids=["always", "windows"])
@pytest.mark.parametrize("way", WAYS)
def test_what_a_launch_takes_of_its_stack(
    way: str,
    policy: str,
    build: Build,
    bare: Runner,
    preloaded: Runner,
    record_property: Callable[[str, int], None],
) -> None:
    painted = build.library("libpainted.so", "painted.c")
    without = bare(IN_THREAD, way, env={"LD_PRELOAD": str(painted)})
    done = preloaded(IN_THREAD, policy, way, preload=f"{{}}:{painted}")
    assert (without.status, done.status) == (0, 0)
    assert done.stdout == without.stdout
    record_property(
        "bytes of stack that the library took at most, beyond what the program takes alone", used(done) - used(without)
    )
    assert used(done) - used(without) < ADDED
