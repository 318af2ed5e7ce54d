"""Programs that become others, and the programs of a usual machine: all are what they are without the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import ONE, Build, Runner

from pyshim.start import plan

Tables = Callable[[str], Mapping[str, str]]
HOW = ("execl", "execlp", "execle", "execv", "execvp", "execvpe", "execve", "fexecve", "execveat")


@pytest.fixture
def execs(build: Build) -> dict[str, Any]:
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    return {"program": build("execs", "execs.c"), "env": {"LD_LIBRARY_PATH": str(stub.parent)}}


@pytest.mark.parametrize("how", HOW)
def test_every_exec_function(how: str, execs: dict[str, Any], bare: Runner, preloaded: Runner) -> None:
    without, done = bare([how], **execs), preloaded([how], ONE, **execs)
    if how == "fexecve" and without.status != 7:
        pytest.skip("needs /proc, or execveat(2)")
    assert "launched: 0" in without.stdout
    assert (done.status, done.stdout, done.stderr) == (7, without.stdout, "")
    assert [process["launches"] for process in done.report["processes"]] == [1, 1]
    assert len({process["pid"] for process in done.report["processes"]}) == 1


@pytest.mark.slow
def test_ten_thousand_execs_in_a_row(execs: dict[str, Any], preloaded: Runner) -> None:
    done = preloaded(["chain", "10000"], ONE, timeout=300, **execs)
    assert (done.status, done.stderr) == (0, "")
    first, last = (
        [int(number) for number in re.findall(r"\d+", line.partition(":")[2])] for line in done.stdout.splitlines()
    )
    assert first[0] == last[0], "descriptors"
    assert abs(first[1] - last[1]) <= 2, "mappings, which the kernel joins where they happen to lie side by side"
    # Of ten thousand, those two that have used a GPU; of one process id.
    assert [process["launches"] for process in done.report["processes"]] == [1, 1]
    assert len({process["pid"] for process in done.report["processes"]}) == 1


# What a usual machine runs, in a folder of its own. Nothing of what is printed depends on time or on process ids.
PROGRAMS = {
    "dash": """dash -c 'echo "$0" $(echo sub | tr a-z A-Z); { echo out; echo err >&2; } | cat; exit 3'""",
    "bash": """bash -l -c 'f() { (echo $((6 * 7))); }; f | f; f & wait; trap "echo x" 0; exit 4'""",
    "env": "env -u HOME PATH=/usr/bin:/bin printenv PATH",
    "perl": """perl -e 'print `echo child`; $p = fork() // die; exit 5 unless $p; wait; print $? >> 8, "x"'""",
    "python3": """python3 -c 'import subprocess as s, os; print(s.run(["true"]), os.popen("echo x").read())'""",
    "multiprocessing": """python3 -c 'from multiprocessing import Pool as P
with P(3) as p: print(p.map(abs, range(-5, 5)))'""",
    "make": """printf 'all: a b\\na b:\\n\\t@echo made $@; $(MAKE) -s -f m c$@\\nca cb:\\n\\t@echo $@\\n' >m
make -s -f m MAKEFLAGS=""",
    "gcc": "echo 'int main(void) { return 9; }' >a.c; ${CC:-cc} -pipe -O1 -o a a.c && sha256sum a; ./a",
    "git": """git init -q -b main r && cd r
git -c user.name=a -c user.email=b commit -q --allow-empty -m m && git log --format=%T""",
    "tar": """mkdir d; echo 1 >d/1; tar -cz --mtime=@0 --owner=0 --group=0 d | tar -tzv | tr -s ' ' | cut -d' ' -f1-3
gzip -l nothing""",
    "gdb": "gdb -nx -q -batch -iex 'set debuginfod enabled off' -ex 'print 6 * 7' -ex 'shell echo x'",
    "busybox": "busybox sh -c 'echo $((1 + 1)); busybox ls /nonexistent; exit 6'",
    "script": "printf '#!/bin/sh\\necho script \"$1\"; exit 2\\n' >s; chmod +x s; ./s one",
    "script of env": "printf '#!/usr/bin/env -S perl -w\\nprint \"$ARGV[0]\\\\n\"; exit 2\\n' >s; chmod +x s; ./s two",
    "sudo": "sudo -n -u nobody id -un; sudo -n sh -c 'exit 3'",
    "su": "su -s /bin/sh -c 'id -un; exit 3' nobody",
    "setpriv": "setpriv --reuid=65534 --clear-groups id -u",
    "nohup": "nohup sh -c 'echo x; exit 3' </dev/null",
    "timeout": "timeout 0.2 sleep 9; echo $?; timeout -s KILL 9 false",
    "strace": "strace -f -o /dev/null -e trace=none sh -c 'echo x; exit 3'",
    "xargs": "seq 200 | xargs -n 1 -P 4 true && seq 9 | xargs -n 2 echo",
    "find": "mkdir f; touch f/1 f/2; find f -type f -exec basename {} \\; | sort",
    "sort": "seq 200000 -1 1 | sort -n --parallel=2 -S 1M | sha256sum",
    "awk": 'awk \'BEGIN { "echo x" | getline y; print y; system("exit 3"); print "z" | "cat" }\'',
    "setsid": "setsid -w sh -c 'exit 3'; echo $?; nice -n 1 setsid -w echo x",
    "coredump": "sh -c 'ulimit -c 0; kill -SEGV $$'; echo $?",
}
UNSANITIZED = pytest.mark.plain("does not run with a sanitizer in LD_PRELOAD", sanitized=True)
NEEDS_ROOT = ("sudo", "su", "setpriv")


def here(script: str, env: Mapping[str, str], folder: Path) -> tuple[int, bytes, bytes]:
    folder.mkdir()
    done = subprocess.run(["sh", "-c", script], env=env, cwd=folder, capture_output=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr.replace(bytes(folder), b"")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=UNSANITIZED if name in ("gcc", "gdb") else ()) for name in PROGRAMS]
)
def test_programs_of_a_usual_machine(
    name: str, table_of: Tables, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    command = {"gcc": os.environ.get("CC", "cc").split()[0]}.get(name, PROGRAMS[name].split()[0])
    if not shutil.which(command) and name not in (
        "make",
        "script",
        "script of env",
        "xargs",
        "find",
        "coredump",
        "tar",
    ):
        pytest.skip(f"{name} is not installed")
    if name in NEEDS_ROOT and os.geteuid() != 0:
        pytest.skip("only root may become another user without a password")
    pages = tmp_path / "report"
    pages.mkdir()
    settings = {key: value for key, value in table_of(ONE).items() if key.startswith("OVERLAP_")}
    bare = {**clean_environment, "LC_ALL": "C", "HOME": str(tmp_path), "PYTHONPATH": ""}
    armed = {**bare, **settings, "OVERLAP_REPORT": str(pages), "RANK": "0", "LD_PRELOAD": plan.LIBRARY}
    without, done = here(PROGRAMS[name], bare, tmp_path / "bare"), here(PROGRAMS[name], armed, tmp_path / "armed")
    assert without[1] or without[2] or without[0], "nothing was tested"
    assert done == without
    assert list(pages.iterdir()) == []  # no GPU was used
