"""The model of what may run beside what, and a process that runs programs with the library preloaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.windows.interpreter import Interpreter
from tests.windows.targets import TARGETS, Target, compile_to, environment_of


@pytest.fixture(scope="session", params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    found = TARGETS[request.param]
    if not found.library.exists():
        pytest.fail(f"{found.library.name} was not built: make setup")
    return found


@pytest.fixture(scope="session")
def interpreter(
    target: Target, clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interpreter]:
    folder = tmp_path_factory.mktemp("windows")
    made = Interpreter(compile_to(folder, target), environment_of(clean_environment, folder, target), folder)
    yield made
    made.close()
