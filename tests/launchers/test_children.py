"""A tree of processes under one overlap-run, most of which never open a GPU: they work, and they say nothing."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import debian
import pytest
from seen import OVERLAP_RUN

QUIET = (OVERLAP_RUN, "--policy", "default", "--simulate", "h100")
SAID = "overlap: simulated NVIDIA H100 80GB HBM3\n"  # by overlap-run; each program is silent
CC = shlex.split(os.environ.get("CC", "cc"))
HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 7; }\n'


def test_a_compiler_and_what_it_makes(run, tmp_path):
    """gcc alone is five programs."""
    (tmp_path / "hello.c").write_text(HELLO)
    done = run(*QUIET, *CC, "-O1", "-o", "hello", "hello.c", cwd=tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "", SAID)
    done = run(*QUIET, "./hello", cwd=tmp_path)
    assert (done.status, done.stdout, done.stderr) == (7, "hello\n", SAID)


def test_ninja(run, tmp_path):
    try:
        debian.install(["ninja-build"], ["ninja"])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    rules = "".join(f"build {index}.o: compile hello.c\n" for index in range(4))
    (tmp_path / "build.ninja").write_text(f"rule compile\n command = {shlex.join(CC)} -c $in -o $out\n{rules}")
    (tmp_path / "hello.c").write_text(HELLO)
    done = run(*QUIET, "ninja", cwd=tmp_path)
    assert (done.status, done.stderr) == (0, SAID)
    assert len(list(tmp_path.glob("*.o"))) == 4


def test_ptxas(run, tmp_path):
    """Triton's own, started by a program that has opened the GPU: one process speaks."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        pytest.skip("Triton needs Python 3.10")
    ptxas = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n ret;\n}\n")
    words = (str(ptxas), "-arch=sm_90", "k.ptx", "-o", "k.cubin")
    bare = run(*words, cwd=tmp_path)
    cubin = (tmp_path / "k.cubin").read_bytes()
    done = run(*QUIET, *words, cwd=tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, bare.stdout, bare.stderr + SAID)
    assert (tmp_path / "k.cubin").read_bytes() == cubin


def test_only_the_process_that_opened_a_gpu_speaks_and_has_a_page(run, build, tmp_path):
    client = shlex.join([str(build.client()), "ptx=k", "launch=k,4000,256,0"])
    report = tmp_path / "r"
    others = "cp /bin/true a; ls | sort | head -1; ./a; grep -c x a"
    spawn = shlex.join([sys.executable, "-c", "import os; os.system('./a')"])
    words = (*QUIET, "--report", str(report), "bash", "-c", f"{others}; {client}; {spawn}; {others}")
    done = run(*words, cwd=tmp_path, env={"RANK": "0"})
    lines = done.stderr.splitlines()
    assert len(lines) == 2, lines
    assert lines[1].startswith("overlap: raised no stream (0 of 1 launch), ")
    assert len(list(report.glob("last/*.page"))) == 1


def test_a_static_program(run, tmp_path):
    (tmp_path / "hello.c").write_text(HELLO)
    if subprocess.run([*CC, "-static", "-o", "hello", "hello.c"], cwd=tmp_path, check=False).returncode:
        pytest.skip("no static C library here: apt-get install gcc libc6-dev")
    done = run(*QUIET, "sh", "-c", "./hello; exit $?", cwd=tmp_path)
    assert (done.status, done.stdout, done.stderr) == (7, "hello\n", SAID)


def test_of_a_static_launcher_only_that_is_said_which_helps(run, tmp_path):
    """As Docker's command is. What it starts is not among the programs that it is said to hand the library to."""
    (tmp_path / "hello.c").write_text(HELLO)
    if subprocess.run([*CC, "-static", "-o", "docker", "hello.c"], cwd=tmp_path, check=False).returncode:
        pytest.skip("no static C library here: apt-get install gcc libc6-dev")
    done = run(*QUIET, "./docker", "run", "image", cwd=tmp_path)
    (line,) = done.stderr.removeprefix(SAID).splitlines()
    assert line.startswith("overlap: docker starts programs without this environment: write ")


def test_a_setuid_program(run, tmp_path):
    """The loader ignores the preload there, silently, and a program that such a one starts is without it, too."""
    if os.geteuid() != 0:
        pytest.skip("needs root, who may make a program that runs as somebody else")
    folder = Path("/tmp" if os.access("/tmp", os.W_OK) else tmp_path)
    program = folder / f"overlap-setuid-{os.getpid()}"
    shutil.copy("/bin/cat", program)
    try:
        os.chown(program, 65534, 65534)
        program.chmod(0o6755)
        done = run(*QUIET, "sh", "-c", f"{program} /proc/self/maps; echo; grep -c liboverlap.so /proc/self/maps")
    finally:
        program.unlink()
    assert (done.status, done.stderr) == (0, SAID)
    inside, _, behind = done.stdout.rstrip().rpartition("\n")
    assert (str(program) in inside, "liboverlap.so" in inside, int(behind) > 0) == (True, False, True)


def test_a_32_bit_program_runs_after_one_line_of_the_loader(run):
    if platform.machine() != "x86_64":
        pytest.skip("needs x86-64, which runs 32-bit programs")
    try:
        debian.install(["libc6-i386"], ["/lib32/libc.so.6"])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    bare = run("/lib32/libc.so.6")
    done = run(*QUIET, "sh", "-c", "/lib32/libc.so.6; exit $?")
    said = done.stderr.removeprefix(SAID)
    assert (done.status, done.stdout) == (bare.status, bare.stdout) == (0, bare.stdout)
    assert said.count("\n") == 1 and "wrong ELF class" in said
    # Started directly, it gets no library, and overlap-run says so.
    done = run(*QUIET, "/lib32/libc.so.6")
    assert (done.status, done.stdout) == (0, bare.stdout)
    assert done.stderr == f"{SAID}overlap: libc.so.6 is a 32-bit program: the library cannot be loaded into it\n"
