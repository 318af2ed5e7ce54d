"""Options that there were: whoever still writes one reads what to do instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyshim.cli import COMMANDS, parser


def _rows() -> Iterator[tuple[list[str], str, str]]:
    for command, options in parser._REMOVED.items():
        for option, instead in options.items():
            yield command.split()[1:], option, instead


@pytest.mark.parametrize(("command", "option", "instead"), _rows(), ids=lambda row: row if isinstance(row, str) else "")
@pytest.mark.parametrize("ending", ["", " value", "=value"], ids=["alone", "with-a-value", "equals"])
def test_a_removed_option_says_what_to_do_instead(overlap, command, option, instead, ending):
    done = overlap(*command, *(option.split() if " " in option else f"{option}{ending}".split()))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"overlap: error: {option} was removed\noverlap: help: {instead}\n"


def test_the_program_may_have_an_option_of_that_name(overlap):
    done = overlap("tune", "--simulate", "h100", "--", "/nonexistent", "--compare")
    assert "was removed" not in done.stderr


def test_rows_name_commands():
    assert {command.split()[1] for command in parser._REMOVED} <= set(COMMANDS)
