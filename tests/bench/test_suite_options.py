"""The suite's exit statuses, its help, and a tree in which nobody has run make setup."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Suite = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--gpu", "h100", "--program", "no-communication/elementwise", "--rule", "hold")


def test_every_gpu_has_its_default_and_paper_policies(suite: Suite) -> None:
    done = suite("--json", "--program", "no-communication/elementwise")
    assert done.returncode == 0, done.stderr
    names = {(row["gpu"], row["policy"]) for row in json.loads(done.stdout)}
    papers = {(gpu, f"{gpu}-paper") for gpu in ("a40", "a100", "h100", "h200")}
    assert names == papers | {(gpu, gpu) for gpu in ("a40", "l40s", "a100", "h100", "h200", "b200")}


@pytest.mark.parametrize("policy", ["observe", "h100-paper"])
def test_a_check_of_no_default_policy_is_refused(suite: Suite, policy: str) -> None:
    done = suite(*QUICK, "--policy", policy, "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--check looks at default policies, and none is among these" in done.stderr
    assert "--policy h100" in done.stderr


def test_a_check_of_a_default_policy_among_others(suite: Suite) -> None:
    assert suite(*QUICK, "--policy", "h100,observe", "--check").returncode == 0


def test_help_says_what_a_user_must_know(suite: Suite) -> None:
    said = suite("--help").stdout
    for words in ("exit status: 0", "minutes on 2 cores", "simulated", "make setup"):
        assert words in " ".join(said.split()), words
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    "command",
    [("tools/bench/suite", *QUICK)],
    ids=["suite"],
)
@pytest.mark.parametrize("packages", [True, False])
def test_without_make_setup_it_says_so(
    command: tuple[str, ...], packages: bool, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """In a fresh checkout, with and without the packages that make setup installs."""
    unbuilt = shutil.ignore_patterns("_lib", "__pycache__", "results")
    for name in ("tools", "pyshim", "policies", "shim", "tests/programs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unbuilt)
    names = {**clean_environment, "COLUMNS": "80"}
    python = [sys.executable] if packages else [sys.executable, "-E", "-S"]
    done = subprocess.run([*python, *command], cwd=tmp_path, env=names, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "make setup" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count(os.linesep) <= 2
