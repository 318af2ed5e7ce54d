"""Real launchers, and what a rank says of itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "slurm"), str(HERE.parent / "programs")]
pytest.register_assert_rewrite("interposing")

import cluster as slurm_cluster  # noqa: E402
import debian  # noqa: E402
import pytorch  # noqa: E402
from interposing import build, library  # noqa: E402

__all__ = ["build", "library"]

OVERLAP_RUN = str(Path(sys.executable).parent / "overlap-run")
# A line a rank: its variables, long ones by their hash, and whether the library is in it. Launchers mix long lines.
SHOW = """import hashlib, json, os
from pyshim.launch import rank
mapped = "liboverlap.so" in open("/proc/self/maps").read()
names = ("LD_", "OVERLAP_", "NCCL_", "MINE", "THEIRS", "MY_OWN", "SLURMD_NODENAME")
shown = {name: value for name, value in os.environ.items() if name.startswith(names)}
short = {n: v if len(v) < 200 else hashlib.md5(v.encode()).hexdigest() for n, v in shown.items()}
line = json.dumps([rank.rank(os.environ), rank.world_size(os.environ), mapped, short])
os.write(1, line.encode() + b"\\n")
"""


@dataclass
class Rank:
    rank: int | None
    world: int | None
    mapped: bool
    environment: dict[str, str]


@dataclass
class Ranks:
    """What a launcher and its ranks left behind; ranks in order."""

    status: int
    stdout: str
    stderr: str

    @property
    def ranks(self) -> list[Rank]:
        lines = [line for line in self.stdout.splitlines() if line.startswith("[")]
        return sorted((Rank(*json.loads(line)) for line in lines), key=lambda rank: rank.rank or 0)

    @property
    def mapped(self) -> list[bool]:
        return [rank.mapped for rank in self.ranks]

    def values(self, name: str) -> list[str | None]:
        return [rank.environment.get(name) for rank in self.ranks]

    @property
    def advice(self) -> str:
        """What the line that we said tells to write instead."""
        (line,) = [line for line in self.stderr.splitlines() if "without this environment" in line]
        return line.partition("environment: write ")[2]


@pytest.fixture(scope="session")
def show(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A program that says of itself what Ranks reads."""
    path = tmp_path_factory.mktemp("show") / "show.py"
    path.write_text(SHOW)
    return sys.executable, str(path)


@pytest.fixture(scope="session")
def run(clean_environment: dict[str, str]) -> Callable[..., Ranks]:
    def command(*words: str, env: Mapping[str, str] | None = None, **more: Any) -> Ranks:
        more.setdefault("timeout", 60)
        environment = {**clean_environment, **(env or {})}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, **more)
        return Ranks(done.returncode, done.stdout, done.stderr)

    return command


# Their tables end with two =, one and none, as base64 does; that of all GPUs is twice as long.
POLICIES = ("observe", "h100-small-comm", "h100", "auto")


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


_AGENT = """#!/bin/sh
while case $1 in -*) : ;; *) false ;; esac; do shift; done
mkdir -p {folder}/$1 || exit
host=$1
shift
exec env -i PATH=/usr/bin:/bin HOME={folder} TMPDIR={folder}/$host PYTHONPATH={root} sh -c "$*"
"""


@pytest.fixture(scope="session")
def mpi(clean_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    try:
        debian.install(["openmpi-bin", "libopenmpi-dev"], ["mpirun", "mpicc"])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("mpi")
    agent = folder / "agent"
    agent.write_text(_AGENT.format(folder=folder, root=HERE.parent.parent))
    agent.chmod(0o755)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return Mpi({**root, "HOME": str(folder)}, agent)


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
