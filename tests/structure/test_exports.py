"""What the library shows and asks for: as built here, and cross-compiled for both processors and the oldest glibc."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zig

from pyshim import _native
from tools.checks import check_exports

ROOT = Path(__file__).resolve().parents[2]


def findings(path: Path) -> list[str]:
    return list(check_exports.check(path))


def test_the_library_built_here() -> None:
    assert findings(_native.SHIM) == []


def test_the_library_does_not_define_dlopen() -> None:
    """docs/how-to/profile.md, Nsight Compute, has the reason."""
    elf = check_exports.read(_native.SHIM.read_bytes())
    assert "dlopen" not in {symbol.name for symbol in elf.symbols}
    assert "dlopen is exported, and nobody promised it" in check_exports.check_exported(
        check_exports.Elf(machine=elf.machine, symbols=[check_exports.Symbol("dlopen", True, False, "", True)])
    )


@pytest.fixture(scope="module", params=["x86_64", "aarch64"])
def cross(request: pytest.FixtureRequest) -> Path:
    if not importlib.util.find_spec("ziglang"):
        pytest.skip("no ziglang: make lint")
    return zig.library(request.param)


def test_for_the_oldest_glibc_on_both_processors(cross: Path) -> None:
    assert findings(cross) == []


def elf_of(source: str, folder: Path, *flags: str) -> Path:
    path = folder / "library.so"
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return path


@pytest.mark.parametrize(
    ("source", "flags", "says"),
    [
        ("int stranger(void) { return 1; }", (), "stranger is exported, and nobody promised it"),
        ("", (), "dlsym@GLIBC_2.2.5 is not exported"),
        ("double cos(double); double f(double x) { return cos(x); }", ("-lm", "-Wl,--no-as-needed"), "needs "),
        ("extern char **environ; char **f(void) { return environ; }", (), "environ: a strong reference"),
        ("int getrandom(void); int f(void) { return getrandom(); }", (), "newer than glibc 2.17"),
    ],
)
def test_the_check_notices(source: str, flags: tuple[str, ...], says: str, tmp_path: Path) -> None:
    assert any(says in line for line in findings(elf_of(source, tmp_path, *flags))), findings(tmp_path / "library.so")


def test_as_a_script(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = python("-m", "tools.checks.check_exports", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
