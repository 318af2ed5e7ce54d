"""What no build makes any more is not left in pyshim/_lib, where a test would still find it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pyshim import _native
from tools.checks import shim_build

ROOT = Path(__file__).resolve().parents[2]
STUB = '#!/bin/sh\n[ "$1" != shim/build.py ] || [ "$2" ] || { mkdir -p pyshim/_lib && echo built >>builds; }\n'


@pytest.fixture
def build() -> ModuleType:
    return shim_build.load()


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def built(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """built(output, only) -> what is in a folder that held old files, after a build whose files are empty."""

    def make(artifact: str, output: Path, _flags: object = ()) -> Path:
        target: Path = output / build.FILES[artifact]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        return target

    monkeypatch.setattr(build, "build_one", make)
    monkeypatch.setattr(build, "keep_policies", lambda output: [])
    monkeypatch.setattr(build, "carry", lambda folder: [])

    def run(output: Path, only: str | None = None) -> set[str]:
        for name in ("demo/overlap-demo", "old/library.so", ".built", ".build-1/liboverlap.so"):
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).touch()
        build.build(output, only)
        return files(output)

    return run


def test_a_build_of_everything_removes_what_it_did_not_make(
    build: ModuleType, built: Callable[..., set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "_lib"
    monkeypatch.setattr(build, "OUTPUT", output)
    left = built(output)
    assert {"liboverlap.so", "abi.py", "demo/demo-stencil", "simgpu/libcuda.so.1"} < left
    assert {name for name in left if name.startswith(".")} == {".built", ".build-1/liboverlap.so"}
    assert not {"demo/overlap-demo", "old/library.so"} & left and not (output / "old").exists()


def test_a_build_of_one_artifact_or_into_a_folder_of_the_user_removes_nothing(
    build: ModuleType, built: Callable[..., set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"demo/overlap-demo", "old/library.so"} < built(tmp_path / "mine")
    monkeypatch.setattr(build, "OUTPUT", tmp_path / "_lib")
    assert {"demo/overlap-demo", "old/library.so"} < built(tmp_path / "_lib", "simgpu")


def test_the_folder_of_this_tree_holds_only_what_is_built(build: ModuleType) -> None:
    carried = {"stencil.ptx", "stencil_amd.txt", "costs.yaml", *build.TRACES}
    known = {*build.FILES.values(), "abi.py", "reason.def", "rank.def", "shipped.json"}
    known |= {f"demo/{name}" for name in carried}
    found = {name for name in files(_native.DIRECTORY) if not any(p.startswith((".", "__")) for p in Path(name).parts)}
    assert found - known == set(), "make setup builds anew, and removes these"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources that the Makefile names, some of them, and a Python that only counts builds."""
    for name in ("pyproject.toml", "tools/release/hatch_build.py", "tools/release/overlap-run.py", "tools/demo/demo.c",
                 "pyshim/__init__.py", "shim/build.py", "shim/core/a.c",
                 "tools/simgpu/hip/names.py"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    (commands / "python").write_text(STUB)
    (commands / "python").chmod(0o755)
    (tmp_path / ".venv" / ".made").write_text(f"{tmp_path}\n")
    (tmp_path / ".venv" / ".installed").touch()
    return tmp_path


def test_make_builds_when_a_source_has_gone_and_not_when_python_has_left_its_cache(tree: Path) -> None:
    def builds() -> int:
        subprocess.run(["make", "-s", "pyshim/_lib/.built"], cwd=tree, check=True, env={**os.environ, "MAKEFLAGS": ""})
        return (tree / "builds").read_text().count("built")

    assert [builds(), builds()] == [1, 1]
    for folder in ("tools/simgpu/hip", "tools/demo", "shim"):
        (tree / folder / "__pycache__").mkdir()
    assert builds() == 1
    (tree / "tools/demo/demo.c").unlink()
    assert [builds(), builds()] == [2, 2]
    (tree / "shim/core/a.c").rename(tree / "shim/core/b.c")
    assert builds() == 3
