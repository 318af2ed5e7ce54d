"""torchrun on two nodes under the task-prolog, on simulated GPUs, and its report; then the same where one node has no
TaskProlog. `pytest -s` shows what the tasks and the report print.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import cluster
import pytest
import pytorch

from pyshim import _native

WORKER = Path(__file__).with_name("worker.py")
SIMULATED = {
    "SIMGPU": "h100:hold,2",
    "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent),
    "GLOO_SOCKET_IFNAME": "lo",
}


@pytest.fixture(scope="module")
def job(start_cluster, installed, overlap):
    """Runs the job on these nodes, and returns the report's folder and its text."""
    try:
        torchrun = pytorch.python().with_name("torchrun")
    except pytorch.Missing as reason:
        pytest.skip(str(reason))
    prolog = installed / "libexec" / "task-prolog"
    slurm = start_cluster(
        nodes=3, prologs={"n0": prolog, "n1": prolog}, partitions={"site": ["n0", "n1"], "all": ["n0", "n1", "n2"]}
    )

    def run(*options: str, report: Path) -> str:
        report.mkdir()
        (port,) = cluster._free_ports(1)
        step = f"exec {torchrun} --nnodes 2 --nproc-per-node 2 --node-rank $SLURM_NODEID --master-addr 127.0.0.1"
        command = ["-Q", *options, "-N2", "--ntasks-per-node=1", "sh", "-c", f"{step} --master-port {port} {WORKER}"]
        environment = {**SIMULATED, "OVERLAP_POLICY": "h100-paper", "OVERLAP_REPORT": str(report)}
        done = slurm.srun(*command, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("overlap")]
        print("\n$", shlex.join(["srun", *command]), *lines, sep="\n")
        return "\n".join(lines)

    return run


def show(done: subprocess.CompletedProcess[str]) -> str:
    print("\n$", shlex.join(done.args[2:]), done.stdout, done.stderr, f"[{done.returncode}]", sep="\n")
    return done.stdout + done.stderr


def test_every_rank_of_two_nodes_is_in_the_report(job, overlap, tmp_path):
    report = tmp_path / "report"
    said = job(report=report)
    show(overlap("report", str(report)))
    done = overlap("report", str(report), "--check")
    assert done.returncode == 0, show(done)
    processes = json.loads(overlap("report", str(report), "--json").stdout)["processes"]
    assert sorted(process["rank"] for process in processes) == [0, 1, 2, 3]
    for process in processes:
        assert process["launches"] == 24 and process["communication"] == 12
        assert process["shaped"] > 0
    assert said.count("overlap: ") == 1, "rank 0 alone speaks"


def test_where_one_node_has_no_prolog_it_is_said(job, overlap, tmp_path):
    report = tmp_path / "report"
    job("-pall", "-wn0,n2", report=report)
    processes = json.loads(overlap("report", str(report), "--json").stdout)["processes"]
    assert sorted(process["rank"] for process in processes) == [0, 1]
    done = overlap("report", str(report), "--check")
    text = show(done)
    assert done.returncode == 1
    assert "2 of 4 ranks left a page" in text and "missing: ranks 2-3" in text
