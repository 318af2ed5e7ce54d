"""32-bit programs under a shell that has the preload: they get an empty library of their own, and nobody says anything.

Real ones of Debian, with the loaders of their own releases, which are named because the machine need not have any."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import debian
import musl as another_libc
import pytest
from interposing import Build, Runner, same

from pyshim import preload
from pyshim.launch import plan

pytestmark = pytest.mark.plain("no sanitizer is there for 32 bits", sanitized=True)

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SAID = "overlap: simulated NVIDIA H100 80GB HBM3, rule hold\n"
MAPPED = "while read -r line; do case $line in *liboverlap.so) echo ${line##*/_lib/};; esac; done </proc/self/maps"
LAUNCHES = "ptx=k launch=k,4000,256,0 launch=k,4000,256,0"
RELEASES = {
    "i386, glibc 2.31 (Debian 11)": "bullseye",
    "i386, glibc 2.36 (Debian 12)": "bookworm",
    "i386, glibc 2.41 (Debian 13)": "trixie",
}

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64, which runs programs of i386")


@pytest.fixture(scope="module")
def stub32() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "shim" / "stub32.py"
    spec = importlib.util.spec_from_file_location("stub32", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fetched(suite: str, *packages: str, architecture: str) -> Path:
    try:
        return debian.fetch(suite, packages, architecture)
    except debian.Missing as reason:
        pytest.skip(str(reason))


def shell(root: Path) -> list[str]:
    """Debian's dash of another architecture or release, by the loader and the C library beside it."""
    libc = next(path for path in root.rglob("libc.so.6") if "hwcap" not in str(path))
    loader = next(path for path in libc.parent.iterdir() if path.name in ("ld-linux.so.2", "ld-linux-armhf.so.3"))
    dash = next(path for path in root.rglob("dash") if path.parent.name == "bin")
    return [str(loader), "--library-path", str(libc.parent), str(dash)]


def entry() -> str:
    found = preload.entry(plan.LIBRARY)
    assert found != plan.LIBRARY
    return found


@needs_x86
@pytest.mark.parametrize("environment", RELEASES)
def test_a_32_bit_child_is_silent_and_its_64_bit_sibling_is_counted(
    environment: str, overlap_run: Run, build: Build, overlap: Run, tmp_path: Path
) -> None:
    narrow = shlex.join(shell(fetched(RELEASES[environment], "libc6", "dash", architecture="i386")))
    inside = shlex.quote(f"echo narrow; {MAPPED}; exit 7")
    script = f"{narrow} -c {inside}; status=$?; {build.client()} {LAUNCHES} >/dev/null; {MAPPED}; exit $status"
    report = tmp_path / "report"
    done = overlap_run("--simulate", "h100", "--policy", "observe", "--report", str(report), "sh", "-c", script)
    first, empty, *ours = done.stdout.splitlines()
    assert (done.returncode, first, empty) == (7, "narrow", "i686/liboverlap.so"), done.stderr
    assert ours and set(ours) <= {"x86_64/liboverlap.so", "haswell/liboverlap.so", "xeon_phi/liboverlap.so"}
    assert done.stderr == SAID  # what was launched is in the report; a child of the program does not speak
    assert '"launches": 2' in overlap("report", str(report), "--json").stdout


@needs_x86
def test_without_the_folders_the_loader_speaks_as_it_did(tmp_path: Path, clean_environment: Mapping[str, str]) -> None:
    """That the tests above would see it."""
    narrow = shell(fetched("bookworm", "libc6", "dash", architecture="i386"))
    copy = tmp_path / preload.NAME
    shutil.copy(plan.LIBRARY, copy)
    for library, lines in ((preload.entry(str(copy)), 1), (entry(), 0)):
        env = {**clean_environment, "LD_PRELOAD": library}
        done = subprocess.run([*narrow, "-c", "exit 7"], env=env, capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if "wrong ELF class: ELFCLASS64" in line]
        assert (done.returncode, len(said), done.stderr.count("\n")) == (7, lines, lines)


