"""srun, sbatch and salloc of a real Slurm, with nodes of their own names."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from seen import OVERLAP_RUN, Ranks

OUTSIDE = (OVERLAP_RUN, "--policy", "observe")


@pytest.fixture(scope="module")
def ranks(slurm):
    def command(*words, env=None, **more):
        done = slurm.run(*words, env=env, **more)
        return Ranks(done.returncode, done.stdout, done.stderr)

    return command


@pytest.mark.parametrize("mpi_type", ["none", "pmi2", "pmix"])
def test_srun_outside_and_inside(ranks, show, mpi_type):
    step = ("srun", f"--mpi={mpi_type}", "-N2", "-n3")
    outside, inside = ranks(*OUTSIDE, *step, *show), ranks(*step, *OUTSIDE, *show)
    for done in (outside, inside):
        assert done.mapped == [True] * 3, done.stderr
        assert [(rank.rank, rank.world) for rank in done.ranks] == [(0, 3), (1, 3), (2, 3)]
        assert set(done.values("SLURMD_NODENAME")) == {"n0", "n1"}
    assert outside.values("OVERLAP_TABLE") == inside.values("OVERLAP_TABLE")


def test_a_policy_arrives_as_it_is(ranks, submit, show, table):
    policy, seen = table
    start = (OVERLAP_RUN, "--policy", policy)
    for step in (("srun", "-N2", "-n2"), ("salloc", "-N2", "-n2", "srun"), ("srun", "-n2", "--export=ALL,X==a")):
        assert ranks(*start, *step, *show).values("OVERLAP_TABLE") == [seen, seen]
    done, _ = submit(f"srun -n2 {' '.join(show)}", "--export=ALL,X==a", start=start)
    assert done.values("OVERLAP_TABLE") == [seen, seen]


def test_both_ways_at_once(ranks, show):
    done = ranks(*OUTSIDE, "srun", "-n2", OVERLAP_RUN, "--policy", "h100", *show)
    (preload,) = set(done.values("LD_PRELOAD"))
    assert preload and preload.count("liboverlap.so") == 1
    assert done.values("OVERLAP_TABLE") == ranks("srun", "-n2", OVERLAP_RUN, "--policy", "h100", *show).values(
        "OVERLAP_TABLE"
    )


@pytest.mark.parametrize(
    ("option", "variable"), [("--export=NONE", None), (None, "NONE"), ("--export=HOME", None), (None, "NIL")]
)
def test_where_srun_drops_the_environment_that_is_said_and_what_is_said_helps(ranks, show, option, variable):
    env = {"SLURM_EXPORT_ENV": variable} if variable else {}
    words = (*OUTSIDE, "srun", *([option] if option else []), "-n2", *show)
    done = ranks(*words, env=env)
    assert (done.status, done.mapped) == (0, [False, False])
    instead = ranks("srun", *([option] if option else []), "-n2", *done.advice, *show, env=env)
    assert (instead.status, instead.mapped) == (0, [True, True]), instead.stderr
    assert ranks(OVERLAP_RUN, "--strict", *words[1:], env=env).status == 125


@pytest.mark.parametrize("export", ["ALL", "ALL,HOME=/tmp", "LD_PRELOAD,OVERLAP_TABLE,PATH,PYTHONPATH"])
def test_where_srun_passes_it_on_nothing_is_said(ranks, show, export):
    done = ranks(*OUTSIDE, "srun", f"--export={export}", "-n1", *show, env={"SLURM_EXPORT_ENV": "NONE"})
    assert (done.mapped, done.stderr) == ([True], "")


def test_the_programs_own_export_is_not_slurms(ranks, show):
    done = ranks(*OUTSIDE, "srun", "-n1", *show, "--export=NONE")
    assert (done.mapped, done.stderr) == ([True], "")


def test_salloc(ranks, show):
    words = ("salloc", "-N2", "-n2")
    for done in (ranks(*OUTSIDE, *words, "srun", *show), ranks(*words, *OUTSIDE, "srun", *show)):
        assert done.mapped == [True, True], done.stderr
    done = ranks(*OUTSIDE, *words, "srun", "--export=NONE", *show)
    assert (done.mapped, "srun with --export=NONE" in done.stderr) == ([False, False], True)


@pytest.fixture
def submit(slurm, tmp_path):
    """sbatch behind overlap-run, until the job has ended -> what it wrote, what was said at submission."""

    def batch(
        script: str,
        *options: str,
        env: dict[str, str] | None = None,
        start: tuple[str, ...] = OUTSIDE,
    ) -> tuple[Ranks, str]:
        job, output = tmp_path / "job", tmp_path / "out"
        job.write_text(f"#!/bin/sh\n{script}\n")
        words = (*start, "sbatch", "--parsable", f"--output={output}", "-N2", "-n4", *options)
        done = slurm.run(*words, str(job), env=env)
        assert done.returncode == 0, done.stderr
        slurm._ended(int(done.stdout.split(";")[0]), 60)
        return Ranks(0, output.read_text(), ""), done.stderr

    return batch


def test_sbatch_outside_reaches_the_script_its_steps_and_mpirun_on_all_nodes(submit, show):
    shown = " ".join(show)
    done, said = submit(f"{shown}; srun -n2 {shown}; mpirun {shown}")
    assert (done.mapped, said) == ([True] * 7, ""), done.stdout
    of_mpi = [rank for rank in done.ranks if rank.world == 4 and "OVERLAP_TABLE" in rank.environment]
    assert {rank.rank for rank in of_mpi} >= {0, 1, 2, 3}
    assert set(done.values("SLURMD_NODENAME")) == {"n0", "n1"}


@pytest.mark.parametrize("way", ["variable", "directive"])
def test_where_sbatch_drops_the_environment_that_is_said(submit, show, way):
    script = f"srun -n2 {' '.join(show)}; srun -n1 {OVERLAP_RUN} --quiet {' '.join(show)}"
    env = {"SBATCH_EXPORT": "NONE"} if way == "variable" else {}
    head = "#SBATCH --export=NONE\n" if way == "directive" else ""
    done, said = submit(head + script, env=env)
    assert sorted(done.mapped) == [False, False, True], done.stdout
    assert "starts programs without this environment: write" in said


def test_runs_of_one_batch_script_are_apart_and_the_ranks_of_a_step_are_one(submit, show, tmp_path):
    run, shown = f"{OVERLAP_RUN} --quiet --report {tmp_path}/r --policy", " ".join(show)
    script = f"{run} observe srun -n2 {shown}; {run} h100 srun -n2 {shown}; srun -n2 {run} a100 {shown}"
    runs = submit(script)[0].values("OVERLAP_REPORT")
    assert [runs.count(run) for run in runs] == [2] * 6
    assert len(list((tmp_path / "r").iterdir())) == 4, "three runs, and the link"
    notes = [path.name for path in (tmp_path / "r" / "last").glob("*.json")]
    assert notes == ["run.json"], "no rank was started otherwise"


COUNT = """import os, signal, sys, time
seen = {"USR1": 0, "TERM": 0}
def count(number, frame):
    seen[signal.Signals(number).name[3:]] += 1
    open(sys.argv[1] + "." + signal.Signals(number).name, "w").close()
