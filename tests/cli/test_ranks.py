"""overlap-run before every rank of a step: with --strict a rank that was started otherwise than the first refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pyshim import __version__
from pyshim.errors import OverlapError
from pyshim.launch import folder, plan

TWO = {"SLURM_STEP_NUM_TASKS": "2"}
OUTER = "0123456789abcdef"


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
    assert len(list((tmp_path / "r").iterdir())) == 1, "it leaves nothing behind"


def test_the_report_may_be_named_by_the_environment(start, overlap_run, tmp_path, library):
    """Its folder has characters that are written otherwise there."""
    report = tmp_path / "a b%c"
    start(0, "--policy", "observe", "--report", str(report))
    named = str(report).replace("%", "%25").replace(" ", "%20")
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
    env = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path), **step, "OVERLAP_REPORT": named}
    words = ("--policy", "h100-paper", "echo", "ran")
    strict = overlap_run("--strict", *words, env=env)
    assert (strict.returncode, strict.stdout) == (125, "")
    assert "the ranks of this step differ" in strict.stderr
    assert overlap_run(*words, env=env).stdout == "ran\n"


def test_starts_that_belong_together_may_be_given_a_name(overlap_run, tmp_path, library):
    """torchrun on each host by hand, say: overlap-run is outside, where no rank is known."""
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    env = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path), "OVERLAP_RUN_ID": "00000000000000ab"}
    words = ("--strict", "--report", str(tmp_path / "r"), "--policy")
    assert overlap_run(*words, "observe", "true", env=env).returncode == 0
    assert (tmp_path / "r" / "run-00000000000000ab.json").exists()
    assert overlap_run(*words, "h100", "true", env=env).returncode == 125
    assert overlap_run(*words, "h100", "true", env={**env, "OVERLAP_RUN_ID": "mine"}).returncode == 0


def test_a_name_by_hand_counts_beside_a_folder_by_hand(overlap_run, tmp_path, library):
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    named = {"OVERLAP_RUN_ID": "00000000000000ab", "OVERLAP_REPORT": str(tmp_path / "r")}
    env = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path), **named}
    words = ("--strict", "--report", str(tmp_path / "r"), "--policy")
    assert [overlap_run(*words, policy, "true", env=env).returncode for policy in ("observe", "h100")] == [0, 125]
    bad = overlap_run(*words, "observe", "true", env={**env, "OVERLAP_RUN_ID": "00000000000000AB"})
    assert bad.stderr.startswith("overlap: OVERLAP_RUN_ID is left out: it needs 16 of the digits 0-9 and a-f\n")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"OVERLAP_TABLE": "t", "OVERLAP_RUN_ID": f"{7:016x}"}, "the policy comes from around this command"),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, "this launcher gives its ranks no name in common"),
    ],
)
def test_strict_says_where_it_cannot_compare(overlap_run, tmp_path, library, more, why):
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    (tmp_path / "r").mkdir()
    ranks = {"RANK": "0", "WORLD_SIZE": "2", **more}
    reports = {"OVERLAP_REPORT": str(tmp_path / "r")} if "OVERLAP_TABLE" in more else {}
    env = {"LD_LIBRARY_PATH": str(tmp_path), "HOME": str(tmp_path), **ranks, **reports}
    done = overlap_run("--strict", "--report", str(tmp_path / "r"), "true", env=env)
    assert done.returncode == 0
    assert f"overlap: --strict compares nothing here: {why}" in done.stderr
    assert (
        overlap_run("--strict", "--report", str(tmp_path / "r"), "--dry-run", "true", env=env).stderr.count("only") == 0
    )


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
    assert len(list((tmp_path / "r").iterdir())) == 2


def test_another_step_may_be_under_another_policy(start, library):
    assert start(0, "--policy", "observe").returncode == 0
    assert start(0, "--policy", "h100-paper", SLURM_STEP_ID="1").returncode == 0


def test_runs_of_one_batch_script_may_be_under_other_policies(start, tmp_path, library):
    """Before srun, in a script or a shell that is a step of one process."""
    script = {"SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "4294967290"}
    assert start(0, "--policy", "observe", **script).returncode == 0
    assert start(0, "--policy", "h100-paper", **script).returncode == 0
    assert len(folder.runs(str(tmp_path / "r"))) == 2


@pytest.fixture
def within(start, tmp_path):
    """As start, for a rank whose run has a name: of the site's prolog, or of an overlap-run around the launcher."""
    around = plan.make(plan.Request(policy="observe"), {}).settings.table

    def run(rank: int, *options: str, outer: str = OUTER, **more: str):
        named = {"OVERLAP_TABLE": around, "OVERLAP_REPORT": str(tmp_path / "r"), "OVERLAP_RUN_ID": outer}
        return start(rank, *options, **{**named, **more})

    return run


@pytest.mark.parametrize("outer", [OUTER, "mine"])
def test_inside_of_another_a_rank_under_another_policy_refuses_too(within, tmp_path, library, outer):
    assert within(0, "--policy", "observe", outer=outer).stdout == "ran\n"
    done = within(1, "--policy", "h100-paper", outer=outer)
    assert (done.returncode, done.stdout) == (125, "")
    assert "h100-paper (" in done.stderr and "observe (" in done.stderr
    assert within(2, "--policy", "observe", outer=outer).stdout == "ran\n"
    (run,) = folder.runs(str(tmp_path / "r"))
    assert run.outer == outer
    assert run.id != outer and (run.id[:8] == outer[:8]) == (outer == OUTER)


def test_inside_of_another_what_chooses_nothing_belongs_to_it(within, tmp_path, library):
    for rank in range(2):
        assert within(rank).stdout == "ran\n"
    assert list((tmp_path / "r").iterdir()) == []


@pytest.mark.parametrize("more", [{"SLURM_STEP_ID": "1"}, {"SLURM_STEP_NUM_TASKS": "1"}], ids=["step", "script"])
def test_inside_of_another_each_step_may_choose(within, tmp_path, library, more):
    assert within(0, "--policy", "observe", **more).returncode == 0
    again = {"SLURM_STEP_ID": "2"} if "SLURM_STEP_ID" in more else more
    assert within(0, "--policy", "h100-paper", **again).returncode == 0
    assert len(folder.runs(str(tmp_path / "r"))) == 2


def test_a_rank_with_other_variables_refuses(start, tmp_path, library):
    policy = tmp_path / "mine.yaml"
    policy.write_text("policy: 1\nname: mine\nenvironment: {NCCL_X: 1}\ncompute: []\n")
    assert start(0, "--policy", str(policy)).returncode == 0
    done = start(1, "--policy", str(policy), NCCL_X="2")
    assert done.returncode == 125
    assert "which sets nothing; on " in done.stderr and "which sets NCCL_X=1" in done.stderr


def test_a_rank_of_another_version_refuses(start, tmp_path, library):
    assert start(0, "--policy", "observe").returncode == 0
    (file,) = (tmp_path / "r").iterdir()
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
    first = folder.Run("0" * 16, 1.0, ("x",), ({"name": "a", "hash": "1", "file": None},), "0.1.0")
    other = first._replace(policies=({"name": "b", "hash": "2", "file": None},))

    def late(source, target):
        Path(target).write_text(json.dumps(first._asdict()))
        raise FileExistsError

    monkeypatch.setattr(folder.os, "link", late)
    with pytest.raises(OverlapError, match=r" b \(2\), .* a \(1\), "):
        folder.write(str(tmp_path), other, strict=True)
    assert [path.name for path in tmp_path.iterdir()] == [f"run-{'0' * 16}.json"]
