"""The compiled programs of tools/gpu/whole, on a simulated GPU: turns, parts, digests. Kernels are not executed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from interposing import Build

from pyshim.start import plan
from tools.gpu import build as gpu_build

STYLES = ("halo-stream", "third-stream", "host-polling", "host-copy", "swapped", "one-stream", "equal", "warmed")
TURNS = '["whole", 2, 6]\n["computation", 1, 6]\n["communication", 1, 6]\n"end"\n'


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled with a shared runtime, which the simulated one takes the place of."""
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc of a CUDA toolkit, 13")
    folder = tmp_path_factory.mktemp("whole")

    def compiled(name: str) -> None:
        words = [*gpu_build.command(name, "sm_90", folder / name), "-cudart", "shared"]
        subprocess.run(words, cwd=gpu_build.HERE, check=True, timeout=300)

    with ThreadPoolExecutor() as pool:
        list(pool.map(compiled, ("stencil", "solver", "transpose")))
    return folder


SIMULATED = {"LD_LIBRARY_PATH": str(Path(plan.SIMULATED_DRIVER).parent), "SIMGPU": "h200:hold,2"}


def answers(command: list[str], turns: str, **variables: str) -> list[dict[str, Any]]:
    environment = {**os.environ, **SIMULATED, **variables}
    done = subprocess.run(command, input=turns, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command, done.stderr)
    return [json.loads(line.removeprefix("answer ")) for line in done.stdout.splitlines()]


def test_turns_are_answered_and_every_run_has_the_same_digest(programs: Path, build: Build) -> None:
    nccl = str(build("collectives", str(Path(__file__).with_name("collectives.c")), "-shared", "-fPIC", "-w"))
    commands = [["stencil", nccl, style, "32", "0"] for style in STYLES]
    commands += [["solver", nccl, "32", "1"], ["transpose", nccl, "32", "0"]]
    for name, *words in commands:
        digests = set()
        for turns in (TURNS, ""):
            said = answers([str(programs / name), *words], turns)
            assert [len(answer["ms"]) for answer in said[1:-1]] == ([2, 1, 1] if turns else [])
            digests.add(said[-1]["digest"])
        assert len(digests) == 1, words
    wrong = subprocess.run([str(programs / "stencil"), nccl, "halo", "32", "0"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "styles: halo-stream " in wrong.stderr
