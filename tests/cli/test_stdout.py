"""Answers, and nothing else, go to stdout. One that cannot be written is said in one line, not by a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

OVERLAP, OVERLAP_RUN = "pyshim", "pyshim.cli.run"
COMMANDS = {
    "a table": (OVERLAP, "policy", "list"),
    "an object": (OVERLAP, "policy", "list", "--json"),
    "a screen": (OVERLAP, "policy", "room", "--gpu", "h100", "--kernel", "128:64"),
    "checks": (OVERLAP, "doctor", "--simulate", "h100"),
    "the launcher's help": (OVERLAP_RUN, "--help"),
}
FAILURE = {OVERLAP: 1, OVERLAP_RUN: 125}
every = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))


def shell(script: str, command: tuple[str, ...], clean: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """In bash, where "$@" is the command."""
    words = ["bash", "-c", script, "bash", sys.executable, "-m", *command]
    return subprocess.run(words, env=dict(clean), capture_output=True, text=True, timeout=300)


@every
def test_what_was_asked_for_is_in_a_variable(command, clean_environment, library):
    done = shell('answer=$("$@") && [ "$answer" ] && echo "${#answer}" >/dev/null', command, clean_environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@every
@pytest.mark.parametrize(("where", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")])
def test_a_full_disk_or_a_closed_stdout(command, where, why, clean_environment, library):
    done = shell(f'"$@" {where}', command, clean_environment)
    assert done.returncode == FAILURE[command[0]]
    assert done.stderr == f"overlap: error: the answer cannot be written to stdout: {why}\n"


@every
def test_a_reader_that_has_gone(command, clean_environment, library):
    """The status is that of a process that SIGPIPE has ended, as `set -o pipefail` expects."""
    read, write = os.pipe()
    os.close(read)
    try:
        words = [sys.executable, "-m", *command]
        done = subprocess.run(
            words, env=dict(clean_environment), stdout=write, stderr=subprocess.PIPE, text=True, timeout=300
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_launcher_s_own_words_stay_off_stdout(overlap_run, library):
    """stdout belongs to the program, also in a dry run."""
    done = overlap_run("--simulate", "h100", "--dry-run", "true")
    assert (done.returncode, done.stdout) == (0, "")
    assert "overlap: would run " in done.stderr
