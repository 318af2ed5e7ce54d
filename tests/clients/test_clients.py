"""Unmodified programs of other people, with and without the library: they see the same and so does the driver.

cuda-bindings (cuGetProcAddress), numba-cuda with its own NVVM, Triton with its own ptxas (a linked launcher that asks
dlsym), and two C programs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, NCCL, Build

from pyshim.start import plan

HERE = Path(__file__).resolve().parent
CAP = """policy: 1
name: cap
gpu: ["NVIDIA *"]
streams: {raise: off}
compute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 1}, when: always}]
"""
# What a C program of a user's does: several kernels, streams, a graph.
WORDS = (
    f"ptx=gemm,{NCCL} lib=norm stream=0 stream=-3 repeat=4 launch=gemm,{BLOCKS},256,0,1 launch={NCCL},16,256,0,2 "
    f"launch=norm,{BLOCKS},128,4096,1 attr=8:-1 ex=gemm,{BLOCKS},256,1024,0 coop=norm,100,256,0,1 "
    f"begin=1 launch=gemm,{BLOCKS},256,0,1 launch={NCCL},16,256,0,1 end=1 go=1,2 sync "
    f"launch=gemm,1,256,60000 launch=gemm,{BLOCKS},256,0"
)
POLICIES = ("observe", "h100-paper", "cap")
CLIENTS = {
    "bindings": "proc_address",
    "numba": "proc_address",
    "triton": "dlsym",
    "linked": "symbol",
    "opened": "dlsym",
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def lines(path: Path) -> list[dict[str, Any]]:
    """The launch calls; what a graph launches is in the log, too."""
    launches = [launch for launch in map(json.loads, path.read_text().splitlines()) if not launch["graph"]]
    if path.name.startswith(("triton", "numba")):  # whose buffers lie elsewhere in every process
        order: dict[str, int] = {}
        for launch in launches:
            launch["parameters"] = order.setdefault(launch["parameters"], len(order))
    return launches


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


def triton_lacks() -> str | None:
    """What Triton's own compiler call needs and this machine has not. zig does not know -l:libcuda.so.1."""
    if not shutil.which("gcc") and not shutil.which("clang"):
        return "gcc or clang: apt-get install gcc libc6-dev"
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    if not (Path(sysconfig.get_paths(scheme=scheme)["include"]) / "Python.h").exists():
        return "Python.h: apt-get install python3-dev"
    return None


@pytest.fixture(scope="session")
def command(build: Build) -> Callable[[str], list[str]]:
    def of(client: str) -> list[str]:
        package = {"bindings": "cuda.bindings", "numba": "numba_cuda", "triton": "triton"}.get(client)
        if package:
            try:
                found = importlib.util.find_spec(package)
            except ModuleNotFoundError:
                found = None
            if not found:
                pytest.skip(f"needs {package}: make setup, with Python 3.10 or newer")
            if client == "triton" and (missing := triton_lacks()):
                pytest.skip(f"Triton compiles its launcher, and there is no {missing}")
            return [sys.executable, str(HERE / f"{client}_client.py")]
        return [str(build.client({"linked": "symbol", "opened": "dlsym"}[client])), *WORDS.split()]

    return of


@pytest.fixture(scope="session")
def alone(
    command: Callable[[str], list[str]], simulated: Mapping[str, str], scratch: Path
) -> Callable[[str], tuple[str, list[dict[str, Any]]]]:
    """What a client prints, and what the driver is asked for, without the library; run once each."""
    known: dict[str, tuple[str, list[dict[str, Any]]]] = {}

    def of(client: str) -> tuple[str, list[dict[str, Any]]]:
        if client not in known:
            log = scratch / f"{client}.launches"
            env = {**simulated, "SIMGPU_LAUNCHES": str(log), "TRITON_CACHE_DIR": str(scratch / "cache-alone")}
            done = subprocess.run(command(client), env=env, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            known[client] = done.stdout, lines(log)
        return known[client]

    return of


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_see_the_same(
    client: str,
    policy: str,
    command: Callable[[str], list[str]],
    alone: Callable[[str], tuple[str, list[dict[str, Any]]]],
    overlap_run: Run,
    overlap: Run,
    scratch: Path,
    tmp_path: Path,
) -> None:
    stdout, launches = alone(client)
    log, report = tmp_path / f"{client}.launches", tmp_path / "report"
    (tmp_path / "cap.yaml").write_text(CAP, encoding="ascii")
    named = str(tmp_path / "cap.yaml") if policy == "cap" else policy
    # Triton's first run here compiles under the preload: ptxas and the C compiler get it, too.
    env = {"SIMGPU_LAUNCHES": str(log), "TRITON_CACHE_DIR": str(scratch / "cache-preloaded")}
    options = ["--simulate", "h100", "--policy", named, "--report", str(report)]
    done = overlap_run(*options, *command(client), env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == stdout

    seen = lines(log)
    changed = [] if policy == "observe" else ["dynamic_shared"]
    assert without(seen, changed) == without(launches, changed)
    for made, asked in zip(seen, launches):
        assert made["dynamic_shared"] >= asked["dynamic_shared"]
        if "nccl" in made["kernel"]:
            assert made["dynamic_shared"] == asked["dynamic_shared"]

    totals = json.loads(overlap("report", str(report), "--json").stdout)["totals"]
    larger = [made for made, asked in zip(seen, launches) if made["dynamic_shared"] != asked["dynamic_shared"]]
    assert totals["launches"] == sum(totals["reasons"].values()) == len(launches)
    assert totals["shaped"] == sum(made["result"] == 0 for made in larger)
    assert (totals["shaped"] > 0) == (policy != "observe")
    assert (totals["raised"], totals["refused"]) == (0, 0)


def without(launches: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    return [{name: value for name, value in launch.items() if name not in names} for launch in launches]


@pytest.mark.parametrize("gpu", ["a100", "h100,2", "b200,2"])
def test_clients_run_on_other_gpus(
    gpu: str, command: Callable[[str], list[str]], overlap_run: Run, scratch: Path, tmp_path: Path
) -> None:
    """The policy for all of them, a table of its own for each device."""
    (tmp_path / "cap.yaml").write_text(CAP, encoding="ascii")
    outputs = []
    for options in (["--policy", "observe"], ["--policy", str(tmp_path / "cap.yaml")]):
        done = overlap_run("--simulate", gpu, "--quiet", *options, *command("bindings"), timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_the_first_compilation_of_triton_dies_in_ptxas(
    table_of: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    """Triton starts ptxas and a C compiler; what they write must be the same, to the byte."""
    if not importlib.util.find_spec("triton"):
        pytest.skip("needs triton: make setup, with Python 3.10 or newer")
    import triton

    ptxas = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    (tmp_path / "k.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a) { ret; }\n"
    )
    results = []
    for name, env in (("alone", dict(os.environ)), ("preloaded", dict(table_of("h100-paper")))):
        out = tmp_path / f"{name}.cubin"
        done = subprocess.run(
            [str(ptxas), "-arch=sm_90", "-v", "k.ptx", "-o", out.name],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            check=False,
        )
        results.append((done.returncode, done.stdout, out.read_bytes()))
    assert results[0][0] == 0
    assert results[0] == results[1]
    assert plan.LIBRARY in table_of("h100-paper")["LD_PRELOAD"]
