"""overlap-run: starts a program under a policy by becoming it.

The import of everything that is not needed for a plain start waits: this command stands before every rank of every job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from pyshim import __version__
from pyshim.cli import COMMANDS
from pyshim.errors import FINDINGS, LAUNCHER_FAILED, NOT_FOUND, OverlapError
from pyshim.start import plan, program
from pyshim.start.environment import TooLong, added, environment, execute, restore

if TYPE_CHECKING:
    from pyshim.cli.parser import Parser

USAGE = "overlap-run [options] [--] PROGRAM [ARG ...]"
EPILOG = """\
examples:
  overlap-run python train.py
  overlap-run --policy observe --report out python train.py
  srun overlap-run --policy ./my.yaml python train.py
  overlap-run --simulate h100 --report out demo-stencil

exit status: PROGRAM's own; 125 overlap-run failed before it started, 126 PROGRAM is not executable, 127 PROGRAM was
not found. OVERLAP_RUN=off disables everything.

see also: overlap report DIR, overlap doctor PROGRAM, overlap explain, overlap policy check FILE."""


class _Option(NamedTuple):
    help: str
    value: str = ""  # what it is called in help; empty: it takes none
    short: str = ""


# Read by argparse for help and mistakes, and by _options() for the other starts.
_OPTIONS = {
    "--policy": _Option(
        "policy file or name, or several separated by commas (default: $OVERLAP_POLICY, else auto: mi250x, mi300x or "
        "default, by the GPU)",
        "POLICY",
        "p",
    ),
    "--simulate": _Option(
        "run on a simulated GPU: h100[,COUNT], or another of `overlap policy list`. Bundled program: demo-stencil",
        "GPU",
    ),
    "--report": _Option("write counters to this folder, for `overlap report DIR`", "DIR", "o"),
    "--quiet": _Option("print errors only", short="q"),
    "--strict": _Option(
        "exit with 125 if the library cannot work, or, with --report, if ranks were started differently"
    ),
    "--dry-run": _Option("print what would be set, and do not start PROGRAM", short="n"),
}
_SHORT = {option.short: name for name, option in _OPTIONS.items() if option.short}


class Options(NamedTuple):
    policy: str | None = None
    simulate: str | None = None
    report: str | None = None
    quiet: bool = False
    strict: bool = False
    dry_run: bool = False


def _parser() -> Parser:
    from pyshim.cli.parser import Parser

    parser = Parser(
        prog="overlap-run",
        usage=USAGE,
        description="Run PROGRAM and raise its GPU streams that others wait for. Its process, output, signals and "
        "exit status are its own.",
        epilog=EPILOG,
        status=LAUNCHER_FAILED,
    )
    for name, option in _OPTIONS.items():
        names = [f"-{option.short}", name] if option.short else [name]
        if option.value:
            parser.add_argument(*names, metavar=option.value, help=option.help)
        else:
            parser.add_argument(*names, action="store_true", help=option.help)
    parser.add_argument("--version", action="version", version=f"overlap-run {__version__}", help="print the version")
    return parser


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options by their long names, and the program with everything behind it, whatever that looks like."""
    ours: list[str] = []
    left = list(arguments)
    while left and left[0].startswith("-") and left[0] != "-":
        argument = left.pop(0)
        if argument == "--":
            break
        ours += [_dashes(argument)] if argument.startswith("--") else _long(argument[1:])
        if _takes_a_value(ours[-1]):
            ours += left[:1]
            del left[:1]
    return ours, left


def _takes_a_value(name: str) -> bool:
    return name in _OPTIONS and bool(_OPTIONS[name].value)


