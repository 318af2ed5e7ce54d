"""The cluster of the other tests: is it one?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import cluster
import pytest


@pytest.fixture(scope="module")
def slurm(start_cluster, tmp_path_factory):
    prolog = tmp_path_factory.mktemp("prolog") / "prolog"
    prolog.write_text("#!/bin/sh\necho export FROM_PROLOG=$SLURMD_NODENAME\n")
    prolog.chmod(0o755)
    return start_cluster(
        nodes=3, prologs={"n0": prolog, "n1": prolog}, partitions={"two": ["n0", "n1"], "all": ["n0", "n1", "n2"]}
    )


def test_each_node_is_a_host_with_its_own_prolog(slurm):
    done = slurm.srun("-pall", "-N3", "-l", "sh", "-c", "echo $SLURMD_NODENAME $FROM_PROLOG; hostname")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert {"0: n0 n0", "1: n1 n1", "2: n2"} <= {line.rstrip() for line in lines}
    if slurm.own_hostnames:
        assert {"0: n0", "1: n1", "2: n2"} <= set(lines)


def test_the_file_of_a_prolog_can_be_exchanged(slurm):
    slurm.prolog("n1", None)
    assert slurm.srun("-N2", "sh", "-c", "echo $SLURMD_NODENAME $FROM_PROLOG").stdout.split().count("n1") == 1
    slurm.prolog("n1", slurm.prologs["n1"])
    assert slurm.srun("-N2", "sh", "-c", "echo $SLURMD_NODENAME $FROM_PROLOG").stdout.split().count("n1") == 2


def test_a_batch_job_is_waited_for(slurm):
    done = slurm.sbatch("srun hostname; echo from the script; exit 3", "-N2", "-n2")
    assert (done.state, done.status) == ("FAILED", 3)
    assert done.output.splitlines()[-1] == "from the script"
    assert len(done.output.splitlines()) == 3


def test_two_run_side_by_side(slurm, start_cluster):
    other = start_cluster(nodes=1)
    for each in (other, slurm):
        assert Path(each.srun("sh", "-c", "echo $SLURM_CONF").stdout).is_relative_to(each.folder)


def test_nothing_is_left_behind(slurm, clean_environment):
    other = cluster.start(clean_environment, nodes=2)
    other.run("sbatch", "-N2", "--wrap", "srun sleep 1000")
    assert cluster.wait(lambda: b"sleep" in b"".join(map(_command, cluster.processes_of(other.folder))), 60)
    other.stop()
    assert not other.folder.exists()
    assert cluster.wait(lambda: not cluster.processes_of(other.folder), 60)


def test_it_ends_with_the_test_run(slurm, clean_environment):
    script = "import os, cluster; c = cluster.start(dict(os.environ), nodes=1); print(c.conf, flush=True); input()"
    folders = os.pathsep.join([str(Path(cluster.__file__).parent), str(Path(cluster.__file__).parent.parent)])
    environment = {**clean_environment, "PYTHONPATH": folders}
    run = subprocess.Popen([sys.executable, "-c", script], env=environment, stdin=-1, stdout=-1, text=True)
    conf = Path(run.stdout.readline().strip())
    assert conf.exists()
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert cluster.wait(lambda: not cluster.processes_of(conf.parent), 60)
    subprocess.run(["rm", "-rf", str(conf.parent)], check=True)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
