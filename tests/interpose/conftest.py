"""HIP runtimes with the library in front of them; see hip/hip_interposing.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hip_interposing import Hip, World, runner


@pytest.fixture(scope="session")
def world(build, clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> World:  # type: ignore[no-untyped-def]
    return World(build, clean_environment, tmp_path_factory.mktemp("hip"))


@pytest.fixture
def hip(world: World, tmp_path: Path) -> Hip:
    return runner(world, tmp_path)
