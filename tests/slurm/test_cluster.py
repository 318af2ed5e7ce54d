"""The cluster of the other tests leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import cluster
import pytest


@pytest.fixture(scope="module")
def slurm(start_cluster):
    return start_cluster(nodes=1)


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
