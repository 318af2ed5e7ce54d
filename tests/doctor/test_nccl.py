"""NCCL and RCCL: which files, and which version, asked of the library itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest
from doctoring import Compile, Look

Nccl = Callable[..., Path]


@pytest.fixture
def nccl(compiled: Compile, tmp_path: Path) -> Nccl:
    """A library that answers such a version, at a place below the root."""

    def made(place: str, version: int) -> Path:
        source = f"int ncclGetVersion(int *v) {{ *v = {version}; return 0; }}"
        flags = ("-shared", "-fPIC", f"-Wl,-soname,{os.path.basename(place)}")
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compiled(path.name, source, *flags).read_bytes())
        return path

    return made


def test_none_is_told(look: Look) -> None:
    assert look("nccl") == [("ok", "no NCCL or RCCL is found here; a program may bring its own", "")]


@pytest.mark.parametrize(
    ("place", "environment"),
    [
        ("mine/libnccl.so.2", {"LD_LIBRARY_PATH": "ROOT/mine"}),
        ("mine/libnccl.so.2", {"LD_PRELOAD": "ROOT/mine/libnccl.so.2"}),
        ("opt/rocm/lib/librccl.so.1", {}),
    ],
)
def test_places(look: Look, nccl: Nccl, place: str, environment: dict[str, str]) -> None:
    path = nccl(place, 22809)
    name = "RCCL" if "rccl" in place else "NCCL"
    assert look("nccl", **environment) == [("ok", f"{name} 2.28.9 ({path})", "")]


def test_that_of_the_program_comes_first(look: Look, nccl: Nccl, compiled: Compile) -> None:
    own, other = nccl("own/libnccl.so.2", 22809), nccl("mine/libnccl.so.2", 22105)
    source = "int ncclGetVersion(int *); int main(void) { int v; return ncclGetVersion(&v); }"
    command = [str(compiled("program", source, str(own), "-Wl,--disable-new-dtags", f"-Wl,-rpath,{own.parent}"))]
    ((state, sentence, hint),) = look("nccl", machine={"command": command}, LD_LIBRARY_PATH="ROOT/mine")
    assert (state, sentence) == ("warn", f"several versions: NCCL 2.28.9 ({own}); NCCL 2.21.5 ({other})")
    assert "all ranks must load the same one" in hint
    assert look("nccl", machine={"command": command}) == [("ok", f"NCCL 2.28.9 ({own})", "")]


def test_one_that_does_not_answer(look: Look, compiled: Compile, tmp_path: Path) -> None:
    made = compiled("libnccl.so.2", "int ncclGetVersion(int *v) { for (;;) *v = 1; }", "-shared", "-fPIC")
    lines = look("nccl", LD_LIBRARY_PATH=str(made.parent), machine={"patience": 0.5})
    assert lines == [("ok", f"NCCL of an unknown version ({made})", "")]
