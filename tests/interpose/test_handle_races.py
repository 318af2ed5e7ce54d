"""What two threads do to one kernel, one statement of one after one of the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interposing import Build

SHIM = Path(__file__).resolve().parent.parent.parent / "shim"


def test_handles_and_addresses_that_are_used_again(build: Build) -> None:
    """No handle is given out twice, or under another address. Nothing of a kernel counts for the next one there."""
    sources = [
        SHIM / "vendor/common/state.c",
        SHIM / "core/cache.c",
        SHIM / "core/slots.c",
    ]
    program = build("handle-slots", "handle_slots.c", f"-I{SHIM}", "-Wno-unused-function", link=sources)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "claimed: its own",
        "ended: their own",
        "stale: 1, learned: b c",
        "both learn: 1 0",
        "both ended: 1 0",
        "both replace: last 1",
        "meanwhile: 1, refused: 0 1",
        "learned meanwhile: 0 0, there: 1",
        "ended: 1",
        "learned while the former is forgotten: next",
        "ended, too: 1",
        "decided before it was learned: 1, and after: 0",
        "never used before: 0",
        "full: new 1",
    ]


@pytest.mark.parametrize(("act", "left"), [("sets", "50"), ("behind", "50"), ("asks", "-1")])
def test_what_the_program_does_about_the_carve_out_meanwhile_counts(act: str, left: str, build: Build) -> None:
    """On another thread, between our question and our setting, or the other way round."""
    program = build("carveout-between", "carveout_between.c", f"-I{SHIM}", "-Wno-unused-function")
    done = subprocess.run([str(program), act], capture_output=True, text=True, check=True)
    assert done.stdout == f"{left}\n"
