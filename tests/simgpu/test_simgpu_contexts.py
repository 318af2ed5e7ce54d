"""Calls on handles of a context that is not current: the answers are those of a real driver (context_check.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("context_check.py")


@pytest.mark.parametrize("handles", ["", "fresh"])
def test_calls_without_the_context_of_their_handles(libcuda: Path, handles: str) -> None:
    """fresh: also where no handle is given out twice."""
    env = {**os.environ, "SIMGPU": "h200", "SIMGPU_HANDLES": handles}
    command = [sys.executable, str(PROGRAM), str(libcuda)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    *different, calls = done.stdout.splitlines()
    assert (different, done.stderr, done.returncode) == ([], "", 0)
    assert int(calls.split()[0]) > 200