signal.signal(signal.SIGUSR1, count)
signal.signal(signal.SIGTERM, count)
open(sys.argv[1] + ".ready", "w").close()
end = time.monotonic() + 120
while not seen["TERM"] and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.2)
open(sys.argv[1], "w").write(f"{os.getpid() == int(os.environ['SLURM_TASK_PID'])} {seen}")
"""


@pytest.mark.parametrize("outside", [True, False])
def test_scancel_reaches_the_program_once(slurm, tmp_path, outside):
    """It signals every process of a step: a launcher that stayed and passed signals on would deliver them twice."""
    (tmp_path / "count.py").write_text(COUNT)
    ours, step = (OVERLAP_RUN, "--quiet"), ("srun", "-n1", "--job-name", tmp_path.name)
    words = (*ours, *step) if outside else (*step, *ours)
    job = subprocess.Popen(
        [*words, sys.executable, str(tmp_path / "count.py"), str(tmp_path / "said")],
        env=slurm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    wait(tmp_path / "said.ready")
    number = slurm.run("squeue", "-h", "-o", "%A", f"--name={tmp_path.name}").stdout.strip()
    slurm.run("scancel", "--signal=USR1", f"{number}.0")
    wait(tmp_path / "said.SIGUSR1")
    slurm.run("scancel", "--signal=TERM", f"{number}.0")
    job.communicate(timeout=120)
    assert (tmp_path / "said").read_text() == "True {'USR1': 1, 'TERM': 1}"


def test_exit_status(ranks):
    for words in ((*OUTSIDE, "srun", "-n1"), ("srun", "-n1", *OUTSIDE)):
        assert ranks(*words, "sh", "-c", "exit 42").status == 42
        assert ranks(*words, "sh", "-c", "kill -SEGV $$").status == 128 + signal.SIGSEGV
    assert ranks("srun", "-n1", OVERLAP_RUN, "no-such-program").status == 127


def wait(path):
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
