"""What the demo's tests share: one run of it, and invented steps for those that need no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def call() -> Call:
    """`overlap demo`, with a driver only where the test brings one."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        dropped = ("LD_LIBRARY_PATH", "NO_COLOR", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return subprocess.run(
            [sys.executable, "-c", "import sys; from pyshim.cli import main; sys.exit(main())", "demo", *words],
            env={**kept, "PYTHONUTF8": "1", **environment},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def answer(built: None, call: Call) -> Callable[[str], dict[str, Any]]:
    """The object of `overlap demo --gpu GPU --json`, run once for each GPU."""
    known: dict[str, dict[str, Any]] = {}

    def ask(gpu: str) -> dict[str, Any]:
        if gpu not in known:
            done = call("--gpu", gpu, "--json")
            assert done.returncode == 0, done.stderr
            known[gpu] = json.loads(done.stdout)
        return known[gpu]

    return ask
