"""Two MPI ranks that exchange through memory of the host: the stream that the host waits for is raised in both."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import Build
from seen import OVERLAP_RUN, Ranks

from pyshim import _native
from pyshim.start import plan

ITERATIONS = 40
LEARNING = 6  # iterations before the first judgement, at the 16th wait; each has three waits
GREATEST = -5
OURS = (OVERLAP_RUN, "--policy", "auto", "--simulate", "h200", "--quiet")
SIMULATED = {"SIMGPU": "h200", "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent)}
# Each rank has a log of its own: what the driver was asked for, whatever the report says.
LOGGED = 'SIMGPU_LAUNCHES=$0.${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} exec "$@"'
Launch = Callable[..., Ranks]


@pytest.fixture(scope="session")
def stencil(build: Build, mpi: Any) -> Path:
    compile_, link = (
        subprocess.run(["mpicc", f"--showme:{what}"], capture_output=True, text=True, check=True).stdout
        for what in ("compile", "link")
    )
    libraries = [plan.SIMULATED_DRIVER, *shlex.split(link)]
    return build("mpi_stencil", "mpi_stencil.c", *shlex.split(compile_), link=libraries)


@pytest.fixture(params=["mpirun", "srun"])
def launch(request: pytest.FixtureRequest, run: Launch, mpi: Any) -> tuple[Launch, tuple[str, ...]]:
    """Runs words in an environment in which the launcher works, and the launcher's own words for two ranks."""
    if request.param == "mpirun":

        def here(*words: str, env: Mapping[str, str]) -> Ranks:
            return run(*words, env={**mpi.environment, **env})

        return here, (*mpi.alone, "-np", "2")

    slurm = request.getfixturevalue("slurm")

    def step(*words: str, env: Mapping[str, str]) -> Ranks:
        done = slurm.run(*words, env=env)
        return Ranks(done.returncode, done.stdout, done.stderr)

    return step, ("srun", "--quiet", "--mpi=pmix", "-N2", "-n2")  # it may say that it waits for resources


def priorities(log: Path, kernel: str) -> list[int]:
    launches = map(json.loads, log.read_text().splitlines())
    return [launch["priority"] for launch in launches if launch["kernel"] == kernel]


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
def test_the_stream_that_mpi_waits_for_is_raised_in_every_rank(
    launch: tuple[Launch, tuple[str, ...]], stencil: Path, overlap: Any, tmp_path: Path, outside: bool
) -> None:
    start, launcher = launch
    program = ("sh", "-c", LOGGED, str(tmp_path / "launches"), str(stencil), str(ITERATIONS))
    bare = start(*launcher, str(stencil), str(ITERATIONS), env=SIMULATED)
    assert bare.status == 0, bare.stderr
    assert bare.stdout.startswith("rank 0 of 2: ")
    report = tmp_path / "r"
    ours = (*OURS, "--report", str(report))
    done = start(*(ours + launcher if outside else launcher + ours), *program, env={})
    assert (done.status, done.stdout, done.stderr) == (0, bare.stdout, bare.stderr)

    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert [process["rank"] for process in answer["processes"]] == [0, 1]
    assert {process["world"] for process in answer["processes"]} == {2}
    for process in answer["processes"]:
        log = tmp_path / f"launches.{process['rank']}"
        boundary = priorities(log, "stencil_boundary")
        late = [GREATEST] * (2 * (ITERATIONS - LEARNING))
        assert boundary[2 * LEARNING :] == late, "two launches an iteration"
        assert priorities(log, "stencil_interior") == [0] * ITERATIONS
        assert process["raised"] == boundary.count(GREATEST)
        halo, computing = sorted(process["streams"], key=lambda stream: stream["share"])
        assert (halo["status"], halo["priority"]) == ("raised", GREATEST)
        assert (computing["status"], computing["priority"]) == ("large", None), "what the halo stream waits for in turn"
        assert process["waits"] >= ITERATIONS
    assert answer["totals"]["raised"] == sum(process["raised"] for process in answer["processes"])
