"""The simulated drivers, and a way to run a snippet on one in a process of its own."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import pytest
from hip_runtimes import VERSIONS, runtime

from pyshim.start import plan

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def _built(path: str) -> Path:
    if not Path(path).exists():
        pytest.fail(f"{path} was not built: make setup")
    return Path(path)


@pytest.fixture(scope="session")
def libcuda() -> Path:
    """The simulated driver."""
    return _built(plan.SIMULATED_DRIVER)


@pytest.fixture(scope="session")
def runtimes() -> dict[int, Path]:
    """The simulated HIP runtimes, by version."""
    return {version: _built(str(runtime(version))) for version in VERSIONS}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    """Tests that take it run on each."""
    return int(request.param)


@dataclass
class Run:
    answer: Any
    timeline: list[dict[str, Any]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    stderr: str = ""
    stdout: str = ""
    status: int = 0

    def kernel(self, name: str) -> dict[str, Any]:
        found = [row for row in self.timeline if row["kernel"] == name]
        assert len(found) == 1, f"{name} ran {len(found)} times"
        return found[0]


PRELUDE = """
import ctypes as C, json, os, sys
from simgpu_client import Driver, DriverError, P
from tools.simgpu.simgpu_cubin import Kernel, cubin, fatbin
def answer(value): print("ANSWER " + json.dumps(value))
"""

HIP_PRELUDE = """
import ctypes as C, json, os, sys
from hip_client import *
from tools.simgpu.hip.image import Kernel, image
def answer(value): print("ANSWER " + json.dumps(value), flush=True)
hip = Hip()
"""

GRAPHS = """
d = Driver()
m = d.module(cubin([Kernel(n, 64) for n in "abc"]))
a, b, c = (d.function(m, n) for n in "abc")
g = P()
s = d.stream()
def captured(work, stream=s):
    graph = P()
    d.cuStreamBeginCapture_v2(stream, 0)
    work()
    d.cuStreamEndCapture(stream, C.byref(graph))
    return graph
def run(graph, flags=0, stream=s):
    exe = d.instantiate(graph, flags)
    d.cuGraphLaunch(exe, stream); d.cuStreamSynchronize(stream)
    return exe
"""


@pytest.fixture
def simulate(libcuda: Path, tmp_path: Path) -> Callable[..., Run]:
    """simulate(snippet, gpu="h100", costs=[...]) -> Run. The snippet ends with `answer(value)`."""
    return lambda snippet, gpu="h100", **options: _run(PRELUDE + snippet, gpu, libcuda, tmp_path, **options)


@pytest.fixture
def on_hip(runtimes: dict[int, Path], tmp_path: Path) -> Callable[..., Run]:
    """on_hip(snippet, version, gpu="mi250x") -> Run; `hip` is the runtime of that version."""

    def run(snippet: str, version: int = 7, gpu: str = "mi250x", **options: Any) -> Run:
        return _run(HIP_PRELUDE + snippet, gpu, runtimes[version], tmp_path, **options)

    return run


_count = itertools.count()


def _run(
    program: str, gpu: str, library: Path, tmp_path: Path, costs: str | None = None, status: int = 0, **environment: str
) -> Run:
    count = next(_count)
    trace, launches = tmp_path / f"trace{count}", tmp_path / f"launches{count}"
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("SIMGPU", "LD_PRELOAD", "HIP_", "ROCR_"))},
        "SIMGPU": gpu,
        "SIMGPU_TRACE": str(trace),
        "SIMGPU_LAUNCHES": str(launches),
        "SIMGPU_LIBRARY": str(library),
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, ROOT))),
        **environment,
    }
    if costs is not None:
        (tmp_path / "costs.yaml").write_text(costs)
        env["SIMGPU_COSTS"] = str(tmp_path / "costs.yaml")
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stderr
    answers = [line[7:] for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    return Run(
        json.loads(answers[-1]) if answers else None,
        _timeline(trace),
        _lines(launches),
        done.stderr,
        "".join(line for line in done.stdout.splitlines(True) if not line.startswith("ANSWER ")),
        done.returncode,
    )


@pytest.fixture
def graphs(simulate: Callable[..., Run]) -> Callable[..., Run]:
    """simulate(), with kernels and a stream `s` at hand."""
    return lambda snippet, **options: simulate(GRAPHS + snippet, **options)


def _timeline(path: Path) -> list[dict[str, Any]]:
    """Return the kernels of a trace, in the order in which they ended."""
    events = json.loads(path.read_text() or "[]") if path.exists() else []
    return [
        {
            **event["args"],
            "kernel": event["name"],
            "start_us": event["ts"],
            "end_us": round(event["ts"] + event["dur"], 3),
            "blocks": math.prod(event["args"]["grid"]),
            "threads": event["args"]["block"][0],
        }
        for event in events
        if event.get("cat") == "kernel"
    ]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
