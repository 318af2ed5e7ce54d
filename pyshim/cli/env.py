"""Print the environment that overlap-run would set, for programs that overlap-run cannot start.

LD_PRELOAD is merged with its current value. If it may differ where the program runs, set
LD_PRELOAD=OURS${LD_PRELOAD:+:$LD_PRELOAD} there. Variables of the policy are omitted if they are already set, in the
environment or in nccl.conf.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyshim.errors import USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from pyshim.cli.parser import Parser

FORMATS = ("sh", "docker")
EPILOG = """\
formats:
  sh      export NAME='value', for eval and job scripts
  docker  NAME=value, for --env-file and srun --export

examples:
  eval "$(overlap env --policy h100 --report out)"
  overlap env --policy h100 --format docker > overlap.env"""


def add_to(commands: _SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "env", help="print the environment that overlap-run would set", description=__doc__, epilog=EPILOG
    )
    parser.add_argument(
        "-p", "--policy", metavar="POLICY", help="policy file or name (default: $OVERLAP_POLICY, else auto)"
    )
    parser.add_argument("--report", metavar="DIR", help="write counters to this folder, which is created now")
    parser.add_argument("--library", metavar="FILE", help="absolute path of liboverlap.so where the program runs")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="(default: sh)")
    parser.set_defaults(run=_run)
    parser.removed = {
        "--format slurm": "--format docker, with `export ` in front of each line",
        "--format json": "--format docker: a line NAME=value for each variable",
        "--format text": "overlap-run --dry-run true",
    }


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.start import plan
    from pyshim.start.environment import added, can_preload, environment

    if options.library is not None and not (options.library.startswith("/") and can_preload(options.library)):
        hint = "write a path from / on, without spaces, colons and quotes"
        raise OverlapError(f"--library {options.library}: LD_PRELOAD cannot hold that", hint, USAGE)
    # Nothing of an overlap-run around us: what is printed must hold where none is.
    base = {name: value for name, value in os.environ.items() if not name.startswith("OVERLAP_")}
    asked = plan.Request(policy=options.policy, report=options.report, elsewhere=True, library=options.library)
    choice = {name: os.environ[name] for name in (plan.CHOICE, "OVERLAP_POLICY_PATH") if name in os.environ}
    here = {**base, **choice}
    if plan.switched_off(here, options.policy):
        ui.say(f"{plan.CHOICE}=off: nothing is set")
        ui.answer(_format({}, options.format))
        return 0
    made = plan.make(asked, here)
    if made.doubts:
        raise OverlapError(made.doubts[0], "overlap doctor says what is in the way")
    if options.report is not None:
        plan.begin(made, base, None)
    for line in made.remarks:
        ui.say(line)
    values = added(base, environment(base, made.settings))
    # Already there counts as asked for, too: the place of use is another one.
    values["LD_PRELOAD"] = environment(base, made.settings)["LD_PRELOAD"]
    ui.answer(_format(values, options.format))
    return 0


def _format(values: Mapping[str, str], form: str) -> str:
    if form == "sh":
        return "\n".join(f"export {name}={_quoted(value)}" for name, value in sorted(values.items()))
    for name, value in values.items():
        if "\n" in value or "\r" in value:
            raise OverlapError(f"{name} holds a line break, which this format cannot say", "use --format sh")
    return "\n".join(f"{name}={value}" for name, value in sorted(values.items()))


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"
