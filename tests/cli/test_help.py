"""Every help fits a screen, shows how a command is used, and is what somebody has read.

OVERLAP_WRITE_GOLDEN=1 writes the golden files anew: read what has changed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyshim.cli import COMMANDS

GOLDEN = Path(__file__).parent / "golden"
SCREEN = 45  # lines
ALL = ["", *COMMANDS, "policy check", "policy show", "policy room", "policy schema"]


@pytest.mark.parametrize("command", [*ALL, "run"])
@pytest.mark.parametrize("columns", [60, 80])
def test_help_fits_a_screen(overlap, overlap_run, command, columns):
    call, words = (overlap_run, []) if command == "run" else (overlap, command.split())
    done = call(*words, "--help", env={"COLUMNS": str(columns)})
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > columns] == []
    if columns == 80:
        assert len(lines) <= SCREEN
        assert "example" in done.stdout
        golden = GOLDEN / f"help-{'-'.join(words) or ('overlap-run' if command == 'run' else 'overlap')}.txt"
        if os.environ.get("OVERLAP_WRITE_GOLDEN"):
            golden.write_text(done.stdout, encoding="utf-8")
        assert done.stdout == golden.read_text(encoding="utf-8")


def test_nobody_wrote_a_help_that_no_command_has(overlap):
    names = {"help-overlap.txt", "help-overlap-run.txt", *(f"help-{'-'.join(one.split())}.txt" for one in ALL[1:])}
    assert {path.name for path in GOLDEN.glob("help-*.txt")} == names
