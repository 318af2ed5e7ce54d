"""The commands: one module each. Only this package prints.

A subcommand is a module with `add_to(commands)` and, set by it as the parser's default `run`, a function from the
parsed arguments to an exit status. Only the module that is asked for is imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyshim.errors import LAUNCHER_FAILED, USAGE, OverlapError

if TYPE_CHECKING:
    from pyshim.cli.parser import Parser

COMMANDS = {
    "policy": "check policy files, and print what they resolve to",
    "report": "report what was changed in a run, and why the rest was left alone",
    "explain": "predict what a policy does with a kernel, and why",
    "gpus": "list the known GPUs and their limits",
    "env": "print the environment for programs that overlap-run cannot start",
    "doctor": "diagnose problems on this machine",
    "demo": "run two bundled programs without and with the default policy, on a simulated GPU if there is no other",
    "help": "print the help of a command, or explain a reason or a policy key",
}
_VALUES = ("--color", "-o", "--output")  # options of `overlap` with a value of their own
_RUN = "start a program under a policy (the same as overlap-run)"
_COMMON: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-o", "--output"), {"metavar": "FILE", "help": "write the answer to this new file instead of stdout"}),
    (("-q", "--quiet"), {"action": "store_true", "help": "omit notes and progress on stderr"}),
    (
        ("--color",),
        {
            "choices": ("auto", "always", "never"),
            "default": "auto",
            "metavar": "WHEN",
            "help": "use colors: auto (default), always or never",
        },
    ),
)
EPILOG = """\
examples:
  overlap doctor python train.py
  overlap explain --help
  overlap policy check my.yaml
  overlap report out --check

exit status: 0 success, 1 findings, 2 wrong usage. See `overlap COMMAND --help`."""


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        from pyshim.launch import inherited

        inherited.restore()
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
    pairs = enumerate(zip(["", *arguments], arguments))
    words = ((at, word) for at, (before, word) in pairs if not word.startswith("-") and before not in _VALUES)
    at, name = next(words, (len(arguments), None))
    if name == "run":
        return _overlap_run(parser.parse_args(arguments[:at]), arguments[at + 1 :])
    if name in COMMANDS:
        import_module(f"pyshim.cli.{name}").add_to(commands)
        _common(commands.choices[name])
    else:
        for other, sentence in {"run": _RUN, **COMMANDS}.items():
            commands.add_parser(other, help=sentence)
        if name is not None:
            from difflib import get_close_matches

            known = ["run", *COMMANDS]
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"commands: {', '.join(known)}"
            raise OverlapError(f"no command is called {name!r}", hint, USAGE)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    ui.choose(options.color, options.quiet)
    run: Callable[[object], int] = options.run
    with ui.into(options.output, getattr(options, "force", False)):
        return run(options)


def _overlap_run(options: argparse.Namespace, arguments: list[str]) -> int:
    """options: those of `overlap` in front of `run`."""
    from pyshim.cli import run as overlap_run

    if options.output is not None:
        hint = "overlap run PROGRAM > FILE, or a report: overlap run --report DIR PROGRAM"
        raise OverlapError("--output does not go with run: the output is that of the program", hint, USAGE)
    return overlap_run.main(["--quiet", *arguments] if options.quiet else arguments)


def parsers() -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    """Return the parser of `overlap`, and the group to which commands are added."""
    from pyshim import __version__
    from pyshim.cli.parser import Parser

    description = "Check policies, read reports, diagnose problems, and predict what overlap-run does."
    parser = Parser(prog="overlap", description=description, epilog=EPILOG, status=USAGE)
    for words, keywords in _COMMON:
        parser.add_argument(*words, **keywords)
    parser.add_argument("--version", action="version", version=f"overlap {__version__}")
    return parser, parser.add_subparsers(metavar="COMMAND", title="commands", dest="command")


def _common(parser: argparse.ArgumentParser) -> None:
    """Take these options behind the command as well; the help of `overlap` says what they mean."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for below in inner:
        for one in below.choices.values():
            _common(one)
    if not inner:
        for words, keywords in _COMMON:
            parser.add_argument(*words, **{**keywords, "help": argparse.SUPPRESS, "default": argparse.SUPPRESS})
        if "--force" not in parser._option_string_actions:  # with --output: replace the file
            parser.add_argument("--force", action="store_true", help=argparse.SUPPRESS, default=argparse.SUPPRESS)


def run_help(words: list[str]) -> int:
    """Print the help of a command; no words: that of `overlap`."""
    try:
        return _dispatch([*words, "--help"])
    except SystemExit as done:
        return int(done.code or 0)
