"""Programs into which the loader loads nothing, or which run with other rights than those of who started them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import debian
import musl
import pytest
from interposing import BLOCKS, ONE, PROGRAMS, Build, Done, Runner, same

from pyshim.start import plan

NOBODY = 65534
WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(("environment", "flags"), [("static", ["-static"]), ("static-pie", ["-static-pie", "-fPIE"])])
def test_a_static_program_is_untouched(
    environment: str, flags: list[str], bare: Runner, preloaded: Runner, overlap_run: Run, tmp_path: Path
) -> None:
    program = tmp_path / "hello"  # without the RUNPATH of other programs, with which glibc's static-pie does not start
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if subprocess.run([*compiler, *flags, str(PROGRAMS / "hello.c"), "-o", str(program)], check=False).returncode:
        pytest.skip("the compiler has no static C library; on Debian and Ubuntu: apt-get install gcc libc6-dev")
    without, done = bare(program=program), preloaded(program=program)
    assert without.stdout == "hello\n"
    same(done, without)
    assert done.report["processes"] == []
    launched = overlap_run("--simulate", "h100", str(program))
    assert (launched.returncode, launched.stdout) == (0, "hello\n")
    assert "statically linked" in launched.stderr


@pytest.mark.parametrize("environment", ["musl 1.2"])
def test_a_program_of_musl_says_nothing(environment: str, tmp_path: Path, overlap_run: Run) -> None:
    try:
        program = musl.build(PROGRAMS / "hello.c", tmp_path / "program")
    except debian.Missing as missing:
        pytest.skip(f"needs musl-gcc (apt-get install musl-tools): {missing}")
    done = overlap_run("--simulate", "h100", "--policy", "observe", "sh", "-c", f"{program}; exit 7")
    said = "overlap: simulated NVIDIA H100 80GB HBM3\n"
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", said)


RIGHTS = {
    "setuid, of root": (0, 0o4755, "", NOBODY),
    "setuid, of another user": (NOBODY, 0o4755, "", 0),
    "file capabilities": (0, 0o755, "cap_net_raw+ep", NOBODY),
}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Where every user may read, and write into `report`."""
    if os.geteuid() != 0:
        pytest.skip("only root may make a program of another user: run as root")
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"no program has other rights in {folder.parent}, which is mounted nosuid")
        folder.chmod(0o755)
        (folder / "report").mkdir()
        (folder / "report").chmod(0o777)
        yield folder


def set_capabilities(capabilities: str, program: Path) -> None:
    try:
        debian.install(["libcap2-bin"], ["setcap"])
    except debian.Missing as missing:
        pytest.skip(str(missing))
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(["setcap", capabilities, str(program)], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"setcap: {done.stderr.strip()}")


@pytest.fixture
def privileged(
    build: Build, bare: Runner, preloaded: Runner, open_folder: Path
) -> Callable[..., tuple[Path, list[Done]]]:
    """privileged(rights, linked): a program that launches, without the library, as an ordinary program with it, and
    with other rights."""
    library, driver = (Path(shutil.copy(file, open_folder)) for file in (plan.LIBRARY, plan.SIMULATED_DRIVER))

    def run(rights: str, linked: bool) -> tuple[Path, list[Done]]:
        owner, mode, capabilities, user = RIGHTS[rights]
        flags = [f"-Wl,-rpath,{open_folder}", "-Wl,--no-as-needed"]
        name = f"client-{'linked' if linked else 'plain'}-{open_folder.name}"
        link = [*flags, *([library] if linked else []), driver]
        program = Path(shutil.copy(build(name, "client.c", "-DWAY_LINKED", link=link), open_folder / "client"))
        # What a secure program is told counts for nothing, so the driver may not be told anything either.
        env = {"LD_LIBRARY_PATH": "", "SIMGPU_LAUNCHES": "", "OVERLAP_REPORT": str(open_folder / "report")}
        preload = "" if linked else str(library)
        without = bare(WORDS, program=program, env=env, user=user)
        runs = [without, preloaded(WORDS, ONE, program=program, env=env, user=user, preload=preload)]
        os.chown(program, owner, owner)
        program.chmod(mode)
        if capabilities:
            set_capabilities(capabilities, program)
        before = set((open_folder / "report").iterdir())
        assert len(before) == 1, "with rights of its own it is seen, and has a page"
        done = preloaded(WORDS, ONE, program=program, env=env, user=user, preload=preload)
        assert set((open_folder / "report").iterdir()) == before
        return program, [*runs, done]

    return run


@pytest.mark.parametrize("environment", RIGHTS)
def test_a_program_with_other_rights_is_untouched(
    environment: str, privileged: Callable[..., tuple[Path, list[Done]]]
) -> None:
    _, (without, _, done) = privileged(environment, linked=False)
    same(done, without)


def test_that_a_setuid_program_runs_without_the_library_is_said(
    privileged: Callable[..., tuple[Path, list[Done]]], overlap_run: Run
) -> None:
    program, (without, _, _) = privileged("setuid, of another user", linked=False)
    launched = overlap_run("--simulate", "h100", str(program), *WORDS.split())
    assert (launched.returncode, launched.stdout) == (without.status, without.stdout)
    assert "setuid" in launched.stderr


@pytest.mark.parametrize("environment", RIGHTS)
def test_a_program_with_other_rights_that_has_the_library_ignores_our_variables(
    environment: str, privileged: Callable[..., tuple[Path, list[Done]]]
) -> None:
    """Linked to it: so it is there, whatever the loader thinks of LD_PRELOAD."""
    _, (without, _, done) = privileged(environment, linked=True)
    same(done, without)
