"""The commands with their options, as manual pages and completions need them, from the parsers themselves."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple

from pyshim import cli
from pyshim.cli import run


class Option(NamedTuple):
    names: tuple[str, ...]  # empty: a positional argument
    value: str  # as help writes it; empty: it takes none
    choices: tuple[str, ...]
    meaning: str
    hidden: bool


class Command(NamedTuple):
    words: tuple[str, ...]  # overlap, policy, check
    usage: str
    description: str
    epilog: str
    options: tuple[Option, ...]
    groups: tuple[tuple[str, str], ...]  # the commands below it, and what they do


def every() -> list[Command]:
    """overlap-run, overlap, and the commands of overlap, each before those below it."""
    parser, commands = cli.parsers()
    for name in cli.COMMANDS:
        import_module(f"pyshim.cli.{name}").add_to(commands)
    return [_command(("overlap-run",), run._parser()), *_below(("overlap",), parser)]


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser) -> list[Command]:
    found = [_command(words, parser)]
    for inner in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        for name, below in inner.choices.items():
            found += _below((*words, name), below)
    return found


def _command(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Command:
    inner = next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)
    groups = tuple((choice.dest, choice.help or "") for choice in inner._choices_actions) if inner else ()
    if words == ("overlap",):
        groups = (("run", cli._RUN), *((name, cli.COMMANDS[name]) for name in cli.COMMANDS))
    options = tuple(_option(action) for action in parser._actions if action is not inner and not _is_spelling(action))
    usage = parser.usage or (
        "overlap [options] COMMAND ..." if words == ("overlap",) else _usage(words, options, groups)
    )
    return Command(words, usage, parser.description or "", parser.epilog or "", options, groups)


def _usage(words: tuple[str, ...], options: tuple[Option, ...], groups: tuple[tuple[str, str], ...]) -> str:
    last = ["COMMAND ..."] if groups else [option.value for option in options if not option.names]
    return " ".join([*words, "[options]", *last])


def _is_spelling(action: argparse.Action) -> bool:
    """Whether the action is a second spelling of an option: --all_ranks."""
    return bool(action.option_strings) and all("_" in name for name in action.option_strings)


def _option(action: argparse.Action) -> Option:
    metavar = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest)
    value = metavar if isinstance(metavar, str) else " ".join(metavar)
    if action.nargs in ("+", "*"):
        value += " ..."
    if action.nargs == argparse.REMAINDER:
        value = "[PROGRAM [ARG ...]]"
    given = {**vars(action), "prog": ""}
    meaning = (action.help or "") % given if action.help and action.help != argparse.SUPPRESS else ""
    return Option(
        tuple(name for name in action.option_strings if "_" not in name),
        "" if action.option_strings and action.nargs == 0 else value,
        tuple(map(str, action.choices or ())),
        " ".join(meaning.split()),
        action.help == argparse.SUPPRESS,
    )
