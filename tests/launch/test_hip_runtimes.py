"""Which HIP runtimes a machine has, and that `--simulate` goes before them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pyshim.start import driver

SHOW = (sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))")


@pytest.fixture
def runtimes(tmp_path: Path) -> tuple[Path, Path]:
    """The files of two, each in a folder of its own."""
    made = (tmp_path / "distribution/libamdhip64.so.5", tmp_path / "amd/libamdhip64.so.6")
    for path in made:
        path.parent.mkdir()
        path.touch()
    return made


def test_those_of_the_search_path_are_found(runtimes: tuple[Path, Path], tmp_path: Path) -> None:
    environment = {"LD_LIBRARY_PATH": ":".join(str(path.parent) for path in (*runtimes, *runtimes))}
    found = driver.hip_runtimes(environment, str(tmp_path / "no root"))
    assert found == {path.name: [str(path)] for path in runtimes}


def test_the_loaders_cache_counts(runtimes: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    names = [str(runtimes[0]), f"{runtimes[0].parent}/libamdhip64.so.5.2.1"]
    (tmp_path / "etc/ld.so.cache").write_bytes(b"\0".join([b"ld.so-1.7.0", *map(os.fsencode, names), b""]))
    assert driver.hip_runtimes({}, str(tmp_path)) == {"libamdhip64.so.5": [str(runtimes[0])]}


def test_simulated_ones_stand_in_for_them(overlap_run, library, runtimes: tuple[Path, Path]) -> None:  # type: ignore[no-untyped-def]
    search = ":".join(str(path.parent) for path in runtimes)
    done = overlap_run("--simulate", "mi250x", *SHOW, env={"LD_LIBRARY_PATH": search})
    names = [Path(folder).name for folder in json.loads(done.stdout)["LD_LIBRARY_PATH"].split(":")]
    assert names == ["hip7", "simgpu", "distribution", "amd"]
