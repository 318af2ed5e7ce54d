"""The suite's derived policies, its exit statuses, its help, and a tree in which nobody has run make setup."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Suite = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--gpu", "h100", "--program", "no-communication/elementwise", "--rule", "hold")


def test_windows_take_losses_away_and_leave_gains(suite: Suite) -> None:
    programs = ("no-communication/simt", "synchronous/middle", "communication-bound/half-more", "sharded/simt")
    policies = ("a100-paper", "a100-paper-windows")
    done = suite("--json", "--gpu", "a100", "--policy", ",".join(policies), "--program", ",".join(programs))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["policy"] for row in found} == set(policies)
    for rule in ("hold", "backfill"):
        rows: dict[tuple[str, str], dict[str, Any]] = {
            (row["program"], row["policy"]): row for row in found if row["rule"] == rule
        }
        always, windows = ({name: rows[name, policy] for name in programs} for policy in policies)
        for name in programs[:2]:
            assert always[name]["change_percent"] > 10
            assert windows[name]["change_percent"] < 0.5 and windows[name]["shaped"] == 0
        overlapped = programs[2]
        assert windows[overlapped]["change_percent"] < always[overlapped]["change_percent"] < -5
        assert 0 < windows[overlapped]["shaped"] < always[overlapped]["shaped"]
        # Every launch that the rule matches is in a window: nothing is different.
        assert windows[programs[3]]["shaped"] == always[programs[3]]["shaped"] > 0


def test_every_paper_policy_has_one_with_windows(suite: Suite) -> None:
    done = suite("--json", "--program", "no-communication/elementwise", "--rule", "hold")
    assert done.returncode == 0, done.stderr
    names = {(row["gpu"], row["policy"]) for row in json.loads(done.stdout)}
    papers = {(gpu, name) for gpu, name in names if name.endswith("-paper")}
    assert papers == {(gpu, f"{gpu}-paper") for gpu in ("a40", "a100", "h100", "h200")}
    assert {pair for pair in names if pair[1].endswith("-windows")} == {(g, f"{n}-windows") for g, n in papers}


def test_a_file_of_the_users_is_not_mistaken_for_a_derived_policy(suite: Suite, tmp_path: Path) -> None:
    policy = tmp_path / "h100-paper-windows"
    policy.write_text("policy: 1\nname: mine\n")
    done = suite(*QUICK, "--json", "--policy", str(policy))
    assert done.returncode == 0, done.stderr
    assert [row["policy"] for row in json.loads(done.stdout)] == [str(policy)]


@pytest.mark.parametrize("policy", ["observe", "h100-paper-windows", "h200"])
def test_a_check_of_no_default_policy_is_refused(suite: Suite, policy: str) -> None:
    done = suite(*QUICK, "--policy", policy, "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--check looks at default policies, and none is among these" in done.stderr
    assert "--policy h100" in done.stderr


def test_a_check_of_a_default_policy_among_others(suite: Suite) -> None:
    assert suite(*QUICK, "--policy", "h100,observe", "--check").returncode == 0


def test_help_says_what_a_user_must_know(suite: Suite) -> None:
    said = suite("--help").stdout
    for words in ("exit status: 0", "as SVG", "minutes on 2 cores", "simulated", "NAME-paper-windows", "make setup"):
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
