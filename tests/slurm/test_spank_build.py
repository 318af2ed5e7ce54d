"""The Makefile of the SPANK plugin: Slurm takes a plugin of its own release only, so which one is built for matters."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import spank


@pytest.fixture
def make(slurm_headers: None, tmp_path: Path):
    """make(FOLDER) installs for the Slurm whose headers are in FOLDER/include; None: for this machine's."""
    shutil.copytree(spank.SOURCES, tmp_path / "sources", ignore=shutil.ignore_patterns("*.so"))

    def run(slurm: Path | None) -> subprocess.CompletedProcess[str]:
        words = [f"CC={shlex.join(spank.compiler())}", f"PREFIX={tmp_path / 'made'}", f"SLURM={slurm or ''}"]
        command = ["make", "-s", "-C", str(tmp_path / "sources"), "install", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_it_is_always_built_for_the_slurm_that_is_there(make, tmp_path):
    other, plugin = tmp_path / "slurm", tmp_path / "made" / "lib" / "slurm" / "overlap.so"
    shutil.copytree(spank.HEADER.parent, other / "include" / "slurm")
    version = other / "include" / "slurm" / "slurm_version.h"
    version.write_text(re.sub(r"(#define SLURM_VERSION_NUMBER) .*", r"\1 0x170200", version.read_text()))
    built = []
    for slurm in (None, other, None):
        assert make(slurm).returncode == 0
        built.append(plugin.read_bytes())
    assert built[0] == built[2] != built[1]


def test_headers_that_are_not_there_are_not_taken_from_elsewhere(make, tmp_path):
    done = make(tmp_path / "nowhere")
    assert done.returncode != 0
    assert done.stderr.startswith("make: no slurm/spank.h: install libslurm-dev (slurm-devel), or say SLURM=FOLDER")
    assert not (tmp_path / "made").exists()
