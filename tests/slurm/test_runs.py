"""Which run the pages of a job belong to, in a real cluster under the TaskProlog."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cluster
import pytest

from pyshim import _native

RANK = shlex.join([sys.executable, str(Path(__file__).with_name("launch.py"))])
TELL = "echo RUN $OVERLAP_REPORT"
STEP = f"srun -N2 -n2 sh -c '{TELL}'"
SIMULATED = {"SIMGPU": "h100", "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent), "OVERLAP_QUIET": "1"}


@pytest.fixture(scope="module")
def slurm(start_cluster: Callable[..., cluster.Cluster], installed: Path) -> cluster.Cluster:
    return start_cluster(prologs=installed / "libexec" / "task-prolog")


@pytest.fixture
def job(slurm: cluster.Cluster, tmp_path: Path) -> Callable[..., cluster.Batch]:
    """Runs a batch script on two nodes, whose pages go to tmp_path / "r"."""
    (tmp_path / "r").mkdir()

    def run(script: str, *options: str) -> cluster.Batch:
        environment = {**SIMULATED, "OVERLAP_POLICY": "observe", "OVERLAP_REPORT": str(tmp_path / "r")}
        done = slurm.sbatch(script, "-N2", "-n4", *options, env=environment)
        assert done.state == "COMPLETED", done.output
        return done

    return run


def test_a_script_and_its_steps_are_one_run(job: Callable[..., cluster.Batch], tmp_path: Path) -> None:
    done = job(f"{TELL}\n{STEP}\n{STEP}")
    run = f"{tmp_path}/r/slurm-{done.number}."
    (found,) = set(re.findall(r"RUN (\S*)", done.output))
    assert found.startswith(run) and os.readlink(tmp_path / "r" / "last") == Path(found).name


def test_a_step_that_misses_a_rank_is_said(
    slurm: cluster.Cluster, overlap: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "r").mkdir()
    env = {**SIMULATED, "OVERLAP_POLICY": "observe", "OVERLAP_REPORT": str(tmp_path / "r")}
    half = f"[ $SLURM_PROCID = 0 ] || export OVERLAP_RUN=off; exec {RANK}"
    for rank, status in ((RANK, 0), (half, 1)):
        assert slurm.srun("-N2", "-n2", "sh", "-c", rank, env=env).returncode == 0
        done = overlap("report", str(tmp_path / "r"), "--check")
        assert done.returncode == status
        assert ("1 of 2 ranks are in the report" in done.stdout) is bool(status)


def test_the_ranks_of_mpirun_are_one_step(
    mpirun: str,
    job: Callable[..., cluster.Batch],
    overlap: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    """mpirun is no step: the ranks of its own node are children of the batch script, the others those of a step."""
    done = job(f"{TELL}\n{mpirun} {RANK}")
    report = str(tmp_path / "r")
    processes = json.loads(overlap("report", report, "--json").stdout)["processes"]
    assert sorted((process["rank"], process["host"]) for process in processes) == [
        (rank, node) for rank, node in enumerate(["n0", "n0", "n1", "n1"])
    ], done.output
    checked = overlap("report", report, "--check", "--full")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "4 processes on n0 and n1; ranks 0-3 of 4" in checked.stdout + checked.stderr


def test_one_mpirun_after_another(
    mpirun: str,
    job: Callable[..., cluster.Batch],
    overlap: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    job(f"{mpirun} {RANK}\n{mpirun} {RANK}")
    checked = overlap("report", str(tmp_path / "r"), "--check", "--full")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "8 processes on n0 and n1; ranks 0-3 of 4" in checked.stdout + checked.stderr
