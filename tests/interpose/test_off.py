"""OVERLAP_RUN=off is total: the library is there and does nothing, whatever else is set."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, WAYS, Build, Done, Runner, rule, same

from pyshim.start import plan

OFF = {"OVERLAP_RUN": "off", "RANK": "0", "OVERLAP_LAUNCHER_PID": "1"}
RAISED = rule("{blocks_per_sm: 1}", more="streams: {raise: auto, created_by: ['*']}")
LAUNCHES = f"ptx=k,{NCCL} lib=k stream=0 repeat=3 launch=k,{BLOCKS},256,0,1 ex=k,{BLOCKS},256,0 launch={NCCL},16,256,0"
WORDS = {
    "launches": LAUNCHES,
    "graphs": f"ptx=k stream=0 begin=1 launch=k,{BLOCKS},256,0,1 end=1 go=1,1",
    "threads and children": f"forks=2 {LAUNCHES} thread {LAUNCHES} end_thread fork exit=3 join spawn {LAUNCHES}",
    "questions": f"ptx=k get=k,8 get=k,4 occ=k,256,0 {LAUNCHES} exit=4",
}
Tables = Callable[[str], Mapping[str, str]]
NEEDS_STRACE = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace: apt-get install strace")


def nothing(done: Done, without: Done, folder: Path) -> None:
    same(done, without)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_done(way: str, words: str, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    without = bare(WORDS[words], way)
    assert without.launches
    nothing(preloaded(WORDS[words], RAISED, way, report=folder, env=OFF), without, folder)


@pytest.mark.parametrize("table", ["", "broken", "A" * 100_000])
def test_a_broken_table_is_not_even_read(table: str, bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    done = preloaded(LAUNCHES, report=folder, env={**OFF, "OVERLAP_TABLE": table, "OVERLAP_REPORT": "/nonexistent"})
    nothing(done, bare(LAUNCHES), folder)


@pytest.fixture
def whose(build: Build) -> tuple[Path, list[str]]:
    """A program that is linked to everything, and all that it may ask."""
    libraries = [
        plan.SIMULATED_DRIVER,
        Path(plan.SIMULATED_DRIVER).with_name("libcudart.so.13"),
        plan.SIMULATED_RUNTIME,
    ]
    program = build("whose", "whose.c", "-Wl,--no-as-needed", link=libraries)
    return program, [str(library) for library in libraries]


@pytest.mark.parametrize("why", ["off", "not set up"])
def test_looked_up_functions_are_the_drivers_own(
    why: str, whose: tuple[Path, list[str]], bare: Runner, preloaded: Runner
) -> None:
    """By dlsym, cuGetProcAddress and hipGetProcAddress. What a program is linked to goes straight through ours."""
    program, libraries = whose
    paths = {"LD_LIBRARY_PATH": ":".join(os.path.dirname(library) for library in libraries)}
    without = bare(libraries, program=program, env=paths)
    assert without.status == 0, without.stderr
    own = {
        "libcuda.so.1": "cuLaunchKernel",
        "libcudart.so.13": "cudaLaunchKernel",
        "libamdhip64.so.7": "hipLaunchKernel",
    }
    for library, name in own.items():
        assert f"{name} everywhere {library}" in without.stdout
        assert f"{name} there {library}" in without.stdout
    for answer in ("cuLaunchKernel from the driver libcuda.so.1", "hipLaunchKernel from HIP libamdhip64.so.7"):
        assert answer in without.stdout
    ours = (
        {"LD_PRELOAD": plan.LIBRARY}
        if why == "not set up"
        else {**OFF, "LD_PRELOAD": plan.LIBRARY, "OVERLAP_TABLE": "AAAA"}
    )
    same(bare(libraries, program=program, env={**ours, **paths}), without)
    on = preloaded(libraries, program=program, env=paths)
    for answer in ("cuLaunchKernel everywhere", "cuLaunchKernel from the driver", "hipLaunchKernel from HIP"):
        assert f"{answer} liboverlap.so" in on.stdout, "nothing was tested"


def thread_data() -> int:
    """How many bytes each thread has of the library (PT_TLS)."""
    image = Path(plan.LIBRARY).read_bytes()
    (place,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", image, place + size * index) for index in range(count)]
    return int(sum(memory for kind, _, _, _, _, _, memory, _ in segments if kind == 7))


def calls(command: list[str], env: Mapping[str, str], folder: Path, preload: str) -> list[str]:
    """The system calls of a process after its preload was mapped: their names."""
    log = folder / "strace"
    plain = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    traced = ["strace", "-qq", "-f", "-o", str(log), "-E", f"LD_PRELOAD={preload}", *command]
    subprocess.run(traced, env=plain, check=True, stdout=subprocess.DEVNULL, timeout=300)
    lines = [line.split(None, 1)[1] for line in log.read_text().splitlines()]
    opened = next(number for number, line in enumerate(lines) if preload in line and line.startswith("openat("))
    closed = next(number for number, line in enumerate(lines) if number > opened and line.startswith("close("))
    return [match.group() for line in lines[closed:] if (match := re.match(r"\w+", line))]


@NEEDS_STRACE
@pytest.mark.plain("a sanitizer asks the kernel and the loader for more", sanitized=True)
@pytest.mark.parametrize("command", ["/bin/true", "client"])
@pytest.mark.parametrize("why", ["off", "not set up"])
def test_the_kernel_is_asked_for_what_an_empty_library_asks(
    why: str, command: str, build: Build, simulated: Mapping[str, str], table_of: Tables, tmp_path: Path
) -> None:
    """No memory is mapped, no file opened, nothing written."""
    (tmp_path / "empty.c").write_text(f"__thread char own[{thread_data()}];\n")  # the loader makes room for it
    empty = tmp_path / "libempty.so"
    link = ["-Wl,-z,norelro", "-Wl,-z,noseparate-code"]  # as ours (shim/build.py): another mapping is another call
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-shared", "-fPIC", *link, str(tmp_path / "empty.c"), "-o", str(empty)], check=True)
    words = [command] if command == "/bin/true" else [str(build.client()), *LAUNCHES.split()]
    bare = {**simulated, "SIMGPU_LAUNCHES": ""}
    env = bare if why == "not set up" else {**table_of(RAISED), **OFF, "SIMGPU_LAUNCHES": ""}
    assert calls(words, env, tmp_path, plan.LIBRARY) == calls(words, bare, tmp_path, str(empty))


@NEEDS_STRACE
def test_set_up_the_kernel_is_asked_two_questions_more(
    simulated: Mapping[str, str], table_of: Tables, tmp_path: Path
) -> None:
    """In a process that uses no GPU: what stderr is, and which process this is; that again at the end."""
    without = calls(["/bin/true"], simulated, tmp_path, plan.LIBRARY)
    done = Counter(calls(["/bin/true"], table_of(RAISED), tmp_path, plan.LIBRARY))
    done.subtract(without)
    assert +done == {"getpid": 2, "fstat": 1} or +done == {"getpid": 2, "newfstatat": 1}


@pytest.mark.plain("a sanitizer is preloaded", sanitized=True)
def test_overlap_run_preloads_nothing(
    build: Build, overlap_run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Switched off around overlap-run, the program has not even the library."""
    options = ["--policy", "h100", "--report", str(tmp_path / "report"), "--simulate", "h100"]
    show = ["/bin/sh", "-c", "env; grep -c liboverlap /proc/$$/maps"]
    done = overlap_run(*options, *show, env={"OVERLAP_RUN": "off"})
    assert done.returncode == 1  # grep's: it counts none
    assert done.stderr == "overlap: OVERLAP_RUN=off: --simulate does nothing; unset it\n"
    assert done.stdout.splitlines()[-1] == "0"
    assert "LD_PRELOAD" not in done.stdout and "SIMGPU" not in done.stdout
    assert not (tmp_path / "report").exists()
