"""The wheel of this processor, built once, fast and unoptimised, and wheels that are changed from it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

Change = Callable[..., Path]


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    for name in ("hatchling", "auditwheel", "readme_renderer", "ziglang"):
        if not importlib.util.find_spec(name):
            pytest.skip(f"no {name}: make setup")
    return importlib.import_module("tools.release.wheels")


@pytest.fixture(scope="session")
def wheel(tools: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built where the sources are, which the compiler's cache knows; the tree stays as it is."""
    environment = {**tools.surroundings(), "CFLAGS": "-O0"}
    made: Path = tools.hatchling(ROOT, "wheel", tmp_path_factory.mktemp("wheel"), environment)
    return made


@pytest.fixture
def changed(wheel: Path, tmp_path: Path) -> Change:
    """The wheel with files exchanged, added or (None) left out; RECORD stays as it was."""

    def change(files: dict[str, bytes | None], name: str = "", mode: int = 0o644) -> Path:
        path = tmp_path / (name or wheel.name)
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(path, "w") as new:
            for info in old.infolist():
                if info.filename not in files:
                    new.writestr(info, old.read(info))
            for member, data in files.items():
                if data is not None:
                    info = zipfile.ZipInfo(member, old.infolist()[0].date_time)
                    info.external_attr = mode << 16
                    new.writestr(info, data)
        return path

    return change


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., bytes]:
    """A stripped shared object."""

    def compile_it(source: str, *flags: str, compiler: str = os.environ.get("CC", "cc")) -> bytes:
        path = tmp_path / "object.so"
        command = [*shlex.split(compiler), "-shared", "-fPIC", "-s", "-w", "-x", "c", "-", *flags, "-o", str(path)]
        subprocess.run(command, input=source, text=True, check=True)
        return path.read_bytes()

    return compile_it
