"""The options of other people's commands: as the commands themselves say, and never those of the program behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import cluster
import debian
import pytest

from pyshim.launch import words

USUAL = re.compile(r"^ {1,8}(?:-(\w),? +)?--([a-z][a-z-]*)( ?\[=?| ?=| <)?")
OPEN_MPI = re.compile(r"^\s*(-\S+)((?: <arg\d>)*)")


def of_usual_help(text: str) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        match = USUAL.match(line)
        for name in filter(None, match.groups()[:2] if match else ()):
            value = (match[3] or "").strip()
            found[name] = {"": 0, "=": 1, "<": 1}.get(value, -1)
    return found


def of_open_mpi(text: str) -> dict[str, int]:
    matches = filter(None, map(OPEN_MPI.match, text.splitlines()))
    return {name.lstrip("-"): match[2].count("<") for match in matches for name in match[1].split("|")}


def said(*command: str, env: dict[str, str] | None = None) -> str:
    if not shutil.which(command[0]):
        try:
            debian.install([command[0]], [command[0]])
        except debian.Missing as reason:
            pytest.skip(str(reason))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    return done.stdout + done.stderr


# Of these, Slurm's manual says otherwise than its help.
OTHERWISE = ("container", "get-user-env", "bcast", "export", "wrap", "K", "kill-on-bad-exit", "resv-ports")


def compare(known: str, told: dict[str, int], least: int, but: tuple[str, ...] = ()) -> None:
    takes = words.values_of(known)
    both = (takes.keys() & told.keys()) - set(but)
    assert {name: takes[name] for name in both} == {name: told[name] for name in both}
    assert len(both) >= least


@pytest.mark.parametrize(
    ("command", "known", "least"),
    [("srun", words.SRUN, 140), ("sbatch", words.SBATCH, 110), ("salloc", words.SALLOC, 95)],
)
def test_options_of_slurm(command, known, least, tmp_path):
    try:
        debian.install(cluster.PACKAGES, [command])
    except debian.Missing as reason:
        pytest.skip(str(reason))
    (tmp_path / "conf").write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    told = of_usual_help(said(command, "--help", env={"SLURM_CONF": str(tmp_path / "conf")}))
    compare(known, told, least, OTHERWISE)


def test_options_of_open_mpi(mpi):
    compare(words.MPIRUN, of_open_mpi(said("mpirun", "--help", "all", env=mpi.environment)), 95)


@pytest.mark.parametrize(
    ("command", "known", "least"),
    [
        ("env", words.ENV, 7),
        ("nice", words.NICE, 2),
        ("timeout", words.TIMEOUT, 7),
        ("stdbuf", words.STDBUF, 6),
        ("setsid", words.SETSID, 6),
        ("su", words.SU, 15),
        pytest.param("sudo", words.SUDO, 25, id="sudo"),  # tests/rest.py names it
    ],
)
def test_options_of_usual_commands(command, known, least):
    compare(known, of_usual_help(said(command, "--help", env={"LC_ALL": "C"})), least, ("preserve-env",))


@pytest.mark.parametrize(
    ("command", "options", "rest"),
    [
        ("srun -n 2 prog -x --export=NONE", [("n", "2")], 3),
        ("srun -n2 -lN 1 --mpi=pmi2 -- --odd", [("n", "2"), ("l", ""), ("N", "1"), ("mpi", "pmi2")], 6),
        ("srun -I prog", [("I", "")], 2),
        ("srun -I5 --exclusive --nice=3 prog", [("I", "5"), ("exclusive", ""), ("nice", "3")], 4),
        ("srun --export NONE prog", [("export", "NONE")], 3),
        ("srun --export= prog", [("export", "")], 2),
        ("srun --expo=NONE --job-n x prog", [("export", "NONE"), ("job-name", "x")], 4),  # as getopt takes it
        ("srun", [], 1),
        ("srun -", [], 1),
    ],
)
def test_options_end_where_the_program_begins(command, options, rest):
    assert words.read(command.split(), words.SRUN) == (tuple(options), rest)


@pytest.mark.parametrize(
    "command",
    [
        "srun --ex=NONE prog",  # of three options
        "srun --newer-option 3 --export=NONE prog",
        "srun -n",
        "srun --export",
        "srun -l5 prog",
        "srun --label=yes prog",
    ],
)
def test_of_what_is_not_known_nothing_is_said(command):
    assert words.read(command.split(), words.SRUN) is None


def test_open_mpi_writes_long_names_with_one_dash():
    command = "mpirun -np 2 --mca a b -x A=1 -x B -host h prog -x C"
    read = words.read(command.split(" "), words.MPIRUN, single_dash=True)
    assert read is not None
    assert [read.values(name) for name in ("np", "x", "host", "mca")] == [["2"], ["A=1", "B"], ["h"], ["a=b"]]
    assert read.rest == 12
    assert words.read(["mpirun", "--mca", "a"], words.MPIRUN, single_dash=True) is None
