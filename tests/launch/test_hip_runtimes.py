"""Which HIP runtimes a machine has, and which of them `--simulate` leaves to AMD."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyshim.launch import driver

SHOW = (sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))")


def shared_object(folder: Path, name: str, *needed: Path) -> Path:
    """A shared object that needs others, whose names in their folder are their sonames."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none"]
    flags = ["-Wl,--no-as-needed", f"-Wl,-soname,{name}", *map(str, needed), "-o", str(folder / name)]
    if subprocess.run([*command, *flags], capture_output=True, check=False).returncode:
        pytest.skip("no compiler that makes shared objects")
    return folder / name


@pytest.fixture
def of_a_distribution(tmp_path: Path) -> Path:
    """A folder with a runtime, and an HSA runtime that needs a thunk."""
    folder = tmp_path / "distribution"
    shared_object(folder, driver.HSA, shared_object(folder, driver.THUNK))
    return shared_object(folder, "libamdhip64.so.5")


@pytest.fixture
def of_amd(tmp_path: Path) -> Path:
    """Likewise, with the thunk inside of the HSA runtime."""
    folder = tmp_path / "amd"
    shared_object(folder, driver.HSA)
    return shared_object(folder, "libamdhip64.so.6")


def test_both_are_found_and_one_can_be_simulated(of_a_distribution: Path, of_amd: Path, tmp_path: Path) -> None:
    environment = {"LD_LIBRARY_PATH": f"{of_a_distribution.parent}:{of_amd.parent}"}
    found = driver.hip_runtimes(environment, str(tmp_path / "no root"))
    assert found == {"libamdhip64.so.5": [str(of_a_distribution)], "libamdhip64.so.6": [str(of_amd)]}
    assert driver.runs_on_a_thunk(str(of_a_distribution), {}, "/nowhere")
    assert not driver.runs_on_a_thunk(str(of_amd), {}, "/nowhere")


def test_the_loaders_cache_counts(of_a_distribution: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    files = (of_a_distribution.name, driver.HSA, "libamdhip64.so.5.2.1")
    names = [f"{of_a_distribution.parent}/{name}" for name in files]
    (tmp_path / "etc/ld.so.cache").write_bytes(b"\0".join([b"ld.so-1.7.0", *map(os.fsencode, names), b""]))
    assert driver.hip_runtimes({}, str(tmp_path)) == {"libamdhip64.so.5": [str(of_a_distribution)]}
    assert driver.runs_on_a_thunk("/elsewhere/libamdhip64.so.5", {}, str(tmp_path))


def test_a_runtime_of_its_own_is_left_to_run_on_a_simulated_thunk(
    overlap_run, library, of_a_distribution: Path
) -> None:  # type: ignore[no-untyped-def]
    done = overlap_run("--simulate", "mi250x", *SHOW, env={"LD_LIBRARY_PATH": str(of_a_distribution.parent)})
    folders = json.loads(done.stdout)["LD_LIBRARY_PATH"].split(":")
    names = [Path(folder).name for folder in folders]
    assert {"hip6", "hip7", "kfd", "distribution"} < set(names) and "hip5" not in names
    assert names.index("kfd") < names.index("distribution")
    said = f"libamdhip64.so.5 is this machine's own ({of_a_distribution}): kernels take no time on it"
    assert said in done.stderr


def test_one_that_cannot_be_simulated_is_stood_in_for(overlap_run, library, of_amd: Path) -> None:  # type: ignore[no-untyped-def]
    done = overlap_run("--simulate", "mi250x", *SHOW, env={"LD_LIBRARY_PATH": str(of_amd.parent)})
    names = [Path(folder).name for folder in json.loads(done.stdout)["LD_LIBRARY_PATH"].split(":")]
    assert names.index("hip6") < names.index("amd")
    assert "own" not in done.stderr
