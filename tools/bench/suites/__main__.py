"""Programs by shape on simulated GPUs, under the shipped policies: do they get slower?

    .venv/bin/python -m tools.bench.suites [--gpu NAME] [--rule NAME] [--policy NAME] [--program NAME] [--json]

Everything that it prints is simulated: it shows where a policy would gain or harm, and never by how much on a real GPU.
All of it takes one to two minutes on 2 cores. Exit status: 0 measured, and with --check no default policy loses more
than 1 %; 1 with --check: one does; or a run failed; 2 the options are wrong, or make setup was not run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pyshim.cli import ui
from pyshim.enums import DISPATCH_RULES
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import library
from pyshim.policy.gpus import NVIDIA, known
from tools.bench.suites.programs import PROGRAMS
from tools.bench.suites.rows import LIMIT_PERCENT, RULE, Case, Row, harmed, measured

GPUS = {gpu.key: gpu for gpu in known() if gpu.simulated and gpu.vendor == NVIDIA}  # the programs are CUDA's
NAMES = (*(program.name for program in PROGRAMS), *dict.fromkeys(program.shape for program in PROGRAMS))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, names, what in (
        ("gpu", tuple(GPUS), "simulated GPU (default: all)"),
        ("rule", DISPATCH_RULES, f"dispatch rule: {', '.join(DISPATCH_RULES)} (default: {RULE})"),
        ("program", NAMES, "program, or shape for all programs of that shape (default: all)"),
        ("policy", None, "shipped policy, or file (default: all that are for the GPU)"),
    ):
        made.add_argument(f"--{option}", action="append", default=[], choices=names, metavar="NAME", help=what)
    made.add_argument("--json", action="store_true", help="on stdout: a list of rows instead of the table")
    made.add_argument("--check", action="store_true", help="exit status 1 if a default policy loses more than 1 %%")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        cases = [Case(GPUS[key], policies_of(key, options.policy)) for key in options.gpu or GPUS]
        if options.check and not any(case.gpu.key in case.policies for case in cases):
            raise OverlapError("--check looks at default policies, and none is among these", "--policy h100", USAGE)
        wanted = set(options.program or NAMES)
        programs = [program for program in PROGRAMS if {program.name, program.shape} & wanted]
        rows = measured(cases, options.rule or [RULE], programs, os.cpu_count() or 1)
    except OverlapError as error:
        ui.complain(error)
        return error.status
    if options.json:
        sys.stdout.write("[" + ",\n ".join(json.dumps(asdict(row)) for row in rows) + "]\n")
    else:
        sys.stdout.write(table(rows) + "\n")
    return FINDINGS if options.check and harmed(rows) else 0


def policies_of(key: str, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the default policy of a GPU and its variants, and of those wanted also files and those of no GPU."""
    shipped = sorted(library.names({}))
    own = [key, *(name for name in shipped if name.startswith(f"{key}-"))]
    if not wanted:
        return tuple(own)
    of_others = {name for name in shipped if name.partition("-")[0] in GPUS} - {*own}
    for name in wanted:
        if name not in shipped and not Path(name).is_file():
            raise OverlapError(f"no policy is called {name!r}", f"known: {', '.join(shipped)}", USAGE)
    return tuple(name for name in wanted if name not in of_others)


def table(rows: Sequence[Row]) -> str:
    """For each GPU, rule and policy: best, median and worst program, and how many lose more than the limit."""
    lines = ["Simulated change of the time of a step against the program as written; negative is faster."]
    lines.append(f"{'gpu':6} {'rule':9} {'policy':14} {'best':>7} {'median':>7} {'worst':>7}  losing  worst program")
    for key in dict.fromkeys((row.gpu, row.rule, row.policy) for row in rows):
        own = sorted((row for row in rows if (row.gpu, row.rule, row.policy) == key), key=lambda row: row.change)
        ends = (own[0].change, statistics.median(row.change for row in own), own[-1].change)
        numbers = " ".join(f"{value + 0.0:+6.1f}%" for value in ends)
        losing = sum(row.change > LIMIT_PERCENT for row in own)
        lines.append(f"{key[0]:6} {key[1]:9} {key[2]:14} {numbers}  {losing:6}  {own[-1].program}")
    return "\n".join([*lines, *verdict(rows)])


def verdict(rows: Sequence[Row]) -> list[str]:
    found = harmed(rows)
    if not found:
        return [f"no default policy loses more than {LIMIT_PERCENT:g} % of virtual time in any of these (simulated)"]
    head = f"default policies lose more than {LIMIT_PERCENT:g} % here (simulated; own: by priority alone):"
    own = (f"  {row.gpu}, {row.rule}, {row.program}: {row.change:+.1f} %, own {row.priority:+.1f} %" for row in found)
    return [head, *own]


if __name__ == "__main__":
    sys.exit(main())
