"""overlap-run before every rank of a step: with --strict a rank that was started otherwise than the first refuses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyshim import __version__
from pyshim.errors import OverlapError
from pyshim.start import folder, plan

STENCIL = ("demo-stencil", "-", "plain", "2", "stencil/style-0")
TWO = {"SLURM_STEP_NUM_TASKS": "2"}


@pytest.fixture
def start(overlap_run, tmp_path):
    """Start one rank of a step as a launcher does: start(rank, *options); the rank reports to tmp_path/r."""
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    base = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path)}

    def run(rank: int, *options: str, launcher: str = "slurm", cwd: Path = tmp_path, **more: str):
        step = {
            "slurm": {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), **TWO},
            "torchrun": {"RANK": str(rank), "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n0", "MASTER_PORT": "2"},
            "mpirun": {"OMPI_COMM_WORLD_RANK": str(rank), "PMIX_NAMESPACE": "1891172353"},
        }[launcher]
        words = ("--strict", "--report", str(tmp_path / "r"), *options, "echo", "ran")
        return overlap_run(*words, env={**base, **step, **more}, cwd=cwd)

    return run


def runs(report: Path) -> list[str]:
    """The folders of the runs, by name."""
    return sorted(path.name for path in report.iterdir() if not path.is_symlink())


def files(run: Path) -> list[str]:
    """Its files, without those by which a rank says that it has begun."""
    return sorted(name for name in os.listdir(run) if not name.startswith("."))


@pytest.mark.parametrize("launcher", ["slurm", "torchrun", "mpirun"])
def test_a_rank_under_another_policy_refuses(start, launcher, tmp_path, library):
    assert start(0, "--policy", "observe", launcher=launcher).stdout == "ran\n"
    done = start(1, "--policy", "h100-paper", launcher=launcher)
    assert (done.returncode, done.stdout) == (125, "")
    sentence, hint = done.stderr.splitlines()
    assert sentence.startswith("overlap: error: the ranks of this step differ: on ")
    assert "h100-paper (" in sentence and "observe (" in sentence and sentence.index("h100") < sentence.index("observe")
    assert hint.startswith("overlap: help: start all ranks with one version, policy")
    assert "if this is another run, name another folder" in hint
    assert start(2, "--policy", "observe", launcher=launcher).stdout == "ran\n"
    assert files(tmp_path / "r" / "last") == ["run.json"], "it leaves nothing behind"
    assert len(list((tmp_path / "r").iterdir())) == 2, "one run, and the link"


def test_without_a_report_strict_says_that_it_compares_nothing(overlap_run, tmp_path, library):
    env = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path), "RANK": "0", "WORLD_SIZE": "2"}
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    done = overlap_run("--strict", "--policy", "observe", "echo", "ran", env=env)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == "overlap: --strict compares ranks with each other only with --report DIR\n"
    assert overlap_run("--strict", "--policy", "observe", "true", env={**env, "WORLD_SIZE": "1"}).stderr == ""


def test_without_strict_it_runs_and_says_so_in_the_report(start, overlap_run, tmp_path, library):
    start(0, "--policy", "observe")
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", **TWO}
    env = {"LD_LIBRARY_PATH": str(tmp_path), **step}
    done = overlap_run("--report", str(tmp_path / "r"), "--policy", "h100-paper", "echo", "ran", env=env)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert len(files(tmp_path / "r" / "slurm-7.0")) == 2


def test_another_step_may_be_under_another_policy(start, library):
    assert start(0, "--policy", "observe").returncode == 0
    assert start(0, "--policy", "h100-paper", SLURM_STEP_ID="1").returncode == 0


def test_runs_of_one_batch_script_may_be_under_other_policies(start, tmp_path, library):
    """Before srun, in a script or a shell that is a step of one process."""
    script = {"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "4294967290"}
    assert start(0, "--policy", "observe", **script).returncode == 0
    assert start(0, "--policy", "h100-paper", **script).returncode == 0
    assert len(runs(tmp_path / "r")) == 2


def test_ranks_that_start_at_once_share_a_run(start, tmp_path, library):
    """And leave one run.json and one link, whoever is faster."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda rank: start(rank, "--policy", "observe"), range(4)))
    assert [(one.returncode, one.stdout, one.stderr) for one in done] == [(0, "ran\n", "")] * 4
    assert runs(tmp_path / "r") == ["slurm-7.0"]
    assert os.readlink(tmp_path / "r" / "last") == "slurm-7.0"
    assert files(tmp_path / "r" / "last") == ["run.json"]


