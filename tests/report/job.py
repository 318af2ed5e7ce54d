"""The ranks of a job: real processes with the library in them, on a simulated H100; only the host names are made up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyshim.start import plan
from pyshim.start.environment import environment

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

POLICY = "h100-paper"
LAUNCHES = 4


def build(folder: Path) -> Path:
    """Build the program that is a rank, and return its path."""
    program, host = folder / "rank", folder / "librankhost.so"
    command = [os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE"]
    subprocess.run([*command, "-shared", "-fPIC", str(HERE / "rank_host.c"), "-o", str(host)], check=True)
    linked = [str(HERE / "rank.c"), plan.SIMULATED_DRIVER, "-Wl,--no-as-needed", str(host), f"-Wl,-rpath,{folder}"]
    subprocess.run([*command, *linked, "-o", str(program)], check=True)
    return program


def surroundings(report: Path, gpus: int, policy: str = POLICY) -> dict[str, str]:
    """Return the environment that a site's prolog sets for every process; there is no overlap-run."""
    base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(report)}
    made = plan.make(plan.Request(policy=policy, simulate=f"h100,{gpus}"), base)
    return {**environment(base, made.settings._replace(quiet=True)), "OVERLAP_REPORT": str(report)}


def run(
    program: Path,
    base: Mapping[str, str],
    processes: int,
    per_host: int,
    otherwise: Mapping[int, Mapping[str, str]] | None = None,
    daemon: Sequence[str] = (),
) -> None:
    """Run all ranks of one job, a few at a time.

    otherwise: variables by rank; LAUNCHES is the program's argument. daemon: a command that starts its arguments."""
    running: list[subprocess.Popen[bytes]] = []
    for rank in range(processes):
        place = {"RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_RANK": str(rank % per_host)}
        env = {**base, **place, "HOST": f"node{rank // per_host:03}", **(otherwise or {}).get(rank, {})}
        words = [*daemon, str(program), env.get("LAUNCHES", str(LAUNCHES))]
        running.append(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL))
        while len(running) > 2 * (os.cpu_count() or 1) or (rank == processes - 1 and running):
            if running.pop(0).wait():
                raise SystemExit("job.py: a rank failed")
