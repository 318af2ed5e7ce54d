"""Machines for the doctor: folders as roots, programs and libraries that the compiler makes here, stub drivers."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from doctoring import Compile, Lines, Look

from pyshim.doctor import checks
from pyshim.doctor.machine import Machine

HERE = Path(__file__).parent


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Run a check: look("variables", LD_AUDIT="1") returns (state, sentence, hint) of its lines.

    files: made below the root; access: whether devices are open to this user; machine: fields of Machine. ROOT in
    values becomes the root."""

    def looked(
        check: str,
        files: tuple[str, ...] = (),
        access: bool = True,
        machine: Any = None,
        **environment: str,
    ) -> Lines:
        for file in files:
            path = tmp_path / file.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        environment = {name: value.replace("ROOT", str(tmp_path)) for name, value in environment.items()}
        fields = {"root": str(tmp_path), "access": lambda path, mode: access, **(machine or {})}
        made = Machine(environment, **fields)
        found = {one.name: one.look for one in checks.CHECKS}[check]
        return [tuple(line) for line in found(made)]

    return looked


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile once: compiled("name", "int main(void) { return 0; }", flags...) returns the file."""
    known: dict[tuple[str, ...], Path] = {}

    def compile_(name: str, source: str, *flags: str) -> Path:
        key = (name, source, *flags)
        if key not in known:
            folder = tmp_path_factory.mktemp("compiled")
            text = folder / "source.c"
            text.write_text(source, encoding="utf-8")
            command = [*_compiler(), "-O1", str(text), *flags, "-o", str(folder / name)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{shlex.join(_compiler())} cannot make this: {done.stderr.strip()[-200:]}")
            known[key] = folder / name
        return known[key]

    return compile_


@pytest.fixture(scope="session")
def stub(compiled: Compile) -> Callable[[str], str]:
    """Return the folder of a libcuda.so.1, or of another library compiled from HERE/NAME.c."""

    def folder(name: str = "libcuda.so.1", source: str = "stub_cuda.c") -> str:
        text = (HERE / source).read_text(encoding="utf-8")
        return str(compiled(name, text, "-shared", "-fPIC").parent)

    return folder
