"""Answers to what a user wrote for something else: each names what was meant, or the command that has the answer."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyshim import _native

WRONG_GPU = 'policy: 1\nname: mine\ngpu: ["H100"]\n'
NAMED = 'no GPU that is known has the name `H100`: a GPU is called as the driver calls it: write "NVIDIA H100*"'


def test_a_gpu_that_nothing_has_is_said_by_the_run_and_by_its_report(overlap, overlap_run, tmp_path, library):
    (tmp_path / "mine.yaml").write_text(WRONG_GPU)
    done = overlap_run(
        "--policy", "./mine.yaml", "--simulate", "h100", "--report", "run1", "demo-stencil", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert f"overlap: policy mine: {NAMED}\n" in done.stderr
    text = overlap("report", "run1", cwd=tmp_path).stdout
    assert f"next: in the policy mine, {NAMED}; or overlap-run " in text
    (tmp_path / "mine.yaml").write_text(WRONG_GPU.replace("H100", "NVIDIA RTX 9999"))
    done = overlap_run("--policy", "./mine.yaml", "--simulate", "h100", "true", cwd=tmp_path)
    assert "has the name" not in done.stderr, "a GPU that we do not know is no mistake"


def test_a_trace_for_a_report_and_a_report_for_a_trace(overlap, overlap_run, tmp_path, library):
    (tmp_path / "trace.json").write_bytes(gzip.decompress((_native.DEMO / "demo-stencil.json.gz").read_bytes()))
    done = overlap("report", "trace.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith(
        "overlap: help: for a profiler's trace: overlap explain trace.json\n"
    )
    assert overlap("explain", "trace.json", cwd=tmp_path).returncode == 0
    (tmp_path / "notes.txt").write_text('{"a": 1}')
    assert overlap("report", "notes.txt", cwd=tmp_path).stderr.endswith("help: name the folder: overlap report .\n")
    assert overlap_run("--simulate", "h100", "--report", "run1", "demo-stencil", cwd=tmp_path).returncode == 0
    for name in ("run1", "run1/last"):
        done = overlap("explain", name, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr == (
            f"overlap: error: {name} is a report of overlap-run, and holds no trace\n"
            f"overlap: help: overlap report {name}\n"
        )
        assert overlap("report", name, cwd=tmp_path).returncode == 0


def test_a_program_for_a_gpu(overlap_run, tmp_path, library):
    (tmp_path / "ring").write_text("")
    for name in ("./ring", "ring"):
        done = overlap_run("--simulate", name, cwd=tmp_path)
        assert done.returncode == 125 and f"help: {name} is the program: " in done.stderr
        assert f"--simulate h100 {name}\n" in done.stderr
    assert "did you mean `mi250x`?" in overlap_run("--simulate", "MI250X/MI250", "true", cwd=tmp_path).stderr


def test_a_set_that_is_nearly_one(overlap, tmp_path):
    done = overlap("tune", "--set", "ncl", "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "help: did you mean `nccl`? sets: nccl, " in done.stderr


def test_a_policy_in_this_folder_without_its_ending(overlap, overlap_run, tmp_path, library):
    (tmp_path / "ok.yaml").write_text("policy: 1\nname: ok\n")
    done = overlap_run("--policy", "ok", "true", cwd=tmp_path)
    assert done.returncode == 125 and "help: a file of this folder is written with its path: ./ok.yaml\n" in done.stderr
    assert "./ok.yaml" in overlap("policy", "check", "ok", cwd=tmp_path).stdout
    assert overlap_run("--policy", "./ok.yaml", "--quiet", "true", cwd=tmp_path).returncode == 0


TRAIN = "import torch\ntorch.zeros(1)\n"
OPTIONAL = "import ctypes\ntry:\n    import torch\nexcept ImportError:\n    torch = None\nctypes.CDLL('libcuda.so.1')\n"


@pytest.mark.parametrize(
    ("code", "command", "who"),
    [
        (TRAIN, "torchrun --nproc-per-node 2 train.py", "train.py needs torch"),
        (TRAIN, f"{sys.executable} train.py", "train.py needs torch"),
        ("from jax.numpy import zeros\n", f"{sys.executable} train.py", "train.py needs jax"),
        ("", f"{sys.executable} -m torch.distributed.run train.py", "needs torch"),
        (OPTIONAL, f"{sys.executable} train.py", None),
        ("import torchless\n", f"{sys.executable} train.py", None),
        ("import (torch\n", f"{sys.executable} train.py", None),
    ],
)
def test_a_framework_that_a_simulated_gpu_cannot_run(overlap, tmp_path, library, code, command, who):
    """What the program imports decides; what is installed beside it, or imported on trial, does not."""
    (tmp_path / "train.py").write_text(code)
    text = " ".join(overlap("doctor", "--simulate", "h100", *command.split(), cwd=tmp_path).stdout.split())
    assert ("overlap explain TRACE" in text) is (who is not None), text
    assert who is None or who in text.partition(" ok ")[0]
    there = overlap("doctor", *command.split(), cwd=tmp_path).stdout
    assert "overlap explain" not in there, "on a real GPU it runs"


def test_a_missing_module_is_one_line_and_the_program_runs(overlap_run, clean_environment, tmp_path, library):
    """Only a policy of one's own is parsed, so PyYAML may be missing unnoticed."""
    (tmp_path / "ok.yaml").write_text("policy: 1\nname: ok\n")
    words = ["--policy", "./ok.yaml", "echo", "ran"]
    code = f"import sys; sys.modules['yaml'] = None; from pyshim.cli.run import main; sys.exit(main({words!r}))"
    env = {**clean_environment, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    (log,) = tmp_path.glob("overlap-run-*.log")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.count("\n") == 1 and "the program runs without the library; please report it" in done.stderr
    assert str(log) in done.stderr and "Traceback" in log.read_text()
    env["OMPI_COMM_WORLD_RANK"] = "1"
    env["OMPI_COMM_WORLD_SIZE"] = "2"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", ""), "one rank says it"


@pytest.mark.parametrize("words", [[], ["srun"], ["sh", "-c", "true; srun demo-stencil; true"]])
def test_the_last_line_in_a_job_is_about_what_ran(overlap, overlap_run, tmp_path, library, words):
    """Behind srun, and inside salloc, the starter uses no GPU: that says nothing about the program that it starts."""
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nSLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 "$@"\n')
    srun.chmod(0o755)
    env = {"SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    program = words if words[:1] == ["sh"] else [*words, "demo-stencil"]
    done = overlap_run("--simulate", "h100", "--report", "run1", *program, cwd=tmp_path, env=env)
    *_, last = done.stderr.splitlines()
    assert done.returncode == 0 and last.startswith("overlap: raised 1 of 2 streams (117 of 160 launches), "), (
        done.stderr
    )
    assert "never used" not in done.stderr
    assert overlap("report", "run1", cwd=tmp_path).stdout.startswith("done: raised 1 of 2 streams ")


MADE_FOR = "overlap-run --simulate h100 demo-stencil"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("report run1", "report is a command of overlap: overlap report run1"),
        ("--simulate h100 policy list", "policy is a command of overlap: overlap policy list"),
        ("tune -- ./ring", "tune is a command of overlap: overlap tune -- ./ring"),
        ("--report demo-stencil", "--report took demo-stencil as its DIR: overlap-run --report DIR demo-stencil"),
        ("--report ./ring", "--report took ./ring as its DIR: overlap-run --report DIR ./ring"),
        ("--policy sh", "--policy took sh as its POLICY: overlap-run --policy POLICY sh"),
        ("--report out", "overlap-run [options] [--] PROGRAM [ARG ...]"),
        ("--report=out", "overlap-run [options] [--] PROGRAM [ARG ...]"),
        ("--simulate demo-stencil", "is the program: write the GPU before it: --simulate h100 demo-stencil"),
        ("--simulate h200 demo-stensil", "did you mean demo-stencil? overlap-run --simulate h200 demo-stencil"),
        ("demo-stensil", f"did you mean demo-stencil? {MADE_FOR}"),
        ("./rings", "did you mean ./ring?"),
        ("./stencil", "{0} holds no stencil: build it, or name the program by its path from here"),
        ("./sh", "sh is in PATH: write it without its folder"),
        ("./demo-stencil", "demo-stencil ships with overlap-run: name it without a folder, behind --simulate h100"),
        ("none/ring", "the folder none cannot be read: No such file or directory"),
    ],
)
def test_what_overlap_run_cannot_start(overlap_run, tmp_path, library, words, hint):
    (tmp_path / "ring").write_text("#!/bin/sh\n")
    (tmp_path / "ring").chmod(0o755)
    done = overlap_run(*words.split(), cwd=tmp_path)
    assert done.returncode in (125, 127)
    assert done.stderr.splitlines()[-1].endswith(hint.format(os.path.realpath(tmp_path))), done.stderr


