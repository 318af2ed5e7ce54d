"""The library in front of HIP runtimes; see hip_interposing.py."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]
pytest.register_assert_rewrite("hip_interposing")

from hip_interposing import Hip, World, runner  # noqa: E402


@pytest.fixture(scope="session")
def world(build, clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> World:  # type: ignore[no-untyped-def]
    return World(build, clean_environment, tmp_path_factory.mktemp("hip"))


@pytest.fixture
def hip(world: World, tmp_path: Path) -> Hip:
    return runner(world, tmp_path)
