"""The stand-in half of the overlap suite, as a command and as its program, on the simulated H200."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "tools" / "gpu" / "overlap"

Standins = Callable[..., "subprocess.CompletedProcess[str]"]
Program = Callable[..., "tuple[list[Any], list[dict[str, Any]], list[dict[str, Any]]]"]


@pytest.fixture(scope="session")
def standins(python: Standins, built: None, tmp_path_factory: pytest.TempPathFactory) -> Standins:
    """Run `standins.py` from an empty folder."""
    return partial(python, "-m", "tools.gpu.overlap.standins", cwd=tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def program(clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Requests of program.c: answers, launches as they were asked for, kernels as they ran."""
    from tools.gpu.overlap.servers import CUBINS, compiled

    built = compiled(tmp_path_factory.mktemp("program"))

    def ask(folder: Path, *requests: str) -> tuple[list[Any], list[dict[str, Any]], list[dict[str, Any]]]:
        launches, timeline = folder / "launches", folder / "timeline"
        more = {"SIMGPU_LAUNCHES": str(launches), "SIMGPU_TIMELINE": str(timeline), "SIMGPU": "h200:hold"}
        done = subprocess.run(
            [str(built), *map(str, CUBINS)],
            input="".join(f"{request}\n" for request in requests),
            env={**clean_environment, **more, "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert answers.pop(0) == {"ready": True}
        for file in (launches, timeline):
            file.touch()
        launched, ran = ([json.loads(line) for line in file.read_text().splitlines()] for file in (launches, timeline))
        return answers, launched, ran

    return ask