@pytest.mark.parametrize("launcher", ["slurm", "torchrun"])
def test_a_step_may_hold_several_runs(start, launcher, tmp_path, library):
    """torchrun's steps have all one name by default, and a script of srun may start several programs. A rank that was
    refused has not begun."""
    for policy in ("observe", "h100-paper"):
        for rank in range(2):
            assert start(rank, "--policy", policy, launcher=launcher).stdout == "ran\n"
        assert start(2, "--policy", "a100", launcher=launcher).returncode == 125
    first, second = runs(tmp_path / "r")
    assert second == f"{first}.2" and os.readlink(tmp_path / "r" / "last") == second
    policies = [
        json.loads((tmp_path / "r" / run / "run.json").read_text())["policies"][0]["name"] for run in (first, second)
    ]
    assert policies == ["observe", "h100-paper"]


@pytest.fixture
def within(start, tmp_path):
    """As start, for a rank inside of a run: of the site's prolog, or of an overlap-run around the launcher."""
    around = plan.make(plan.Request(policy="observe"), {}).settings.table
    outer = tmp_path / "r" / "outer"
    outer.mkdir(parents=True)

    def run(rank: int, *options: str, **more: str):
        return start(rank, *options, **{"OVERLAP_TABLE": around, "OVERLAP_REPORT": str(outer), **more})

    return run


def test_inside_of_another_a_rank_under_another_policy_refuses_too(within, tmp_path, library):
    assert within(0, "--policy", "observe").stdout == "ran\n"
    done = within(1, "--policy", "h100-paper")
    assert (done.returncode, done.stdout) == (125, "")
    assert "h100-paper (" in done.stderr and "observe (" in done.stderr
    assert within(2, "--policy", "observe").stdout == "ran\n"
    assert runs(tmp_path / "r") == ["outer"] and not (tmp_path / "r" / "last").exists()
    assert os.listdir(tmp_path / "r" / "outer") == ["slurm-7.0.json"]


def test_inside_of_another_what_chooses_nothing_belongs_to_it(within, tmp_path, library):
    for rank in range(2):
        done = within(rank)
        assert done.stdout == "ran\n"
        assert ("--strict compares nothing here: the policy comes from around this command" in done.stderr) is not rank
    assert runs(tmp_path / "r") == ["outer"] and os.listdir(tmp_path / "r" / "outer") == []


def test_inside_of_another_a_folder_that_is_gone_stops_nothing_but_strict(within, overlap_run, tmp_path, library):
    """Only the library would write there, and says so itself."""
    (tmp_path / "r" / "outer").rmdir()
    (tmp_path / "r").rmdir()
    (tmp_path / "r").write_text("")
    env = {"OVERLAP_TABLE": "x", "OVERLAP_REPORT": str(tmp_path / "r" / "outer"), "LD_LIBRARY_PATH": str(tmp_path)}
    assert overlap_run("--policy", "observe", "echo", "ran", env=env).stdout == "ran\n"
    assert within(0, "--policy", "observe").returncode == 125


@pytest.mark.parametrize("more", [{"SLURM_STEP_ID": "1"}, {"SLURM_STEP_NUM_TASKS": "1"}], ids=["step", "script"])
def test_inside_of_another_each_step_may_choose(within, tmp_path, library, more):
    assert within(0, "--policy", "observe", **more).returncode == 0
    again = {"SLURM_STEP_ID": "2"} if "SLURM_STEP_ID" in more else more
    assert within(0, "--policy", "h100-paper", **again).returncode == 0
    assert len(os.listdir(tmp_path / "r" / "outer")) == 2


def test_a_rank_with_other_variables_refuses(start, tmp_path, library):
    policy = tmp_path / "mine.yaml"
    policy.write_text("policy: 1\nname: mine\nenvironment: {NCCL_X: 1}\ncompute: []\n")
    assert start(0, "--policy", str(policy)).returncode == 0
    done = start(1, "--policy", str(policy), NCCL_X="2")
    assert done.returncode == 125
    assert "which sets nothing; on " in done.stderr and "which sets NCCL_X=1" in done.stderr


def test_a_rank_of_another_version_refuses(start, tmp_path, library):
    assert start(0, "--policy", "observe").returncode == 0
    file = tmp_path / "r" / "last" / "run.json"
    first = json.loads(file.read_text())
    file.write_text(json.dumps({**first, "overlap_run": "0.0.9", "host": "node7"}))
    done = start(1, "--policy", "observe")
    assert done.returncode == 125
    assert f"overlap-run {__version__}" in done.stderr
    assert "; on node7 that came first observe (" in done.stderr and "overlap-run 0.0.9" in done.stderr


