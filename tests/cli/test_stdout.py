"""An answer that cannot be written is said in one line, not by a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

COMMANDS = (("gpus", "--json"), ("env", "--policy", "observe"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk(command: tuple[str, ...], clean_environment: Mapping[str, str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pyshim", *command],
            env=dict(clean_environment),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == "overlap: error: the answer cannot be written to stdout: No space left on device\n"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_closed_stdout(command: tuple[str, ...], clean_environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyshim", *command],
        env=dict(clean_environment),
        preexec_fn=lambda: os.close(1),
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == "overlap: error: the answer cannot be written to stdout: it is closed\n"
