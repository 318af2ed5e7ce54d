"""libraries.py as a command, with a rank that needs no GPU: what it asks for, and what it writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "tools" / "gpu"

# Each sample is the number of the round in which it was asked for; a computation takes 10 ms, a collective 2 and a
# millisecond a MiB. What the environment says goes wrong, does.
RANK = """
import os, sys
from pathlib import Path
from tools.gpu.overlap.turns import serve
rounds = {}
def log(*words):
    with open(Path(__file__).with_name("log"), "a") as file:
        print(*words, file=file)
def turn(request):
    do, kind = request["do"], request.get("kind")
    log(do, kind)
    if do == "alone":
        return {"computation_ms": 10.0, "communication_ms": [2 + size / (1 << 20) for size in request["sizes"]]}
    if do == "prepare":
        rounds.clear()
        if os.environ.get("NCCL_MAX_CTAS") == "16":
            raise RuntimeError("out of memory")
        return {"host_ms": 0.5}
    if do == "samples":
        if os.environ.get("NCCL_MAX_CTAS") == "32" and len(rounds) > 1:
            os._exit(9)
        rounds[len(rounds)] = None
        return {way: {"ms": float(len(rounds))} for way in request["ways"]}
    if do == "check":
        other = "NCCL_CGA_CLUSTER_SIZE" in os.environ
        return {way: "other" if other else "same" for way in request["ways"]}
    if do == "kernels":
        return {"computation": {"symbol": "k", "threads": 128}, "communication": {"symbol": "nccl"}}
    return {}
serve({"rank": 0}, turn)
log("end")
"""
RUN = """#!/bin/sh
echo "$*" >>"$0.log"
while [ "$1" != --report ]; do shift; done
shift 2
exec "$@"
"""
OVERLAP = """#!/bin/sh
case $1 in
report) echo '{"totals": {"launches": 5, "shaped": 2, "refused": 0}}' ;;
explain) [ "$*" = "explain --gpu h200 --threads=128 --json" ] && echo '{"native_blocks": 16}' ;;
esac
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A copy of the suite with that rank."""
    copied = tmp_path / "tools" / "gpu" / "overlap"
    shutil.copytree(GPU / "overlap", copied, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(GPU / "machine.py", copied.parent)
    shutil.copy(GPU.parent / "__init__.py", copied.parents[1])
    (copied / "library_rank.py").write_text(RANK)
    (tmp_path / "bin").mkdir()
    for name, text in {"overlap-run": RUN, "overlap": OVERLAP}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return copied


def run(suite: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": path or f"{suite.parents[2]}/bin:{os.environ['PATH']}",
    }
    command = [sys.executable, "-m", "tools.gpu.overlap.libraries", "--out", str(suite / "out.json"), *words]
    return subprocess.run(command, cwd=suite.parents[2], env=environment, capture_output=True, text=True, timeout=60)


def written(suite: Path) -> Any:
    return json.loads((suite / "out.json").read_text())


def test_samples_pair_by_index_and_what_fails_is_named(suite: Path) -> None:
    done = run(suite, "--rounds", "4", "--only", "triton,primary")
    assert done.returncode == 0, done.stderr
    made = written(suite)
    assert (made["version"], made["set"], made["settings"]["rounds"]) == (1, "overlap-libraries", 4)
    cells = made["runs"][0]["cells"]
    assert [cell["ratio"] for cell in cells] == [0.25, 0.5, 1.0] and all(cell["primary"] for cell in cells)
    # 10 ms of computation: 2.5, 5 and 10 ms of communication, 2 of them whatever the size.
    assert [cell["bytes"] >> 20 for cell in cells] == [1, 3, 8]
    for cell in cells:
        assert all(arm["ms"] == [1.0, 2.0, 3.0, 4.0] for arm in cell["arms"].values())
        assert {"plain", "priority", "policy:h200", "shape-2+priority", "cluster-1+priority"} <= set(cell["arms"])
        assert not {"ctas-16", "ctas-32", "sm-target", "threads-288"} & set(cell["arms"])
        assert cell["arms"]["shape-2+priority"]["blocks_per_sm"] == 2
        assert cell["differences"] == 2  # both arms of the process without clusters
    assert made["kernels"]["triton"]["role"] == "computation" and made["kernels"]["triton"]["resident_blocks"] == 16
    assert any("ctas-16: not all samples" in line for line in made["left_out"])
    assert "ctas-32: no answer [9]" in made["left_out"]
    assert "out of memory" in done.stderr


def test_policies_run_behind_the_library_and_what_it_counted_is_kept(suite: Path) -> None:
    assert run(suite, "--rounds", "1", "--only", "triton,pairs").returncode == 0
    started = (suite.parents[2] / "bin" / "overlap-run.log").read_text()
    for policy in ("--policy h200 ", "--policy observe ", "policies/make-room.yaml ", "policies/blocks-4.yaml "):
        assert policy in started
    assert "policy:h200, simt" not in written(suite)["runs"][0]["policies"]
    assert written(suite)["runs"][0]["policies"]["policy:make-room"] == {"launches": 5, "shaped": 2}


def test_processes_that_no_further_cell_needs_end_at_once_because_memory_is_short(suite: Path) -> None:
    assert run(suite, "--rounds", "1", "--only", "triton,primary", "adam").returncode == 0
    log = (suite / "log").read_text().splitlines()
    assert log[: log.index("prepare adam")].count("end") == 4  # policy:h200 for triton, and three numbers of blocks
    assert log.count("end") == len(written(suite)["runs"][0]["processes"])


def test_without_overlap_run_the_rest_is_measured_and_the_file_says_so(suite: Path) -> None:
    done = run(suite, "--rounds", "1", "--only", "graph", path="/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    made = written(suite)
    assert "policies: overlap-run or overlap is not in PATH" in made["left_out"]
    assert "plain" in made["runs"][0]["cells"][0]["arms"] and not made["runs"][0]["policies"]


def test_two_gpus_are_another_set_of_two_ranks(suite: Path) -> None:
    assert run(suite, "--rounds", "1", "--gpus", "2", "--only", "step").returncode == 0
    made = written(suite)
    assert made["set"] == "overlap-two-gpus"
    assert "threads-288+priority" in made["runs"][0]["cells"][0]["arms"]
    assert made["runs"][0]["processes"]["main"]["exit_codes"] == [0, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--only", "smit"], "--only: smit: not one of", id="a kind that there is not"),
        pytest.param(["--only", "simt,graph"], "no cell is all of that", id="nothing left"),
        pytest.param(["--rounds", "0"], "--rounds: at least 1", id="no rounds"),
        pytest.param(["--gpus", "3"], "invalid choice", id="three GPUs"),
    ],
)
def test_bad_arguments_are_one_clear_error(suite: Path, words: list[str], said: str) -> None:
    done = run(suite, *words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not (suite / "out.json").exists()


def test_policies_of_the_suite_have_no_mistake() -> None:
    files = [str(path) for path in (GPU / "overlap" / "policies").glob("*.yaml")]
    command = [sys.executable, "-m", "pyshim", "policy", "check", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": ok") == len(files)
