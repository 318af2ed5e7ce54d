"""A real Slurm cluster; see cluster.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import cluster as slurm  # noqa: E402
import debian  # noqa: E402


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
