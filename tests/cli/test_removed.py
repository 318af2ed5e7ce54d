"""Options that there were: whoever still writes one reads what to do instead."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from pyshim.cli import COMMANDS, parsers


def _rows() -> Iterator[tuple[list[str], str, str]]:
    _, commands = parsers()
    for command in COMMANDS:
        importlib.import_module(f"pyshim.cli.{command}").add_to(commands)
        for option, instead in commands.choices[command].removed.items():
            yield [command], option, instead


@pytest.mark.parametrize(("command", "option", "instead"), _rows(), ids=lambda row: row if isinstance(row, str) else "")
@pytest.mark.parametrize("ending", ["", " value", "=value"], ids=["alone", "with-a-value", "equals"])
def test_a_removed_option_says_what_to_do_instead(overlap, command, option, instead, ending):
    done = overlap(*command, *(option.split() if " " in option else f"{option}{ending}".split()))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"overlap: error: {option} was removed\noverlap: help: {instead}\n"


def test_the_program_may_have_an_option_of_that_name(overlap):
    done = overlap("tune", "--simulate", "h100", "--", "/nonexistent", "--compare")
    assert "was removed" not in done.stderr


def test_there_are_some():
    assert {command for (command,), *_ in _rows()} >= {"env", "explain", "report", "tune"}
