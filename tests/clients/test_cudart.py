"""NVIDIA's own runtime on the simulated GPU: it cannot run there, and the user is told so once."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

PROGRAM = """
import ctypes, sys
cudart = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int(-1)
print(cudart.cudaGetDeviceCount(ctypes.byref(count)))
print(cudart.cudaGetDeviceCount(ctypes.byref(count)))
"""


@pytest.fixture
def cudart() -> Path:
    found = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in found.submodule_search_locations or ()] if found else []
    libraries = [path for folder in folders for path in folder.glob("cu*/lib/libcudart.so.*")]
    if not libraries:
        pytest.skip("the package nvidia-cuda-runtime is not installed")
    return libraries[0]


def test_a_program_with_cudart_gets_one_line_and_its_own_error(
    overlap_run: Callable[..., CompletedProcess[str]], cudart: Path, tmp_path: Path
) -> None:
    script = tmp_path / "runtime.py"
    script.write_text(PROGRAM)
    done = overlap_run("--simulate", "h100", "--policy", "observe", sys.executable, str(script), str(cudart))
    assert done.returncode == 0
    assert done.stdout.split() == ["500", "500"]  # cudaErrorSymbolNotFound
    lines = [line for line in done.stderr.splitlines() if "cudart" in line]
    assert len(lines) == 1
    assert lines[0].startswith("simgpu: this program uses NVIDIA's CUDA runtime")
    assert "use a real GPU" in lines[0]
