"""Which libraries a program would load: compared with the loader itself, and at each place where it looks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doctoring import Compile
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.doctor import binary, loader
from pyshim.launch import elf

LEAF = "int leaf(void) { return %d; }"
MAIN = "int leaf(void); int main(void) { return leaf(); }"


def names(found: loader.Walk) -> dict[str, str]:
    return {one.name: one.path for one in found.loaded[1:]}


@pytest.mark.parametrize("program", [sys.executable, shutil.which("ssh") or "/bin/ls", "/bin/bash"])
def test_it_is_what_the_loader_says(program: str) -> None:
    path = os.path.realpath(program)
    own = elf.inspect(path).interpreter
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([own, "--list", path], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        pytest.skip("this loader does not list")
    said = dict(re.findall(r"^\t(\S+) => (\S+) \(", done.stdout, re.M))
    mine = names(loader.Loader(environment).walk(path))
    mine.pop(os.path.basename(own), None)
    said.pop(os.path.basename(own), None)
    assert said and {name: os.path.realpath(file) for name, file in said.items()} == {
        name: os.path.realpath(file) for name, file in mine.items()
    }


@pytest.fixture(scope="module")
def leaves(compiled: Compile) -> list[Path]:
    """Three libraries of one name in three folders."""
    return [
        compiled("libleaf.so.1", LEAF % number, "-shared", "-fPIC", "-Wl,-soname,libleaf.so.1") for number in range(3)
    ]


def linked(compiled: Compile, leaf: Path, *flags: str) -> str:
    return str(compiled("main", MAIN, str(leaf), *flags))


def test_the_order_of_places(compiled: Compile, leaves: list[Path]) -> None:
    first, second, third = (str(leaf.parent) for leaf in leaves)
    environment = {"LD_LIBRARY_PATH": f"/nowhere:{second}"}
    old = linked(compiled, leaves[0], f"-Wl,--disable-new-dtags,-rpath,{first}")
    new = linked(compiled, leaves[0], f"-Wl,--enable-new-dtags,-rpath,{first}")
    none = linked(compiled, leaves[0])
    for program, folder, how in ((old, first, "DT_RPATH"), (new, second, "LD_LIBRARY_PATH")):
        found = loader.Loader(environment).walk(program).loaded[1]
        assert (found.path, found.how) == (f"{folder}/libleaf.so.1", how)
        status = subprocess.run([program], env=environment, check=False).returncode
        assert status == [first, second, third].index(folder), "and so says the loader"
    found = loader.Loader({}).walk(new).loaded[1]
    assert (found.path, found.how) == (f"{first}/libleaf.so.1", "DT_RUNPATH")
    missing = loader.Loader({}).walk(none).missing
    assert missing == [("libleaf.so.1", none)]


def test_origin_is_where_the_file_is(compiled: Compile, leaves: list[Path], tmp_path: Path) -> None:
    program = linked(compiled, leaves[0], "-Wl,-rpath,$ORIGIN/../lib:${ORIGIN}/more")
    for folder in ("bin", "lib"):
        (tmp_path / folder).mkdir()
    shutil.copy(program, tmp_path / "bin/main")
    shutil.copy(leaves[1], tmp_path / "lib/libleaf.so.1")
    found = loader.Loader({}).walk(str(tmp_path / "bin/main")).loaded[1]
    assert os.path.realpath(found.path) == str(tmp_path / "lib/libleaf.so.1")


def test_rpath_of_the_program_counts_for_its_libraries_and_runpath_does_not(
    compiled: Compile, leaves: list[Path]
) -> None:
    middle = compiled(
        "libmiddle.so", "int leaf(void); int middle(void) { return leaf(); }", "-shared", "-fPIC", str(leaves[0])
    )
    text = "int middle(void); int main(void) { return middle(); }"
    for tags, there in (("--disable-new-dtags", True), ("--enable-new-dtags", False)):
        folders = f"-rpath,{leaves[2].parent}:{middle.parent}"
        program = compiled("main", text, str(middle), f"-Wl,--allow-shlib-undefined,{tags},{folders}")
        walk = loader.Loader({}).walk(str(program))
        assert ("libleaf.so.1" in names(walk)) is there
        assert subprocess.run([program], env={}, capture_output=True, check=False).returncode == (2 if there else 127)


def test_a_library_with_a_runpath_does_not_look_where_its_loader_would(compiled: Compile, leaves: list[Path]) -> None:
    source = "int leaf(void); int middle(void) { return leaf(); }"
    flags = ("-shared", "-fPIC", str(leaves[0]), "-Wl,--enable-new-dtags,-rpath,/nowhere")
    middle = compiled("libmiddle.so", source, *flags)
    text = "int middle(void); int main(void) { return middle(); }"
    folders = f"-rpath,{leaves[2].parent}:{middle.parent}"
    program = compiled("main", text, str(middle), f"-Wl,--allow-shlib-undefined,--disable-new-dtags,{folders}")
    assert loader.Loader({}).walk(str(program)).missing == [("libleaf.so.1", str(middle))]
    assert subprocess.run([program], env={}, capture_output=True, check=False).returncode == 127


def test_a_runpath_beside_an_rpath_makes_it_count_for_nothing(
    compiled: Compile, leaves: list[Path], tmp_path: Path
) -> None:
    """Both in one file, which no linker makes: the entry DT_DEBUG becomes a DT_RUNPATH of the same text."""
    program = linked(compiled, leaves[0], f"-Wl,--disable-new-dtags,-rpath,{leaves[0].parent}")
    data = Path(program).read_bytes()
    rpath = re.search(rb"\x0f\0{7}(.{8})", data, re.S)
    assert rpath and data.count(b"\x15" + bytes(15)) == 1
    both = tmp_path / "both"
    both.write_bytes(data.replace(b"\x15" + bytes(15), b"\x1d" + bytes(7) + rpath[1]))
    both.chmod(0o755)
    assert elf.inspect(str(both))[-2:] == ("", elf.inspect(program).rpath)
    environment = {"LD_LIBRARY_PATH": str(leaves[1].parent)}
    assert loader.Loader(environment).walk(str(both)).loaded[1].how == "LD_LIBRARY_PATH"
    assert subprocess.run([both], env=environment, check=False).returncode == 1


def test_the_cache_and_the_usual_folders_below_a_root(compiled: Compile, leaves: list[Path], tmp_path: Path) -> None:
    program = linked(compiled, leaves[0])
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.cache").write_bytes(b"glibc-ld.so.cache1.1\0libleaf.so.1\0/opt/here/libleaf.so.1\0")
    assert loader.Loader({}, str(tmp_path)).walk(program).missing[0][0] == "libleaf.so.1", "only named there"
    (tmp_path / "opt/here").mkdir(parents=True)
    shutil.copy(leaves[0], tmp_path / "opt/here")
    assert loader.Loader({}, str(tmp_path)).walk(program).loaded[1].how == "cache"
    (tmp_path / "etc/ld.so.cache").unlink()
    (tmp_path / "usr/lib64").mkdir(parents=True)
    shutil.copy(leaves[0], tmp_path / "usr/lib64")
    assert loader.Loader({}, str(tmp_path)).walk(program).loaded[1].how == "usual"


def test_a_file_of_another_kind_is_passed_over(compiled: Compile, leaves: list[Path], tmp_path: Path) -> None:
    program = linked(compiled, leaves[0])
    data = bytearray(leaves[0].read_bytes())
    data[18] = 183 if data[18] == 62 else 62  # another machine
    (tmp_path / "libleaf.so.1").write_bytes(data)
    environment = {"LD_LIBRARY_PATH": f"{tmp_path}:{leaves[1].parent}"}
    assert loader.Loader(environment).walk(program).loaded[1].path == str(leaves[1])


def test_circles_and_links_to_themselves_end(compiled: Compile, tmp_path: Path) -> None:
    (tmp_path / "libcircle.so.1").symlink_to("libcircle.so.1")
    program = compiled("main", "int main(void) { return 0; }")
    assert loader.Loader({"LD_LIBRARY_PATH": str(tmp_path)}).by_name("libcircle.so.1") is None
    assert loader.Loader({}).walk(str(tmp_path / "libcircle.so.1")).loaded == []
    flags = ("-shared", "-fPIC", "-Wl,-soname,libone.so", "-Wl,--no-as-needed")
    one = compiled("libone.so", "int one;", *flags)
    two = compiled("libtwo.so", "int two;", "-shared", "-fPIC", "-Wl,-soname,libtwo.so", "-Wl,--no-as-needed", str(one))
    again = compiled("libone.so", "int one, again;", *flags, str(two))
    environment = {"LD_LIBRARY_PATH": f"{again.parent}:{two.parent}"}
    assert {"libtwo.so"} <= set(names(loader.Loader(environment).walk(str(again))))
    assert program


def test_what_a_library_defines_and_holds(compiled: Compile) -> None:
    source = 'const char *say(void) { return "cudaErrorCudartUnloading"; } void *dlsym(void *h, const char *n)'
    path = str(compiled("libfake.so", source + " { return h ? (void *)n : 0; }", "-shared", "-fPIC"))
    assert binary.defined(path, ("dlsym", "cuLaunchKernel")) == ["dlsym"]
    assert binary.holds(path, (b"cudaErrorCudartUnloading", b"libcuda.so")) == [b"cudaErrorCudartUnloading"]
    uses = str(compiled("libuses.so", "int dlsym(void); int f(void) { return dlsym(); }", "-shared", "-fPIC"))
    assert binary.defined(uses, ("dlsym",)) == []


def test_pipes_folders_and_missing_files_hold_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/zero"), Path("/proc/self/mem")):
        assert binary.defined(str(path), ("dlsym",)) == []
        assert binary.holds(str(path), (b"x",)) == []
        assert loader.Loader({}).walk(str(path)).loaded == []


@settings(max_examples=150)
@given(
    changes=st.lists(st.tuples(st.integers(0, 1 << 14), st.binary(min_size=1, max_size=8)), max_size=6),
    length=st.integers(0, 1 << 15),
)
def test_broken_files_are_no_reason_to_fail(
    compiled: Compile, tmp_path: Path, changes: list[tuple[int, bytes]], length: int
) -> None:
    data = bytearray(compiled("main", "int main(void) { return 0; }").read_bytes()[: length or None])
    for at, patch in changes:
        data[at : at + len(patch)] = patch
    path = tmp_path / "broken"
    path.write_bytes(data)
    loader.Loader({"LD_LIBRARY_PATH": str(tmp_path)}).walk(str(path))
    binary.defined(str(path), ("dlsym", "main"))
    binary.holds(str(path), (b"libcuda.so",))
    binary.match(str(path), re.compile(rb"NCCL version (\d+)"))
