"""A real Slurm cluster (cluster.py), and the folder of a site (tools/deploy/install)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster as slurm
import debian
import pytest
import site_folder

OWN = """\
policy: 1
name: own
extends: observe
environment: {NCCL_CGA_CLUSTER_SIZE: 2, TORCH_NCCL_HIGH_PRIORITY: 1}
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
def installed(library: object) -> Iterator[Path]:
    """The folder of a site, with a policy of its own and no default. Not to be changed: `site` is for that."""
    folder = Path(tempfile.mkdtemp(prefix="site-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "own.yaml").write_text(OWN)
    yield site_folder.install(folder / "overlap", str(folder / "own.yaml"))
    shutil.rmtree(folder)


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Path:
    """A copy that a test may change. Its files name its own library."""
    folder = tmp_path / "overlap"
    shutil.copytree(installed, folder)
    site_folder.belongs_to(folder, installed)
    return folder


@pytest.fixture
def mpirun(slurm: slurm.Cluster) -> str:
    """Four ranks on two nodes of a job, behind which the program belongs."""
    try:
        debian.install(["openmpi-bin"], ["mpirun"])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    if not slurm.own_hostnames:
        pytest.skip("mpirun takes nodes of one host name for one node, and none may be given here")
    return "mpirun --allow-run-as-root --oversubscribe -np 4 --map-by ppr:2:node"
