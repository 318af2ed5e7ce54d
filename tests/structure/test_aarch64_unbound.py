"""dlsym on aarch64 before anything is bound, run by qemu-user. Skipped without qemu-user and an aarch64 libc."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyshim.policy.layout import encode
from pyshim.policy.reader import read_bytes
from pyshim.policy.table import compile_table

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
QEMU = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
SYSROOT = Path("/usr/aarch64-linux-gnu")

pytestmark = pytest.mark.skipif(
    not (QEMU and SYSROOT.exists() and importlib.util.find_spec("ziglang")),
    reason="needs ziglang, qemu-user, an aarch64 libc: make setup; apt-get install qemu-user-static libc6-arm64-cross",
)


def test_a_resolver_that_calls_dlsym_gets_the_real_answer(tmp_path: Path) -> None:
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.{}", "-fno-sanitize=undefined"]
    build = {"CC": shlex.join(zig).format("2.17"), "OVERLAP_MACHINE": "aarch64"}
    command = [sys.executable, "shim/build.py", "--only", "shim", "--output", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **build}, check=True, capture_output=True)

    def made(name: str, source: str, *flags: str) -> str:
        out = tmp_path / name
        out.parent.mkdir(exist_ok=True)
        compiler = shlex.split(shlex.join(zig).format("2.34"))
        command = [
            *compiler,
            "-w",
            "-D_GNU_SOURCE",
            *flags,
            str(PROGRAMS / source),
            "-o",
            str(out),
            "-ldl",
            "-lpthread",
        ]
        subprocess.run(command, check=True)
        return str(out)

    # lld binds functions of the procedure linkage table after resolvers have run.
    ifunc = made("libifunc.so", "ifunc.c", "-shared", "-fPIC", "-fno-plt", '-DNODE="GLIBC_2.17"', '-DDRIVER="strtol"')
    chosen = [made("ifunc", "ifunc_main.c", "-Wl,-rpath,$ORIGIN", ifunc)]
    policy = read_bytes(b"policy: 1\nname: a\n", "a").policy
    assert policy
    preload = {"LD_PRELOAD": str(tmp_path / "liboverlap.so")}
    armed = {**preload, "OVERLAP_TABLE": encode(compile_table([policy]))}

    def run(command: list[str], variables: dict[str, str]) -> tuple[int, str, str]:
        given = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        words = [str(QEMU), "-L", str(SYSROOT), *given, *command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
        return done.returncode, done.stdout, done.stderr

    without = run(chosen, {})
    assert without[:2] == (0, "chosen 42 42 42 42\n"), without
    assert run(chosen, preload) == run(chosen, armed) == without
