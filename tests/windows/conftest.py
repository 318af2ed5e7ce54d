"""The model of what may run beside what, and a process that runs programs with the library preloaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from interpreter import Interpreter, compile_to, environment_of


def examples(default: int) -> int:
    return int(os.environ.get("WINDOWS_EXAMPLES", default))


@pytest.fixture(scope="session", params=["symbol", "proc_address"])
def interpreter(
    request: pytest.FixtureRequest, clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interpreter]:
    folder = tmp_path_factory.mktemp("windows")
    program = compile_to(folder, request.param == "proc_address")
    made = Interpreter(program, environment_of(clean_environment, folder), folder)
    yield made
    made.close()
