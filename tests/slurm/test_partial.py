"""A job of which half has the library: SLURM_TASK_PROLOG does not reach the batch step, nor the ranks that mpirun
starts from it; those on other nodes are a step's. `overlap report --check` says which.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import cluster
import pytest
from interposing import BLOCKS, Build

from pyshim import _native


@pytest.fixture(scope="module")
def slurm(start_cluster: Callable[..., cluster.Cluster]) -> cluster.Cluster:
    return start_cluster(nodes=2)


@pytest.mark.parametrize("whole", [False, True], ids=["by SLURM_TASK_PROLOG", "by overlap-run in front of mpirun"])
def test_mpirun_in_a_batch_script(slurm, mpirun: str, build: Build, installed, overlap, tmp_path, whole):
    report = tmp_path / "report"
    report.mkdir()
    program = f"{build.client()} ptx=k launch=k,{BLOCKS},256,0"
    front = f"{sys.executable} -m pyshim.cli.run --policy h100-paper --quiet --report {report} " if whole else ""
    choice = {
        "SLURM_TASK_PROLOG": str(installed / "libexec" / "task-prolog"),
        "OVERLAP_POLICY": "h100-paper",
        "OVERLAP_REPORT": str(report),
    }
    environment = {
        "SIMGPU": "h100",
        "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        **({} if whole else choice),
    }
    done = slurm.sbatch(f"{front}{mpirun} {program}", "-N2", "-n4", env=environment)
    assert (done.state, done.output.count("launch: 0")) == ("COMPLETED", 4), done.output
    checked = overlap("report", str(report), "--check", "--json")
    answer = json.loads(checked.stdout)
    seen = sorted((process["rank"], process["host"]) for process in answer["processes"])
    others = [(2, "n1"), (3, "n1")]
    if whole:
        assert (checked.returncode, answer["findings"]) == (0, [])
        assert seen == [(0, "n0"), (1, "n0"), *others]
    else:
        assert checked.returncode == 1
        assert seen == others, "of the first node nothing is known"
        (sentence,) = answer["findings"]
        assert sentence.startswith("2 of 4 ranks are in the report (ranks 2-3 on n1); missing: ranks 0-1. ")