def test_a_rank_that_finds_another_table_in_its_environment_refuses(start, library):
    """A prolog or module set one policy on this node, and another one on the node of the first rank."""
    tables = [plan.make(plan.Request(policy=policy), {}).settings.table for policy in ("observe", "h100-paper")]
    assert start(0, OVERLAP_TABLE=tables[0]).returncode == 0
    assert start(1, OVERLAP_TABLE=tables[0]).returncode == 0
    done = start(2, OVERLAP_TABLE=tables[1])
    assert done.returncode == 125
    assert done.stderr.count("the policy table ") == 2


def test_a_rank_whose_node_lacks_the_library_refuses(overlap_run, start, tmp_path, library):
    """A copy of the package as it is on a node where its object code was not installed."""
    package, here = tmp_path / "node" / "pyshim", Path(plan.__file__).parents[1]
    shutil.copytree(here, package, ignore=shutil.ignore_patterns("liboverlap.so", "simgpu"))
    shutil.copytree(here.parent / "policies", package.parent / "policies")
    assert start(0, "--policy", "observe").returncode == 0
    done = start(1, "--policy", "observe", cwd=package.parent, PYTHONPATH="")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"the library {package}/_lib/liboverlap.so is missing" in done.stderr


def test_of_two_that_come_at_once_one_is_the_first(tmp_path, monkeypatch):
    """The file appears between the look and the link."""
    first = folder.Run("x", 1.0, ("x",), ({"name": "a", "hash": "1", "file": None},), "0.1.0")
    other = first._replace(policies=({"name": "b", "hash": "2", "file": None},))

    def late(source, target):
        Path(target).write_text(json.dumps(first._asdict()))
        raise FileExistsError

    monkeypatch.setattr(folder.os, "link", late)
    with pytest.raises(OverlapError, match=r" b \(2\), .* a \(1\), "):
        folder.write(str(tmp_path), other, strict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


READ_ONLY = "mount -t tmpfs -o ro none {0} && exec {1}"
FULL = "mount -t tmpfs -o size=4k none {0} && (cat /dev/zero >{0}/x; true) 2>/dev/null && {1} || (ls {0}; exit 125)"


@pytest.mark.parametrize(("mount", "why"), [(READ_ONLY, "cannot be written to"), (FULL, "No space left on device")])
def test_a_folder_that_cannot_be_written_to_ends_before_the_program_starts(clean_environment, tmp_path, mount, why):
    """On a file system of its own, which no permission of root's overcomes."""
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", tmp_path], check=False).returncode:
        pytest.skip("needs root, to mount a file system")
    words = [sys.executable, "-m", "pyshim.cli.run", "--report", tmp_path, "echo", "ran"]
    script = mount.format(shlex.quote(str(tmp_path)), shlex.join(map(str, words)))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], env=clean_environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (125, "x\n" * (mount == FULL)), "no empty run is left"
    error, hint = done.stderr.splitlines()
    assert (
        error.endswith(f" {why}") and hint == "overlap: help: --report DIR names another folder, which you can write to"
    )
    assert done.stderr.startswith(f"overlap: error: the report folder {tmp_path}")


def test_a_last_that_is_not_ours_is_one_line_and_stays(overlap_run, overlap, tmp_path, library):
    (tmp_path / "last").write_text("mine")
    done = overlap_run("--simulate", "h100", "--report", str(tmp_path), *STENCIL)
    (run,) = (path for path in tmp_path.iterdir() if path.name != "last")
    assert done.returncode == 0, done.stderr
    said = f"{tmp_path}/last is no link of overlap-run and stays as it is; this run is read by: overlap report {run}"
    assert done.stderr.splitlines().count(f"overlap: {said}") == 1
    assert (tmp_path / "last").read_text() == "mine"
    assert ": 1 process, policy default on simulated " in overlap("report", str(run)).stdout


def test_what_is_started_inside_writes_into_the_run_around_it(overlap_run, overlap, tmp_path, library):
    """By a script, with and without an overlap-run of its own: another policy, and the same folder once more."""
    again = f"{sys.executable} -m pyshim.cli.run"
    step = " ".join(STENCIL)
    script = f"{step}; {again} {step}; {again} --report {tmp_path}/r%41 --policy observe {step}"
    done = overlap_run("--simulate", "h100", "--report", str(tmp_path / "r%41"), "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    (run,) = runs(tmp_path / "r%41")
    answer = json.loads(overlap("report", str(tmp_path / "r%41"), "--json").stdout)
    assert [process["policy"] for process in answer["processes"]] == ["default", "default", "observe"]
    assert [start["id"] for start in answer["runs"]] == [run, run]
    assert answer["runs"][0]["command"][:2] == ["sh", "-c"]
    assert overlap_run("--simulate", "h100", "--report", str(tmp_path / "r%41"), "true").returncode == 0
    assert len(runs(tmp_path / "r%41")) == 2, "and what is started after it does not"
