"""What the tests of the pure core share: GPUs by name, C programs made on the spot, NVIDIA's headers."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def gpus(library: Any) -> dict[str, Any]:
    """Every GPU known by name: key -> struct overlap_gpu."""
    found: dict[str, Any] = {}
    for index in range(100):
        gpu = _native.ffi.new("struct overlap_gpu *")
        if not library.overlap_gpu_known(index, gpu):
            break
        found[_native.ffi.string(_native.ffi.cast("char *", gpu.key)).decode()] = gpu
    return found


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """compile_c(source, ..., flags=[...]) -> program. Sources of shim/ may be named: core/match.c."""
    folder = tmp_path_factory.mktemp("programs")

    def make(*sources: str, flags: tuple[str, ...] = (), name: str = "") -> Path:
        program = folder / (name or Path(sources[0]).stem)
        paths = [
            str(ROOT / "shim" / s if s.startswith(("core/", "gpu/", "sys/")) else Path(__file__).parent / s)
            for s in sources
        ]
        compiler = shlex.split(os.environ.get("CC", "cc"))
        always = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", f"-I{ROOT / 'shim'}"]
        command = [*compiler, *always, *WARNINGS, *flags, *paths, "-o", str(program), "-ldl", "-pthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return program

    return make


@pytest.fixture(scope="session")
def cuda_headers() -> Path:
    """The folder of cuda.h and cuda_occupancy.h: of nvidia-cuda-runtime, or of a toolkit. Skips without either."""
    places = []
    package = importlib.util.find_spec("nvidia")
    for base in package.submodule_search_locations or () if package else ():
        places += [Path(base) / "cu13" / "include", Path(base) / "cuda_runtime" / "include"]
    if os.environ.get("CUDA_PATH"):
        places.append(Path(os.environ["CUDA_PATH"]) / "include")
    places += sorted((path / "include" for path in Path("/usr/local").glob("cuda*")), reverse=True)
    for place in places:
        if (place / "cuda.h").exists() and (place / "cuda_occupancy.h").exists():
            return place
    pytest.skip("no header of NVIDIA here: pip install nvidia-cuda-runtime==13.5.37")


@pytest.fixture(scope="session")
def run_program() -> Callable[..., str]:
    """run_program(path, arguments...) -> its output; a failure shows what it said."""

    def run(program: Path, *arguments: object, **environment: str) -> str:
        command = [str(program), *map(str, arguments)]
        if (
            "tsan" in program.name
            and subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0
        ):
            command = ["setarch", "-R", *command]  # its shadow memory and random addresses do not always agree
        env = {**os.environ, **environment}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=env)
        assert done.returncode == 0, f"{program.name}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def pytest_report_header() -> str:
    return f"library under test: {_native.SHIM} ({sys.platform})"
