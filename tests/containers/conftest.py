"""Containers without their engines; see containers.py."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import debian
import images
import pytest
import site_folder
from containers import Engine
from interposing import Build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def engines() -> None:
    try:
        debian.install(["bubblewrap", "charliecloud-runtime"], ["bwrap", "ch-run"])
    except debian.Missing as missing:
        pytest.skip(str(missing))
    probe = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"needs user namespaces: {tried.stderr.strip()}")


@pytest.fixture(scope="session")
def site() -> Iterator[Path]:
    """Not below /tmp, which Charliecloud shares with the host and every other one hides."""
    with tempfile.TemporaryDirectory(prefix="overlap-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield site_folder.install(Path(folder) / "site", "--default", "observe")


@pytest.fixture(scope="session")
def image(build: Build, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return images.make(tmp_path_factory.mktemp("image"), build.client("dlsym"))


@pytest.fixture(scope="session")
def outside(clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What engines are started in: `overlap` is a command, and the simulated GPU is chosen."""
    folder = tmp_path_factory.mktemp("commands")
    for name, module in {"overlap": "pyshim", "overlap-run": "pyshim.cli.run"}.items():
        run = shlex.join([sys.executable, "-m", module])
        (folder / name).write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {run} "$@"\n')
        (folder / name).chmod(0o755)
    own = {"PATH": f"{folder}:{clean_environment['PATH']}:/usr/sbin:/sbin:/bin", "USER": "somebody"}
    return {**clean_environment, **own, "SIMGPU": "h100", "LD_LIBRARY_PATH": "/driver"}


@pytest.fixture
def bwrap(engines: None, site: Path, image: Path, outside: Mapping[str, str], tmp_path: Path) -> Engine:
    (tmp_path / "work").mkdir()
    return Engine("bwrap", site, image, outside, tmp_path / "work")


@pytest.fixture(params=["bwrap", "ch-run"])
def engine(request: pytest.FixtureRequest, bwrap: Engine) -> Engine:
    """Most tests run with both."""
    return replace(bwrap, name=request.param)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report"
    path.mkdir()
    return path
