"""A real Slurm cluster (cluster.py), and the folder of a site (tools/site/install)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import cluster as slurm  # noqa: E402
import debian  # noqa: E402

INSTALL = HERE.parent.parent / "tools" / "site" / "install"
OWN = """\
policy: 1
name: own
extends: observe
communication: {environment: {NCCL_CGA_CLUSTER_SIZE: 2, TORCH_NCCL_HIGH_PRIORITY: 1}}
"""


@pytest.fixture(scope="module")
def start_cluster(clean_environment: dict[str, str]) -> Iterator[Callable[..., slurm.Cluster]]:
    """Starts a cluster with the parameters of cluster.Cluster; it is stopped behind the last test of the module."""
    started: list[slurm.Cluster] = []

    def start(**parameters: object) -> slurm.Cluster:
        try:
            started.append(slurm.start(clean_environment, **parameters))
        except debian.Missing as reason:
            pytest.skip(str(reason))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def installed(clean_environment: dict[str, str], library: object) -> Iterator[Path]:
    """The folder of a site, with a policy of its own and no default. Not to be changed: `site` is for that."""
    folder = Path(tempfile.mkdtemp(prefix="site-"))
    folder.chmod(0o755)
    (folder / "own.yaml").write_text(OWN)
    command = [sys.executable, str(INSTALL), str(folder / "overlap"), str(folder / "own.yaml")]
    subprocess.run(command, env=clean_environment, check=True, capture_output=True)
    yield folder / "overlap"
    shutil.rmtree(folder)