@needs_x86
@pytest.mark.parametrize("environment", ["i386, musl 1.2"])
def test_a_32_bit_program_of_musl(
    environment: str, tmp_path: Path, stub32: ModuleType, clean_environment: Mapping[str, str]
) -> None:
    """Its loader takes $PLATFORM for a folder, finds none, and says nothing; the empty library itself, named outright,
    it loads."""
    root = fetched(debian.codename(), "musl", "musl-dev", architecture="i386")
    program = tmp_path / "program"
    source = Path(__file__).resolve().parent.parent / "programs" / "hello.c"
    parts, headers = root / "usr/lib/i386-linux-musl", root / "usr/include/i386-linux-musl"
    libc = root / "lib/i386-linux-musl/libc.so"
    flags = f"-m32 -nostdinc -isystem {headers} -nostdlib -no-pie -fno-stack-protector -Wl,--dynamic-linker={libc}"
    files = [parts / "crt1.o", parts / "crti.o", source, libc, parts / "crtn.o"]
    command = [*shlex.split(os.environ.get("CC", "cc")), *flags.split(), *map(str, files), "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the compiler makes no 32-bit programs; gcc does: apt-get install gcc")
    empty = tmp_path / preload.NAME
    empty.write_bytes(stub32.library(stub32.PLATFORMS["x86_64"]))
    for library in ("", entry(), str(empty)):
        command = ["sh", "-c", f'LD_PRELOAD="$1" exec {program}', "sh", library]
        done = subprocess.run(command, env=clean_environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", ""), library


@pytest.mark.parametrize("environment", ["musl 1.2"])
def test_a_program_of_musl(environment: str, tmp_path: Path, overlap_run: Run) -> None:
    try:
        program = another_libc.build(
            Path(__file__).resolve().parent.parent / "programs" / "hello.c", tmp_path / "program"
        )
    except debian.Missing as missing:
        pytest.skip(f"needs musl-gcc (apt-get install musl-tools): {missing}")
    done = overlap_run("--simulate", "h100", "--policy", "observe", "sh", "-c", f"{program}; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", SAID)


@pytest.mark.parametrize("environment", ["armhf, glibc 2.36 (qemu)"])
def test_the_empty_library_of_an_arm_machine(
    environment: str, tmp_path: Path, stub32: ModuleType, clean_environment: Mapping[str, str]
) -> None:
    qemu = fetched("bookworm", "qemu-user-static", architecture="amd64") / "usr/bin/qemu-arm-static"
    root = fetched("bookworm", "libc6", "dash", architecture="armhf")
    platforms = stub32.PLATFORMS["aarch64"]
    for name in platforms.narrow:
        (tmp_path / "_lib" / name).mkdir(parents=True)
        (tmp_path / "_lib" / name / preload.NAME).write_bytes(stub32.library(platforms))
    library = f"{tmp_path}/_lib/$PLATFORM/{preload.NAME}"
    command = [str(qemu), "-L", str(root), "-E", f"LD_PRELOAD={library}", *shell(root)]
    done = subprocess.run([*command, "-c", f"{MAPPED}; exit 7"], env=clean_environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (7, "")
    assert set(done.stdout.splitlines()) == {f"v8l/{preload.NAME}"}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_empty_library_is_one(machine: str, stub32: ModuleType, tmp_path: Path) -> None:
    if not shutil.which("readelf"):
        pytest.skip("needs readelf: apt-get install binutils")
    path = tmp_path / preload.NAME
    path.write_bytes(stub32.library(stub32.PLATFORMS[machine]))
    done = subprocess.run(["readelf", "-aW", str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "Class:                             ELF32" in done.stdout
    assert "(NEEDED)" not in done.stdout and "(INIT" not in done.stdout
    (stack,) = (line.split() for line in done.stdout.splitlines() if "GNU_STACK" in line)
    assert stack[6] == "RW"
    assert "contains 1 entry" in done.stdout  # the nameless symbol that every table begins with


def test_a_shell_that_loses_the_platform_loads_the_library(
    overlap_run: Run, overlap: Run, build: Build, tmp_path: Path
) -> None:
    """As launchers do that write `export NAME="VALUE"`."""
    lost = 'unset PLATFORM; eval "export LD_PRELOAD=\\"$LD_PRELOAD\\""'
    script = f'{lost}; {build.client()} {LAUNCHES}; echo "$LD_PRELOAD"'
    report = tmp_path / "report"
    done = overlap_run("--simulate", "h100", "--policy", "observe", "--report", str(report), "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, SAID)
    assert done.stdout.splitlines()[-1] == f"{Path(plan.LIBRARY).parent}//{preload.NAME}"
    assert '"launches": 2' in overlap("report", str(report), "--json").stdout


@pytest.mark.parametrize("copied", [False, True], ids=["one file", "copies, as in a wheel"])
def test_both_names_in_one_process_count_a_launch_once(
    copied: bool, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    both = f"{entry()}:{{}}"
    if copied:
        shutil.copytree(Path(plan.LIBRARY).parent, tmp_path / "_lib", ignore=shutil.ignore_patterns("simgpu", "demo"))
        both = f"{tmp_path}/_lib/$PLATFORM/{preload.NAME}:{{}}"
    done = preloaded(LAUNCHES, preload=both)
    same(done, bare(LAUNCHES))
    counted = [process["launches"] for process in done.report["processes"]]
    assert max(counted) == 2 and (copied or counted == [2])


@pytest.mark.parametrize("copied", [False, True], ids=["one file", "copies, as in a wheel"])
def test_this_package_opens_the_library_that_is_preloaded(
    copied: bool, tmp_path: Path, clean_environment: Mapping[str, str]
) -> None:
    root = Path(plan.LIBRARY).parents[1]
    if copied:
        shutil.copytree(root, tmp_path / "pyshim", ignore=shutil.ignore_patterns("simgpu", "demo"))
        root = tmp_path / "pyshim"
    library = preload.entry(str(root / "_lib" / preload.NAME))
    look = "from pyshim import _native; _native.library(); print(open('/proc/self/maps').read())"
    env = {**clean_environment, "PYTHONPATH": str(root.parent), "LD_PRELOAD": library}
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    mapped = {line.split()[-1] for line in done.stdout.splitlines() if line.endswith(preload.NAME)}
    (path,) = mapped
    assert Path(path).parents[1] == root / "_lib"


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt-get install valgrind libc6-dbg")
@needs_x86
@pytest.mark.parametrize("environment", ["valgrind, whose processor is a Haswell"])
def test_a_processor_that_glibc_has_a_name_of_its_own_for(
    environment: str, clean_environment: Mapping[str, str]
) -> None:
    env = {**clean_environment, "LD_PRELOAD": entry()}
    command = ["valgrind", "-q", shutil.which("grep") or "grep", "-o", "[^/]*/liboverlap.so", "/proc/self/maps"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if "libc6-dbg" in done.stderr:
        pytest.skip("valgrind needs the C library's symbols: apt-get install libc6-dbg")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.splitlines()) <= {"haswell/liboverlap.so", "x86_64/liboverlap.so"} and done.stdout


def test_every_platform_of_this_machine_leads_somewhere(stub32: ModuleType) -> None:
    folder = Path(plan.LIBRARY).parent
    platforms = stub32.PLATFORMS[os.uname().machine]
    for name in platforms.own:
        assert (folder / name / preload.NAME).samefile(plan.LIBRARY)
    for name in platforms.narrow:
        assert (folder / name / preload.NAME).read_bytes() == stub32.library(platforms)
