"""A program of another C library that comes under the preload, as in a container of Alpine Linux, runs."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from interposing import PROGRAMS, Runner, same


@pytest.fixture(scope="session")
def musl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program: by musl-gcc where there is one, else with files of Debian's packages, which are not installed."""
    folder = tmp_path_factory.mktemp("musl")
    program = folder / "program"
    compiler = shutil.which("musl-gcc")
    if compiler:
        subprocess.run([compiler, "-O1", "-D_GNU_SOURCE", str(PROGRAMS / "musl.c"), "-o", str(program)], check=True)
        return program
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        pytest.skip("needs musl-gcc, which is no Debian package here: install musl with its headers")
    try:
        download = ["timeout", "60", "apt-get", "download", "musl", "musl-dev"]
        fetched = subprocess.run(download, cwd=folder, capture_output=True, check=False, text=True)
    except OSError as error:
        pytest.skip(f"needs musl-gcc: apt-get install musl-tools ({error})")
    packages = list(folder.glob("*.deb"))
    if fetched.returncode or len(packages) < 2:
        pytest.skip(f"needs musl-gcc: apt-get install musl-tools ({fetched.stderr.strip()[-200:]})")
    for package in packages:
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
    triple = f"{platform.machine()}-linux-musl"
    parts = next(folder.rglob("crt1.o")).parent
    loader = next(path for path in folder.rglob("libc.so") if not path.is_symlink())
    flags = [
        "-nostdinc",
        "-isystem",
        str(folder / "usr/include" / triple),
        "-nostdlib",
        "-no-pie",
        "-fno-stack-protector",
    ]
    link = [f"-Wl,--dynamic-linker={loader}", str(parts / "crt1.o"), str(parts / "crti.o")]
    compiler_call = shlex.split(os.environ.get("CC", "cc"))
    command = [
        *compiler_call,
        "-O1",
        "-D_GNU_SOURCE",
        *flags,
        *link,
        str(PROGRAMS / "musl.c"),
        str(loader),
        str(parts / "crtn.o"),
    ]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def test_a_musl_program_runs_under_the_preload(musl: Path, bare: Runner, preloaded: Runner) -> None:
    env = {"LD_LIBRARY_PATH": ""}  # no driver is made for musl
    without = bare(program=musl, env=env)
    assert (without.status, without.stdout.splitlines()[0]) == (7, "strlen 1"), without.stderr
    same(preloaded(program=musl, env=env), without)


def test_a_musl_program_runs_when_the_library_is_off_or_broken(musl: Path, bare: Runner, preloaded: Runner) -> None:
    settings: list[Mapping[str, str]] = [{"OVERLAP_RUN": "off"}, {"OVERLAP_TABLE": "broken"}, {"RANK": "0"}]
    without = bare(program=musl, env={"LD_LIBRARY_PATH": ""})
    for env in settings:
        same(preloaded(program=musl, env={"LD_LIBRARY_PATH": "", **env}), without)
