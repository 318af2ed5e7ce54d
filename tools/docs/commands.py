"""Every command with its options, from the parsers themselves."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple

from pyshim.cli import COMMANDS, parsers
from pyshim.cli import run as overlap_run


class Command(NamedTuple):
    words: str  # overlap policy check
    description: str
    options: tuple[tuple[str, str], ...]  # as written, and what it means
    names: frozenset[str]  # every option string
    takes_a_value: frozenset[str]


def commands() -> list[Command]:
    """overlap-run first, then what all of overlap's take, then those of overlap, in the order of its help."""
    overlap, inner = parsers()
    for name in COMMANDS:
        import_module(f"pyshim.cli.{name}").add_to(inner)
    return [_command("overlap-run", overlap_run._parser()), _command("overlap", overlap), *_below("overlap", overlap)]


def _below(words: str, parser: argparse.ArgumentParser) -> list[Command]:
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                found += _below(f"{words} {name}", below)
    return found or [_command(words, parser)]


def _command(words: str, parser: argparse.ArgumentParser) -> Command:
    actions = [action for action in parser._actions if "--help" not in action.option_strings and not _adds(action)]
    return Command(
        words,
        " ".join((parser.description or "").split("\n\n")[0].split()),
        tuple(_told(actions)),
        frozenset(name for action in parser._actions for name in action.option_strings),
        frozenset(name for action in parser._actions if action.nargs != 0 for name in action.option_strings),
    )


def _adds(action: argparse.Action) -> bool:
    """Whether it is the place of commands."""
    return isinstance(action, argparse._SubParsersAction)


def _told(actions: list[argparse.Action]) -> list[tuple[str, str]]:
    return [(_written(action), _meaning(action)) for action in actions if action.help is not argparse.SUPPRESS]


def _written(action: argparse.Action) -> str:
    """`--report DIR`, `FILE ...`"""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
    shown = value if isinstance(value, str) else " ".join(value)
    if action.nargs in ("+", "*"):
        shown += " ..."
    if not action.option_strings:
        return shown
    name = max(action.option_strings, key=lambda option: option.replace("_", "-").startswith("--") - option.count("_"))
    short = [option for option in action.option_strings if len(option) == 2]
    names = ", ".join(dict.fromkeys([*short, name]))
    return names if action.nargs == 0 else f"{names} {shown}"


def _meaning(action: argparse.Action) -> str:
    given = {name: value for name, value in vars(action).items() if name != "prog"}
    return " ".join(((action.help or "") % {**given, "prog": ""}).split()) if action.help else ""