def _dashes(argument: str) -> str:
    """Return an option with dashes in its name: --dry_run is taken for --dry-run."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _long(letters: str) -> list[str]:
    """-nq, -p h100 and -ph100 by their long names; what has none is left for the parser to refuse."""
    name = _SHORT.get(letters[0])
    if name is None:
        return [f"-{letters}"]
    if len(letters) == 1:
        return [name]
    return [f"{name}={letters[1:]}"] if _takes_a_value(name) else [name, *_long(letters[1:])]


def _options(ours: list[str]) -> Options:
    """Read our options. argparse is for help and mistakes: most starts need not import it."""
    values: dict[str, str | bool] = {}
    left = list(ours)
    while left:
        name, equals, value = left.pop(0).partition("=")
        if _takes_a_value(name) and (equals or (left and not left[0].startswith("-"))):
            values[name[2:]] = value if equals else left.pop(0)
        elif name in _OPTIONS and not _takes_a_value(name) and not equals:
            values[name[2:].replace("-", "_")] = True
        else:
            return Options(**vars(_parser().parse_args(ours)))
    return Options(**values)  # type: ignore[arg-type]


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        restore()
    try:
        return start(list(sys.argv[1:] if arguments is None else arguments), os.environ)
    except BaseException as error:
        from pyshim.cli import ui

        status = ui.guarded(partial(_raise, error))
        return LAUNCHER_FAILED if status in (FINDINGS, ui.BUG) else status


def _raise(error: BaseException) -> NoReturn:
    raise error


def start(arguments: list[str], base: Mapping[str, str]) -> int:
    """Become the program, or describe what would be done. base: the environment. Raises OverlapError."""
    ours, command = split(arguments)
    options = _options(ours)
    if not command and not options.dry_run:
        if options.simulate is not None:
            from pyshim.start.driver import parse

            parse(options.simulate)  # raises where the program was taken for the GPU
        raise OverlapError("no program to run", _taken(ours, base) or USAGE, LAUNCHER_FAILED)
    path = ""
    made: plan.Plan | None = None
    try:
        made = plan.make(plan.Request(options.policy, options.simulate, options.report, options.quiet), base)
        result = environment(base, made.settings._replace(launcher_pid=os.getpid()))
        path = _find(command, result) if command else ""
        if plan.switched_off(base, options.policy):
            _notes(made.remarks, options, base)
        else:
            result = _prepare(made, options, path, ours, command, base, result)
    except OverlapError:
        raise
    except Exception as error:
        # A mistake of ours is no reason for the program to fail.
        if options.strict or options.dry_run:
            raise
        _say_mistake(error)
        result = dict(base)
    if options.dry_run:
        return _describe(path, added(base, result), made)
    return _become(path or _find(command, base), command, result, base)


def _find(command: list[str], environment: Mapping[str, str]) -> str:
    """Return the file of the program. Raises OverlapError, which names a command of `overlap` if one was meant."""
    try:
        return program.find(command[0], environment)
    except OverlapError as error:
        if error.status == NOT_FOUND and command[0] in COMMANDS and not os.path.isfile(command[0]):
            import shlex

            error.hint = f"{command[0]} is a command of overlap: {shlex.join(['overlap', *command])}"
        elif error.hint == program.IN_PATH and any(map(_is_ours, command[1:])):
            error.hint = "options of overlap-run go before PROGRAM"
        raise


def _is_ours(word: str) -> bool:
    """Return whether a word is one of our options, by its long or its short name."""
    return word.partition("=")[0] in _OPTIONS or (len(word) == 2 and word[0] == "-" and word[1] in _SHORT)


def _taken(ours: list[str], base: Mapping[str, str]) -> str:
    """Return a hint where the last option took the program for its value, or nothing."""
    name, equals, value = ours[-1].partition("=") if ours else ("", "", "")
    if not equals and len(ours) > 1:
        name, value = ours[-2:]
    if not _takes_a_value(name) or not program.is_there(value, base):
        return ""
    wanted = _OPTIONS[name].value
    return f"{name} took {value} as its {wanted}: overlap-run {name} {wanted} {value}"


def _say(sentence: str) -> None:
    from pyshim.cli import ui

    ui.say(sentence)


def _say_mistake(error: Exception) -> None:
    """One rank says it: the others have the same mistake."""
    from pyshim.start.folder import rank

    if rank(os.environ):
        return
    from pyshim.cli import bug_log

    path = bug_log.write(error)
    log = f"; please report it with {path}, which has versions and the place" if path else ""
    _say(f"mistake in overlap-run ({bug_log.said(error)}): the program runs without the library{log}")


def _prepare(
    made: plan.Plan,
    options: Options,
    path: str,
    ours: list[str],
    command: list[str],
    base: Mapping[str, str],
    result: dict[str, str],
) -> dict[str, str]:
    """Look at program and machine, begin the report, print notes, and return the environment of the program.

    result: it, as far as the plan says it."""
    found = program.obstacle(path, base) if path else None
    if found and found.harmful:
        made.settings = made.settings._replace(library=None)
        result = environment(base, made.settings)
    elsewhere, changes = False, {}
    if os.path.basename(path) in program.LAUNCHER_KINDS:
        from pyshim.start import launchers

        name = os.path.abspath(sys.argv[0]) if os.path.basename(sys.argv[0]) == "overlap-run" else "overlap-run"
        again = (name, *(option for option in ours if option != "--dry-run"))
        way = launchers.look(launchers.LauncherCall(command, base, launchers.ours(base, result), again, path))
        elsewhere, changes = way.elsewhere, dict(way.changes)
        if way.doubt:
            made.doubts.append(way.doubt)
            found = found if found and found.harmful else None
    if found:
        made.doubts.append(found.sentence)
        if os.path.basename(path) not in program.LAUNCHER_KINDS:
            made.obstacle = found.sentence, found.hint
    if made.simulate is None and not elsewhere:
        made.driver = bool(program.vendors(base))
    if made.driver is False:
        searched = f"{program.CUDA}, {program.AMD_DEVICE}"
        made.doubts.append(f"no GPU driver found ({searched}): the program runs unchanged")
    if options.strict and made.doubts:
        raise OverlapError(made.doubts[0], "without --strict the program runs all the same", LAUNCHER_FAILED)
    if (options.report is not None or options.strict) and not options.dry_run:
        plan.begin(made, base, command, options.strict)
    _notes([*made.remarks, *made.doubts], options, base)
    return {**result, **changes}


def _notes(lines: list[str], options: Options, base: Mapping[str, str]) -> None:
    """One rank says them."""
    if lines and not options.quiet:
        from pyshim.start.folder import rank

        for line in lines if not rank(base) else ():
            _say(line)


def _describe(path: str, changes: Mapping[str, str], made: plan.Plan | None) -> int:
    if path:
        _say(f"would run {path}")
    if made and made.settings.report:
        _say(f"would keep a report in {made.settings.report}")
    for name, value in sorted(changes.items()):
        value = made.readable(value) if made else value
        shown = value if len(value) <= 200 else f"{value[:80]}... ({len(value)} characters)"
        _say(f"would set {name}={shown}")
    for line in made.left if made else ():
        if made and line not in made.remarks:
            _say(line)
    return 0


def _become(path: str, command: list[str], result: Mapping[str, str], bare: Mapping[str, str]) -> NoReturn:
    """bare: the environment without the library."""
    with suppress(TooLong):
        execute(path, command, result)
    _say("arguments and environment are too long with ours: the program runs without the library")
    try:
        execute(path, command, bare)
    except TooLong:
        raise OverlapError(
            f"{command[0]}: the argument list is too long", "xargs, or a file, passes them in parts", 126
        ) from None


if __name__ == "__main__":
    sys.exit(main())
