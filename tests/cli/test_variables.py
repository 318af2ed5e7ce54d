"""The variables that policies set: what reaches the program, the report, and those who ask."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pyshim.cli import run as command
from tests.cli.shown import SHOW, shown


@pytest.fixture
def asking(tmp_path: Path) -> str:
    """A policy that asks for variables."""
    path = tmp_path / "asking.yaml"
    path.write_text("policy: 1\nname: asking\nenvironment: {TORCH_NCCL_HIGH_PRIORITY: 1, NCCL_DEBUG: INFO}\n")
    return str(path)


def test_variables_of_a_policy_reach_the_program_and_the_report(overlap_run, driver, asking, tmp_path, library):
    report = tmp_path / "r"
    env = {**driver, "HOME": str(tmp_path), "NCCL_DEBUG": "WARN"}
    done = overlap_run("--policy", asking, "--report", str(report), "--quiet", *SHOW, env=env)
    seen = shown(done)
    assert (seen["TORCH_NCCL_HIGH_PRIORITY"], seen["NCCL_DEBUG"]) == ("1", "WARN")
    assert json.loads((report / "last" / "run.json").read_text())["environment"] == {"TORCH_NCCL_HIGH_PRIORITY": "1"}


def test_a_dry_run_lists_what_is_set_and_what_is_left(overlap_run, driver, asking, tmp_path, library):
    env = {**driver, "HOME": str(tmp_path), "NCCL_DEBUG": "WARN"}
    done = overlap_run("--policy", asking, "--dry-run", "true", env=env)
    lines = done.stderr.splitlines()
    assert "overlap: would set TORCH_NCCL_HIGH_PRIORITY=1" in lines
    assert "overlap: NCCL_DEBUG is left as it is set: WARN" in lines
    assert not any("would set NCCL" in line for line in lines)


def test_policies_that_differ_set_nothing_and_a_dry_run_says_why(overlap_run, driver, tmp_path, library):
    env = {**driver, "HOME": str(tmp_path)}
    for name, gpu, more in (("a", "sm_80", "environment: {A: 1}"), ("b", "sm_90", "compute: []")):
        text = f"policy: 1\nname: {name}\ngpu: {gpu}\n{more}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    both = f"{tmp_path}/a.yaml,{tmp_path}/b.yaml"
    done = overlap_run("--policy", both, "--dry-run", "true", env=env)
    why = "because it is not known yet which policy will apply: A=1 in a; not in b"
    assert f"overlap: A is not set, {why}\n" in done.stderr
    assert "would set A=" not in done.stderr
    done = overlap_run("--policy", both, "--simulate", "a100", "--dry-run", "true", env=env)
    assert "overlap: would set A=1\n" in done.stderr


def test_a_rank_that_was_started_otherwise_is_found(overlap_run, overlap, driver, asking, tmp_path, library):
    report = tmp_path / "r"
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "HOME": str(tmp_path), **driver}
    for rank, more in (("0", {"NCCL_DEBUG": "WARN"}), ("1", {})):
        env = {**step, "SLURM_PROCID": rank, **more}
        assert overlap_run("--policy", asking, "--report", str(report), "true", env=env).returncode == 0
    from pyshim.report.collect import collect
    from pyshim.report.findings import findings

    found = findings(collect(str(report), waiting_room="/nonexistent"))
    (sentence,) = (one for one in found if "the first rank set" in one)
    second, first = sentence.split("; the first rank set ")
    assert second.endswith(" set NCCL_DEBUG=INFO, TORCH_NCCL_HIGH_PRIORITY=1 for the program")
    assert first == "TORCH_NCCL_HIGH_PRIORITY=1"


def test_nothing_is_set_where_it_is_too_long(asking, tmp_path, monkeypatch, capfd, library):
    calls = []

    def execute(path, words, environment):
        calls.append(environment)
        if "OVERLAP_TABLE" in environment:
            raise command.TooLong
        raise SystemExit(0)

    monkeypatch.setattr(command, "execute", execute)
    with pytest.raises(SystemExit):
        command.start(["--policy", asking, "true"], {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert "too long with ours" in capfd.readouterr().err
    first, second = calls
    assert second["HOME"] == str(tmp_path), "what the program had"
    assert first["TORCH_NCCL_HIGH_PRIORITY"] == "1"
    assert not [name for name in second if name.startswith(("NCCL_", "TORCH_", "LD_", "OVERLAP_"))]