def test_a_program_called_as_a_command_of_overlap_is_started(overlap_run, tmp_path):
    (tmp_path / "report").write_text("#!/bin/sh\necho ran\n")
    done = overlap_run("report", cwd=tmp_path)
    assert done.returncode == 127 and done.stderr.endswith("the file in this folder is ./report\n")
    (tmp_path / "report").chmod(0o755)
    done = overlap_run("--quiet", "report", cwd=tmp_path, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (done.returncode, done.stdout) == (0, "ran\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("run ./x -n 3", "a program is run by overlap-run: overlap-run ./x -n 3"),
        ("run", "a program is run by overlap-run: overlap-run PROGRAM"),
        ("./x", "a program is run by overlap-run: overlap-run ./x"),
        ("sh -c true", "a program is run by overlap-run: overlap-run sh -c true"),
        ("demo-stencil", f"{MADE_FOR} runs it; overlap demo compares it without and with overlap-run"),
        ("reprot", "did you mean report?"),
        ("nothing", "commands: policy, report, explain, tune, env, doctor, demo"),
        ("explain demo-stensil", "did you mean demo-stencil?"),
        ("explain ring.jsn", "did you mean ring.json?"),
        ("report run", "did you mean run1?"),
        ("report elsewhere", "help: make one: overlap-run --report elsewhere PROGRAM"),
        ("tune -- ./stencil", "{0} holds no stencil: build it, or name the program by its path from here"),
        ("tune demo-stencil", "simulated GPUs only: overlap tune --simulate h100 -- demo-stencil"),
    ],
)
def test_what_overlap_does_not_know(overlap, tmp_path, library, words, hint):
    (tmp_path / "ring.json").write_text("{}")
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "run.json").write_text("{}")
    done = overlap(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(hint.format(os.path.realpath(tmp_path))), done.stderr


def test_the_advice_for_the_bundled_program_is_taken_by_tune(overlap, tmp_path, library):
    advice = overlap("tune", "demo-stencil", cwd=tmp_path).stderr.rpartition("only: overlap ")[2]
    _, *words = shlex.split(advice)
    offered = overlap("tune", *words, cwd=tmp_path).stderr.rpartition(": --metric ")[2]
    few = ("--arm", "idle=observe")  # else it tries a set of variables, too
    done = overlap("tune", "--metric", shlex.split(offered)[0], *few, *words, cwd=tmp_path)
    assert done.returncode == 0 and "keep default" in done.stdout, done.stderr


def test_the_program_that_gains_most_is_tuned_with_its_launcher(overlap, overlap_run, tmp_path, library):
    for ranks in (1, 2):
        for rank in range(ranks):
            env = {"RANK": f"{rank}", "WORLD_SIZE": f"{ranks}", "TORCHELASTIC_RUN_ID": "one"}
            done = overlap_run("--simulate", "h100", "--report", f"of-{ranks}", "demo-stencil", cwd=tmp_path, env=env)
            assert done.returncode == 0, done.stderr
        text = overlap("report", f"of-{ranks}", "--jobs", cwd=tmp_path).stdout
        assert f"next: overlap tune -- {'LAUNCHER ' * (ranks > 1)}demo-stencil, by " in text


def test_of_several_runs_it_is_said_which_is_reported(overlap, overlap_run, tmp_path, library):
    for number in (1, 2):
        assert overlap_run("--simulate", "h100", "--report", "out", "demo-stencil", cwd=tmp_path).returncode == 0
        done = overlap("report", "out", cwd=tmp_path)
        assert ("of another: overlap report out/RUN" in done.stderr) is (number == 2)
    last = os.path.basename(os.path.realpath(tmp_path / "out" / "last"))
    assert f"out holds 2 runs; this is the latest, {last}; " in done.stderr
    for words in ((f"out/{last}",), ("out/last",), ("--quiet", "out")):
        assert "2 runs" not in overlap("report", *words, cwd=tmp_path).stderr


def test_a_report_that_no_library_wrote_names_the_prolog(overlap, tmp_path):
    (tmp_path / "out").mkdir()
    done = overlap("report", "out", cwd=tmp_path)
    assert done.returncode == 1 and "OVERLAP_REPORT=DIR alone makes none: a TaskProlog or a module" in done.stderr


DEPLOY = Path(__file__).resolve().parents[2] / "tools" / "deploy"


@pytest.mark.parametrize(("task", "status"), [({}, 2), ({"SLURM_PROCID": "0"}, 0)])
def test_a_mistyped_option_of_the_prolog(clean_environment, task, status):
    """It must not end a task, and must export nothing."""
    command = ["sh", str(DEPLOY / "task-prolog"), "--chekc"]
    done = subprocess.run(command, env={**clean_environment, **task}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr == "overlap: error: task-prolog takes no argument but --check\n"


def test_a_mistyped_option_of_the_installer(python, tmp_path):
    done = python(str(DEPLOY / "install"), str(tmp_path / "o"), "--defualt", "x")
    assert done.returncode == 2 and done.stderr.endswith("help: did you mean --default?\n"), done.stderr
    done = python(str(DEPLOY / "install"))
    assert done.stderr.endswith("help: tools/deploy/install --help\n")
