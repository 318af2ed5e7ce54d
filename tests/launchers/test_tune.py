"""`overlap tune` in front of real launchers: both ranks have the variables and the policy of the arm."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from seen import OVERLAP_RUN, SHOW, Ranks

OVERLAP = str(Path(OVERLAP_RUN).with_name("overlap"))
METRIC = ("--metric", "step ([0-9]+) ms", "--limit", "5m")
NCCL = ("--try", "NCCL_MAX_CTAS=8,16")


@pytest.fixture
def ranks(tmp_path):
    """A program that says what Ranks reads, and takes less time with fewer blocks."""
    (tmp_path / "show.py").write_text(SHOW)
    path = tmp_path / "ranks"
    path.write_text(f"#!/bin/sh\n{sys.executable} {tmp_path}/show.py\necho step ${{NCCL_MAX_CTAS:-20}} ms\n")
    path.chmod(0o755)
    return str(path)


def check(folder: Path, variables: bool = True) -> None:
    """Every run of every arm had two ranks, with what the arm says and nothing else."""
    files = sorted((folder / "tune-1").glob("*.txt"))
    assert {file.stem[4:] for file in files} >= {"bare", "NCCL_MAX_CTAS=8", "NCCL_MAX_CTAS=16"}
    for file in files:
        seen = Ranks(0, file.read_text(), "")
        arm = file.stem[4:]
        assert seen.mapped == [arm == "default"] * 2, arm
        assert seen.values("NCCL_MAX_CTAS") == [arm.partition("=")[2] or None] * 2, arm
        assert [bool(value) for value in seen.values("OVERLAP_TABLE")] == [arm == "default"] * 2, arm


def use(answer: str, folder: Path, environment: dict[str, str]) -> None:
    """The command that the answer ends with starts both ranks with what was kept."""
    command = answer.splitlines()[-1].removeprefix("use").strip()
    env = {**environment, "PATH": f"{Path(OVERLAP).parent}:{environment['PATH']}"}
    used = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False)
    seen = Ranks(used.returncode, used.stdout, used.stderr)
    assert (seen.status, seen.mapped) == (0, [True, True]), used.stderr
    assert seen.values("NCCL_MAX_CTAS") == ["8", "8"]


def test_mpirun(run, mpi, ranks, tmp_path):
    command = (*mpi.alone, "-np", "2", ranks)
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--", *command, env=mpi.environment, cwd=tmp_path)
    assert done.status == 0, done.stderr
    assert "keep NCCL_MAX_CTAS=8: 60.0 % less than bare" in done.stdout
    check(tmp_path)


def test_mpirun_on_other_hosts_and_the_command_to_use_it(run, mpi, ranks, tmp_path, clean_environment):
    command = (*mpi.hosts("n1", "n2"), ranks)
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--", *command, env=mpi.environment, cwd=tmp_path)
    assert done.status == 0, done.stderr
    check(tmp_path)
    use(done.stdout, tmp_path, {**clean_environment, **mpi.environment})


def test_an_option_that_drops_the_environment_is_refused(run, mpi, ranks, tmp_path):
    command = (*mpi.hosts("n1", "n2")[:-2], "-x", "MINE", "-np", "2", ranks)
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--", *command, env={**mpi.environment, "MINE": "1"}, cwd=tmp_path)
    assert done.status == 1 and "so all arms would be alike" in done.stderr
    assert not (tmp_path / "tune-1").exists()


@pytest.mark.parametrize("hosts", [(), ("n1", "n2")])
def test_mpiexec_of_mpich_and_the_command_to_use_it(run, mpich, ranks, tmp_path, clean_environment, hosts):
    command = mpich.hosts(*hosts) if hosts else mpich.alone
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--simulate", "h100", "--", *command, ranks, cwd=tmp_path)
    assert done.status == 0, done.stderr
    assert "keep NCCL_MAX_CTAS=8: 60.0 % less than bare" in done.stdout
    check(tmp_path)
    use(done.stdout, tmp_path, clean_environment)


def test_an_option_of_mpich_that_drops_the_environment_is_refused(run, mpich, ranks, tmp_path):
    command = (mpich.hosts("n1", "n2")[0], "-genvnone", *mpich.hosts("n1", "n2")[1:], ranks)
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--", *command, cwd=tmp_path)
    assert done.status == 1 and "so all arms would be alike" in done.stderr
    assert not (tmp_path / "tune-1").exists()


def test_torchrun(run, torch, ranks, tmp_path):
    command = (str(torch / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python", ranks)
    done = run(OVERLAP, "tune", *METRIC, *NCCL, "--", *command, cwd=tmp_path)
    assert done.status == 0, done.stderr
    check(tmp_path)


def test_srun_inside_of_a_job(slurm, ranks, tmp_path):
    words = (OVERLAP, "tune", *METRIC, *NCCL, "--output", str(tmp_path / "tune-1"), "--", "srun", "-n2", ranks)
    done = slurm.run("salloc", "-N2", "-n2", *words)
    assert done.returncode == 0, done.stderr
    assert "keep NCCL_MAX_CTAS=8" in done.stdout
    check(tmp_path)
    jobs = slurm.run("squeue", "-h", "--states=PENDING,RUNNING")  # salloc's own job may still be completing
    assert (jobs.returncode, jobs.stdout) == (0, ""), jobs.stderr
    outside = slurm.run(*words)
    assert outside.returncode == 2 and "srun outside of a job queues a job for every run" in outside.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("use"))
    assert shlex.split(line)[1:3] == ["NCCL_MAX_CTAS=8", "overlap-run"]
