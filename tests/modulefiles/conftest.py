"""The modulefiles of a site folder, with both module systems; see module_systems.py."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import debian
import module_systems
import pytest
import site_folder

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site folder as the administrator makes it; tests that change it copy it."""
    return site_folder.install(tmp_path_factory.mktemp("site") / "overlap")


@pytest.fixture(scope="session")
def commands() -> dict[str, tuple[str, ...]]:
    try:
        return module_systems.commands()
    except debian.Missing as missing:
        pytest.skip(f"needs Lmod and Environment Modules: {missing}")


@pytest.fixture(params=["lmod", "tcl"])
def modules(
    request: pytest.FixtureRequest,
    commands: Mapping[str, tuple[str, ...]],
    site: Path,
    clean_environment: Mapping[str, str],
    tmp_path: Path,
) -> module_systems.System:
    """Every test runs with both."""
    for name in ("home", "steps"):
        (tmp_path / name).mkdir()
    clean = {name: value for name, value in clean_environment.items() if name in ("PATH", "LANG", "USER")}
    clean.update(MODULEPATH=str(site / "modulefiles"), HOME=str(tmp_path / "home"), LMOD_PAGER="none")
    clean["PATH"] = os.pathsep.join(dict.fromkeys(clean["PATH"].split(os.pathsep)))  # Lmod leaves no entry twice
    return module_systems.System(request.param, commands[request.param], clean, tmp_path / "steps")
