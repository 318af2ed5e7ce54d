"""What two threads do to one kernel, one statement of one after one of the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interposing import Build

SHIM = Path(__file__).resolve().parent.parent.parent / "shim"


@pytest.mark.parametrize(("act", "left"), [("sets", "50"), ("behind", "50"), ("asks", "-1")])
def test_what_the_program_does_about_the_carve_out_meanwhile_counts(act: str, left: str, build: Build) -> None:
    """On another thread, between our question and our setting, or the other way round."""
    program = build("carveout-between", "carveout_between.c", f"-I{SHIM}", "-Wno-unused-function")
    done = subprocess.run([str(program), act], capture_output=True, text=True, check=True)
    assert done.stdout == f"{left}\n"
