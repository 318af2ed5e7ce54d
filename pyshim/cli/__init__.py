"""The commands: one module each. Only this package prints.

A subcommand is a module with `add_to(commands)` and, set by it as the parser's default `run`, a function from the
parsed arguments to an exit status. Only the module that is asked for is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pyshim.errors import LAUNCHER_FAILED, USAGE, OverlapError

if TYPE_CHECKING:
    import argparse

    from pyshim.cli.parser import Parser

COMMANDS = {
    "policy": "check policy files, list policies and GPUs, and print what policies resolve to",
    "report": "report what was changed in a run, and why the rest was left alone",
    "explain": "say what waits behind what in a trace, and which streams to raise",
    "tune": "run a program under each choice, in turns, and keep the best as a policy",
    "env": "print the environment for programs that overlap-run cannot start",
    "doctor": "diagnose problems on this machine",
    "demo": "run a bundled program without and with overlap-run, on a simulated GPU if there is no other",
}
EPILOG = """\
examples:
  overlap doctor python train.py
  overlap explain --help
  overlap policy check my.yaml
  overlap report out --check
  overlap tune --limit 10m -- python train.py

exit status: 0 success, 1 findings, 2 wrong usage. See `overlap COMMAND --help`."""


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        from pyshim.start.environment import restore

        restore()
        with suppress(OSError):
            while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:  # closed: a file of ours must not get its number
                pass
            os.close(opened)
    from pyshim.cli import ui

    return ui.guarded(lambda: _main(list(sys.argv[1:] if arguments is None else arguments)))


def _main(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except OverlapError as error:
        # Shared code speaks for overlap-run, where a wrong argument is 125.
        if error.status == LAUNCHER_FAILED:
            error.status = USAGE
        raise


def _dispatch(arguments: list[str]) -> int:
    from importlib import import_module

    from pyshim.cli import ui

    parser, commands = parsers()
    name = next((word for word in arguments if not word.startswith("-")), None)
    if name in COMMANDS:
        import_module(f"pyshim.cli.{name}").add_to(commands)
        _quiet(commands.choices[name])
    else:
        for other, sentence in COMMANDS.items():
            commands.add_parser(other, help=sentence)
        if name is not None:
            hint = _meant(name, arguments[arguments.index(name) + 1 :])
            raise OverlapError(f"no command is called {name!r}", hint, USAGE)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    ui.choose(options.quiet)
    run: Callable[[object], int] = options.run
    return run(options)


def _meant(name: str, words: list[str]) -> str:
    """Return what to write instead of a command that there is not. words: behind it."""
    import shlex
    from difflib import get_close_matches

    from pyshim.start.program import BUNDLED, is_there

    if name == "run":
        return f"a program is run by overlap-run: {shlex.join(['overlap-run', *(words or ['PROGRAM'])])}"
    if name in BUNDLED:
        return f"overlap-run --simulate h100 {name} runs it; overlap demo compares it without and with overlap-run"
    close = get_close_matches(name, COMMANDS, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if "/" in name or is_there(name, os.environ):
        return f"a program is run by overlap-run: {shlex.join(['overlap-run', name, *words])}"
    return f"commands: {', '.join(COMMANDS)}"


def parsers() -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    """Return the parser of `overlap`, and the group to which commands are added."""
    from pyshim import __version__
    from pyshim.cli.parser import Parser

    description = "Check policies, read reports, diagnose problems, and explain traces."
    parser = Parser(prog="overlap", description=description, epilog=EPILOG, status=USAGE)
    parser.add_argument("-q", "--quiet", action="store_true", help="omit notes and progress on stderr")
    parser.add_argument("--version", action="version", version=f"overlap {__version__}")
    return parser, parser.add_subparsers(metavar="COMMAND", title="commands", dest="command")


def _quiet(parser: argparse.ArgumentParser) -> None:
    """Take --quiet behind the command as well; the help of `overlap` says what it means."""
    import argparse

    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for below in inner:
        for one in below.choices.values():
            _quiet(one)
    if not inner:
        hidden = argparse.SUPPRESS
        parser.add_argument("-q", "--quiet", action="store_true", help=hidden, default=hidden)
