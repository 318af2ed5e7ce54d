"""Real launchers, and what a rank says of itself."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cluster as slurm_cluster
import debian
import mpich as mpich_package
import pytest
import pytorch
from seen import OVERLAP_RUN, SHOW, Ranks

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def show(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A program that says of itself what Ranks reads."""
    path = tmp_path_factory.mktemp("show") / "show.py"
    path.write_text(SHOW)
    return sys.executable, str(path)


@pytest.fixture(scope="session")
def run(clean_environment: dict[str, str]) -> Callable[..., Ranks]:
    def command(*words: str, env: Mapping[str, str] | None = None, **more: Any) -> Ranks:
        more.setdefault("timeout", 300)
        environment = {**clean_environment, **(env or {})}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, **more)
        return Ranks(done.returncode, done.stdout, done.stderr)

    return command


# Their tables end with two =, one and none, as base64 does; the last one is longer.
POLICIES = ("observe", "h100-paper", "h100", "auto")


@pytest.fixture(params=POLICIES)
def table(request: pytest.FixtureRequest, run: Callable[..., Ranks], show: tuple[str, str]) -> tuple[str, str]:
    """A policy, and what a rank must see of it."""
    (seen,) = run(OVERLAP_RUN, "--policy", request.param, *show).values("OVERLAP_TABLE")
    assert seen
    return request.param, seen


@dataclass
class Mpi:
    """Open MPI. alone: mpirun on this machine; hosts(): on some that are reached through an agent that passes no
    environment on, as sshd does."""

    environment: dict[str, str]
    agent: Path
    here: str = socket.gethostname()

    @property
    def alone(self) -> tuple[str, ...]:
        return ("mpirun", "--oversubscribe")

    def hosts(self, *names: str) -> tuple[str, ...]:
        agent = ("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(self.agent))
        return ("mpirun", *agent, "--host", ",".join(names), "-np", str(len(names)))


HEADER = f"/usr/lib/{platform.machine()}-linux-gnu/openmpi/include/mpi.h"

_AGENT = """#!/bin/sh
while case $1 in -*) : ;; *) false ;; esac; do shift; done
mkdir -p {folder}/$1 || exit
host=$1
shift
exec env -i PATH=/usr/bin:/bin HOME={folder} TMPDIR={folder}/$host PYTHONPATH={root} sh -c "$*"
"""


def _write_agent(folder: Path) -> Path:
    agent = folder / "agent"
    agent.write_text(_AGENT.format(folder=folder, root=HERE.parent.parent))
    agent.chmod(0o755)
    return agent


@pytest.fixture(scope="session")
def mpi(clean_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    try:
        debian.install(["openmpi-bin", "libopenmpi-dev"], ["mpirun", HEADER])  # openmpi-bin alone has mpicc, too
    except debian.Missing as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("mpi")
    agent = _write_agent(folder)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return Mpi({**root, "HOME": str(folder)}, agent)


@dataclass
class Mpich:
    """MPICH's mpiexec. alone: on this machine; hosts(): on some that are reached through the agent of Mpi."""

    program: Path
    agent: Path

    @property
    def alone(self) -> tuple[str, ...]:
        return (str(self.program), "-n", "2")

    def hosts(self, *names: str) -> tuple[str, ...]:
        agent = ("-launcher", "ssh", "-launcher-exec", str(self.agent))
        return (str(self.program), *agent, "-hosts", ",".join(names), "-n", str(len(names)))


@pytest.fixture(scope="session")
def mpich(tmp_path_factory: pytest.TempPathFactory) -> Mpich:
    try:
        program = mpich_package.mpiexec()
    except mpich_package.Missing as reason:
        pytest.skip(str(reason))
    return Mpich(program, _write_agent(tmp_path_factory.mktemp("mpich")))


@pytest.fixture(scope="session")
def torch() -> Path:
    """The folder of torchrun, accelerate and their Python."""
    try:
        return pytorch.python().parent
    except pytorch.Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def slurm(clean_environment: dict[str, str], mpi: Mpi) -> Iterator[slurm_cluster.Cluster]:
    try:
        started = slurm_cluster.start({**clean_environment, **mpi.environment}, nodes=2)
    except debian.Missing as reason:
        pytest.skip(str(reason))
    yield started
    started.stop()
