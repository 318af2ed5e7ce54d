"""overlap-run: starts a program under a policy by becoming it.

The import of everything that is not needed for a plain start waits: this command stands before every rank of every job.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from pyshim import __version__
from pyshim.cli import guarded, ui
from pyshim.cli.parser import Parser, dashes
from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.launch import driver, plan, program, rank
from pyshim.launch.environment import Settings, added, environment
from pyshim.launch.execute import TooLong, execute

USAGE = "overlap-run [options] [--] PROGRAM [ARG ...]"
EPILOG = """\
examples:
  overlap-run python train.py
  overlap-run --policy h100-paper --report out torchrun train.py
  srun overlap-run --policy ./my.yaml python train.py
  overlap-run --simulate h100:backfill ./program

exit status: PROGRAM's own; 125 overlap-run failed before it started,
126 PROGRAM is not executable, 127 PROGRAM was not found.
OVERLAP_RUN=off turns everything off.
See also: overlap report DIR, overlap env, overlap policy check FILE."""
_TAKE_A_VALUE = ("--policy", "--simulate", "--report")


def _parser() -> Parser:
    parser = Parser(
        prog="overlap-run",
        usage=USAGE,
        description="Run PROGRAM so that its communication overlaps its computation. Its process,\n"
        "output, signals and exit status are its own.",
        epilog=EPILOG,
        status=LAUNCHER_FAILED,
    )
    add = parser.add_argument
    add(
        "--policy",
        metavar="P",
        help="a FILE or shipped NAME, or several with commas (default:\n"
        "$OVERLAP_POLICY, else auto: the one for the GPU, if any)",
    )
    add("--simulate", metavar="GPU", help="h100[:hold|drain|backfill][,COUNT]: no real GPU is used")
    add("--report", metavar="DIR", help="keep what was counted there (see overlap report)")
    add("--trace", action="store_true", help="with --report: keep every launch, 64 MiB a process")
    add("--all-ranks", action="store_true", help="also set what must be equal on all ranks")
    add("--quiet", action="store_true", help="say errors only")
    add("--strict", action="store_true", help="fail with 125 where nothing could be done for PROGRAM")
    add("--dry-run", action="store_true", help="say what would be set, and stop")
    add("--version", action="version", version=f"overlap-run {__version__}", help="say which version this is")
    return parser


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program with everything behind it, whatever that looks like."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument == "--":
            return dashes(arguments[:index]), list(arguments[index + 1 :])
        if not argument.startswith("-") or argument == "-":
            break
        index += 2 if dashes([argument])[0] in _TAKE_A_VALUE else 1
    return dashes(arguments[:index]), list(arguments[index:])


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded(lambda: _main(list(sys.argv[1:] if arguments is None else arguments), os.environ))


def _main(arguments: list[str], base: Mapping[str, str]) -> int:
    ours, command = split(arguments)
    options = _parser().parse_args(ours)
    if not command and not options.dry_run:
        raise OverlapError("no program to run", USAGE, LAUNCHER_FAILED)
    path = ""
    made: plan.Plan | None = None
    try:
        made = _plan(options, base)
        path = program.find(command[0], base) if command else ""
        result = _prepare(made, options, path, command, base)
    except OverlapError:
        raise
    except Exception as error:
        # A mistake of ours is no reason for the program to fail.
        if options.strict or options.dry_run:
            raise
        ui.say(f"mistake in overlap-run ({type(error).__name__}: {error}): the program runs without the library")
        result = dict(base)
    if options.dry_run:
        return _describe(path, command, added(base, result), options.report, made)
    bare = environment(base, Settings(all_ranks=made.settings.all_ranks)) if made else base
    return _become(path or program.find(command[0], base), command, result, bare)


def _plan(options: Namespace, base: Mapping[str, str]) -> plan.Plan:
    if options.trace and options.report is None and not plan.switched_off(base, options.policy):
        raise OverlapError("--trace needs --report DIR: that is where it writes", None, LAUNCHER_FAILED)
    return plan.make(
        plan.Request(options.policy, options.simulate, options.report, options.trace, options.all_ranks, options.quiet),
        base,
    )


def _prepare(
    made: plan.Plan, options: Namespace, path: str, command: list[str], base: Mapping[str, str]
) -> dict[str, str]:
    """Looks at program and machine, opens the report, says what there is to say; the environment of the program."""
    if plan.switched_off(base, options.policy):
        return environment(base, made.settings)
    _look(made, path, base)
    if options.strict and made.doubts:
        raise OverlapError(made.doubts[0], "without --strict the program runs all the same", LAUNCHER_FAILED)
    if options.report is not None and not options.dry_run:
        plan.open_report(options.report, made, base, command, options.strict)
    if not options.quiet and not rank.rank(base):
        for line in [*made.remarks, *made.doubts]:
            ui.say(line)
    return environment(base, made.settings._replace(launcher_pid=os.getpid()))


def _look(made: plan.Plan, path: str, base: Mapping[str, str]) -> None:
    """What about the program and the machine keeps the library from working."""
    found = program.obstacle(path, base) if path else None
    if found:
        made.doubts.append(found.sentence)
        if found.harmful:
            made.settings = made.settings._replace(library=None)
    if made.simulate is None and not driver.vendors(base):
        searched = f"NVIDIA's {driver.NAME}, AMD's {driver.AMD_DEVICE}"
        made.doubts.append(f"no GPU driver on this machine ({searched}): nothing is done here")


def _describe(
    path: str, command: list[str], changes: Mapping[str, str], report: str | None, made: plan.Plan | None
) -> int:
    if command:
        ui.say(f"would run {path}")
    if report is not None:
        ui.say(f"would keep a report in {os.path.abspath(report)}")
    for name, value in sorted(changes.items()):
        shown = value if len(value) <= 200 else f"{value[:80]}... ({len(value)} characters)"
        ui.say(f"would set {name}={shown}")
    if made:
        for line in [line for line in made.left if line not in made.remarks]:
            ui.say(line)
    return 0


def _become(path: str, command: list[str], result: Mapping[str, str], bare: Mapping[str, str]) -> NoReturn:
    """bare: the environment without the library."""
    with suppress(TooLong):
        execute(path, command, result)
    ui.say("arguments and environment are too long with ours: the program runs without the library")
    try:
        execute(path, command, bare)
    except TooLong:
        raise OverlapError(f"{command[0]}: the argument list is too long", None, 126) from None


if __name__ == "__main__":
    sys.exit(main())
