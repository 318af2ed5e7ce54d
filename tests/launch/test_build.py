"""shim/build.py: which compiler, which flags, and that a library that could not be loaded is never made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType

import pytest

from pyshim import _native
from tools.checks import shim_build

VISIBLE = '__attribute__((visibility("default")))'  # else a linker may leave it out, and all that it needs
FILE = Path(__file__).resolve().parent.parent.parent / "shim" / "build.py"


@pytest.fixture
def build() -> ModuleType:
    return shim_build.load()


@pytest.fixture
def tree(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo and a simulated GPU of one file each."""
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.delenv("CFLAGS", raising=False)
    for folder in ("demo", "simgpu"):
        (tmp_path / "tools" / folder).mkdir(parents=True)
    (tmp_path / "tools/demo/stencil.c").write_text("int main(void) { return STATUS; }\n")
    (tmp_path / "tools/simgpu/a.c").write_text(
        f"int missing(void);\n{VISIBLE} int cuInit(void) {{ return missing(); }}\n"
    )
    return tmp_path


def compiler(folder: Path, name: str, status: int) -> None:
    (folder / name).write_text(f"#!/bin/sh\nexit {status}\n")
    (folder / name).chmod(0o755)


def test_a_compiler_that_cannot_compile_is_passed_over(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    compiler(tmp_path, "cc", 1)
    compiler(tmp_path, "clang", 0)
    assert build.compiler() == [str(tmp_path / "clang")]
    (tmp_path / "clang").unlink()
    monkeypatch.setattr(build, "machine", lambda: "x86_64")
    assert build.compiler()[:6] == [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.17"]


def test_an_undefined_symbol_fails_the_build_and_leaves_the_old_file(
    build: ModuleType, tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old = tree / "out" / "simgpu" / "libcuda.so.1"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    with pytest.raises(build.BuildError, match="the compiler failed"):
        build.build_one("simgpu", tree / "out")
    assert old.read_text() == "old"
    assert "missing" in capfd.readouterr().err


def test_a_python_that_does_not_know_the_tree_builds(tmp_path: Path) -> None:
    """As pip has one where it makes a wheel; that of `make setup` finds modules of the tree anywhere."""
    venv.create(tmp_path / "bare", symlinks=True)
    command = [tmp_path / "bare/bin/python", FILE, "--only", "demo-stencil", "--output", "made"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made/demo/stencil_amd.txt").stat().st_size and (tmp_path / "made/demo/demo-stencil").exists()


def test_a_bare_make_installs_nothing_and_lists_each_target() -> None:
    root = FILE.parent.parent
    bare, asked = (
        subprocess.run(["make", "-s", *words], cwd=root, capture_output=True, text=True, check=True).stdout
        for words in ((), ("help",))
    )
    phony = next(line for line in (root / "Makefile").read_text().splitlines() if line.startswith(".PHONY: help"))
    listed = re.findall(r"^  make ([a-z-]+) +\S", bare, re.MULTILINE)
    assert bare == asked and sorted([*listed, "loadable"]) == sorted(phony.split()[1:])
    assert max(map(len, bare.splitlines())) <= 80


def test_the_folder_of_this_tree_holds_only_what_is_built(build: ModuleType) -> None:
    """What no build makes any more is not left there, where a test would still find it."""
    carried = {"stencil.ptx", "stencil_amd.txt", "costs.yaml", *build.TRACES}
    known = {*build.FILES.values(), "abi.py", "reason.def", "rank.def", "shipped.json"}
    known |= {f"demo/{name}" for name in carried}
    files = (path.relative_to(_native.DIRECTORY) for path in _native.DIRECTORY.rglob("*") if path.is_file())
    found = {str(path) for path in files if not any(part.startswith((".", "__")) for part in path.parts)}
    assert found - known == set(), "make setup builds anew, and removes these"
