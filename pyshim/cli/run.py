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
from pyshim.cli import ui
from pyshim.cli.parser import Parser, dashes
from pyshim.errors import FINDINGS, LAUNCHER_FAILED, OverlapError
from pyshim.launch import driver, folder, inherited, launchers, plan, program, rank
from pyshim.launch.environment import added, environment, unquote
from pyshim.launch.execute import TooLong, execute

USAGE = "overlap-run [options] [--] PROGRAM [ARG ...]"
EPILOG = """\
examples:
  overlap-run python train.py
  overlap-run --policy observe --report out python train.py
  srun overlap-run --policy ./my.yaml python train.py
  overlap-run --simulate h100 --report out demo

exit status: PROGRAM's own; 125 overlap-run failed before it started, 126 PROGRAM is not executable, 127 PROGRAM was
not found. OVERLAP_RUN=off disables everything.

see also: overlap report DIR, overlap doctor PROGRAM, overlap explain, overlap policy check FILE."""
_TAKE_A_VALUE = ("--policy", "--simulate", "--report")
_SHORT = {"p": "--policy", "o": "--report", "q": "--quiet", "n": "--dry-run"}


def _parser() -> Parser:
    parser = Parser(
        prog="overlap-run",
        usage=USAGE,
        description="Run PROGRAM so that its communication overlaps its computation. Its process, output, signals and "
        "exit status are its own.",
        epilog=EPILOG,
        status=LAUNCHER_FAILED,
    )
    add = parser.add_argument
    add(
        "-p",
        "--policy",
        metavar="POLICY",
        help="policy file or name, or several separated by commas (default: "
        "$OVERLAP_POLICY, else default, which is for every GPU)",
    )
    add(
        "--simulate",
        metavar="GPU",
        help="run on a simulated GPU: h100[:hold|drain|backfill][,COUNT], or another of `overlap policy list`. Bundled "
        "program: demo-stencil",
    )
    add("-o", "--report", metavar="DIR", help="write counters to this folder, for `overlap report DIR`")
    add("-q", "--quiet", action="store_true", help="print errors only")
    add(
        "--strict",
        action="store_true",
        help="exit with 125 if the library cannot work, or, with --report, if ranks were started differently",
    )
    add("-n", "--dry-run", action="store_true", help="print what would be set, and do not start PROGRAM")
    add("--version", action="version", version=f"overlap-run {__version__}", help="print the version")
    return parser


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options by their long names, and the program with everything behind it, whatever that looks like."""
    ours: list[str] = []
    left = list(arguments)
    while left and left[0].startswith("-") and left[0] != "-":
        argument = left.pop(0)
        if argument == "--":
            break
        ours += [dashes(argument)] if argument.startswith("--") else _long(argument[1:])
        if ours[-1] in _TAKE_A_VALUE:
            ours += left[:1]
            del left[:1]
    return ours, left


def _long(letters: str) -> list[str]:
    """-nq, -p h100 and -ph100 by their long names; what has none is left for the parser to refuse."""
    name = _SHORT.get(letters[0])
    if name is None:
        return [f"-{letters}"]
    if len(letters) == 1:
        return [name]
    return [f"{name}={letters[1:]}"] if name in _TAKE_A_VALUE else [name, *_long(letters[1:])]


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        inherited.restore()
    status = ui.guarded(lambda: start(list(sys.argv[1:] if arguments is None else arguments), os.environ))
    return LAUNCHER_FAILED if status in (FINDINGS, ui.BUG) else status


def start(arguments: list[str], base: Mapping[str, str]) -> int:
    """Become the program, or describe what would be done. base: the environment. Raises OverlapError."""
    ours, command = split(arguments)
    options = _parser().parse_args(ours)
    if not command and not options.dry_run:
        raise OverlapError("no program to run", USAGE, LAUNCHER_FAILED)
    path = ""
    made: plan.Plan | None = None
    try:
        made = _plan(options, base)
        path = program.find(command[0], environment(base, made.settings)) if command else ""
        result = _prepare(made, options, path, ours, command, base)
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
    return _become(path or program.find(command[0], base), command, result, base)


def _plan(options: Namespace, base: Mapping[str, str]) -> plan.Plan:
    asked = plan.Request(options.policy, options.simulate, options.report, options.quiet)
    return plan.make(asked, base)


def _prepare(
    made: plan.Plan, options: Namespace, path: str, ours: list[str], command: list[str], base: Mapping[str, str]
) -> dict[str, str]:
    """Look at program and machine, open the report, print notes, and return the environment of the program."""
    if plan.switched_off(base, options.policy):
        return environment(base, made.settings)
    _look(made, path, ours, command, base)
    if options.strict and made.doubts:
        raise OverlapError(made.doubts[0], "without --strict the program runs all the same", LAUNCHER_FAILED)
    report = _report(options, base)
    if report is not None and not options.dry_run:
        plan.open_report(report, made, base, command, options.strict)
    elif options.strict and report is None and (rank.world_size(base) or 1) > 1:
        made.remarks.append("--strict compares ranks with each other only with --report DIR")
    if not options.quiet and not rank.rank(base):
        for line in [*made.remarks, *made.doubts]:
            ui.say(line)
    result = environment(base, made.settings._replace(launcher_pid=os.getpid()))
    made.carried = _way(made, path, ours, command, base).changes
    return {**result, **made.carried}


def _report(options: Namespace, base: Mapping[str, str]) -> str | None:
    """Return the folder in which ranks record how they were started.

    Without --strict, a folder that the environment names is used by the library only, and never a reason to fail."""
    if options.report is None and options.strict and base.get("OVERLAP_REPORT"):
        return unquote(base["OVERLAP_REPORT"])
    return str(options.report) if options.report is not None else None


def _look(made: plan.Plan, path: str, ours: list[str], command: list[str], base: Mapping[str, str]) -> None:
    """Print what about the program and the machine keeps the library from working."""
    found = program.obstacle(path, base) if path else None
    if found and found.harmful:
        made.settings = made.settings._replace(library=None)
    way = _way(made, path, ours, command, base)
    if found and (found.harmful or not way.doubt):
        made.doubts.append(found.sentence)
    if way.doubt:
        made.doubts.append(way.doubt)
    if made.simulate is None and not way.elsewhere and not driver.vendors(base):
        searched = f"NVIDIA's {driver.NAME}, AMD's {driver.AMD_DEVICE}"
        made.doubts.append(f"no GPU driver on this machine ({searched}): nothing is done here")


def _way(made: plan.Plan, path: str, ours: list[str], command: list[str], base: Mapping[str, str]) -> launchers.Way:
    """How what is set gets to the ranks, where the program is a launcher."""
    if not command:
        return launchers.Way()
    name = os.path.abspath(sys.argv[0]) if os.path.basename(sys.argv[0]) == "overlap-run" else "overlap-run"
    needed = launchers.ours(base, environment(base, made.settings))
    again = (name, *(option for option in ours if option != "--dry-run"))
    return launchers.look(launchers.Asked(command, base, needed, again, path))


def _describe(
    path: str, command: list[str], changes: Mapping[str, str], report: str | None, made: plan.Plan | None
) -> int:
    kept = folder.absolute(report) if report is not None else None
    if command:
        ui.say(f"would run {path}")
    if kept is not None:
        ui.say(f"would keep a report in {kept}")
    for name, value in sorted(changes.items()):
        value = made.readable(value) if made else value
        shown = value if len(value) <= 200 else f"{value[:80]}... ({len(value)} characters)"
        ui.say(f"would set {name}={shown}")
    if made:
        for line in made.left:
            if line not in made.remarks:
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
