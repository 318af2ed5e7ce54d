"""Programs by shape on simulated GPUs, under the shipped policies: do they get
slower?

Everything that it prints is simulated: it shows where a policy would gain or
harm, and never by how much on a real GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path

from pyshim.cli import ui
from pyshim.enums import DISPATCH_RULES
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import library
from pyshim.policy.gpus import NVIDIA, known
from tools.bench.suites.arms import Bench, built
from tools.bench.suites.programs import PROGRAMS, Program
from tools.bench.suites.rows import LIMIT_PERCENT, Case, Row, harmed, measure

RULE = "hold"  # what an H200 does
END = """exit status: 0 measured, and with --check no default policy loses more than 1 %;
1 with --check: one does; or a run failed; 2 the options are wrong, or make
setup was not run. Options take several names and may be repeated. All of it
takes one to two minutes on 2 cores."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="suite", description=__doc__, epilog=END, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, what in (
        ("--gpu", "simulated GPUs (default: all)"),
        ("--rule", f"dispatch rules: {', '.join(DISPATCH_RULES)} (default: {RULE})"),
        ("--policy", "shipped policies, or files (default: all that are for the GPU)"),
        ("--program", "programs, or shapes for all programs of that shape (default: all)"),
    ):
        made.add_argument(option, action="append", default=[], metavar="NAME[,...]", help=what)
    made.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs side by side (default: %(default)s)"
    )
    made.add_argument("--json", action="store_true", help="on stdout: a list of rows instead of the table")
    made.add_argument("--check", action="store_true", help="exit status 1 if a default policy loses more than 1 %%")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except OverlapError as error:
        ui.complain(error)
        return error.status


def _run(options: argparse.Namespace) -> int:
    named = {name: _listed(f"--{name}", getattr(options, name)) for name in ("gpu", "rule", "policy", "program")}
    if options.jobs < 1:
        raise OverlapError("--jobs is a number from 1", None, USAGE)
    built()
    programs = chosen_programs(named["program"])
    rules = _chosen("dispatch rule", named["rule"], DISPATCH_RULES) or (RULE,)
    cases = chosen_cases(named["gpu"], named["policy"])
    if options.check and not any(case.gpu.key in case.policies for case in cases):
        gpus = " or ".join(case.gpu.key for case in cases)
        raise OverlapError("--check looks at default policies, and none is among these", f"--policy {gpus}", USAGE)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="overlap-suite-") as folder:
        rows = measure(Bench(Path(folder), os.environ), cases, rules, programs, options.jobs)
    if options.json:
        sys.stdout.write("[" + ",\n ".join(json.dumps(asdict(row)) for row in rows) + "]\n")
    else:
        sys.stdout.write(table(rows) + "\n")
    sys.stdout.flush()
    ui.say(f"{len(programs)} programs, {len(rows)} rows, {time.monotonic() - begin:.0f} s; all of it simulated")
    lost = harmed(rows) if options.check else []
    if lost and options.json:
        ui.show(verdict(rows))
    return FINDINGS if lost else 0


def _listed(option: str, values: Sequence[str]) -> list[str]:
    """Split lists at commas. Raises OverlapError for an empty name: probably an unset variable of a script."""
    items = [item.strip() for value in values for item in value.split(",")]
    if not all(items):
        raise OverlapError(f"{option} has an empty name", "leave the option away for all", USAGE)
    return list(dict.fromkeys(items))


def chosen_programs(wanted: Sequence[str]) -> tuple[Program, ...]:
    shapes = dict.fromkeys(program.shape for program in PROGRAMS)
    names = set(_chosen("program", wanted, (*(program.name for program in PROGRAMS), *shapes)))
    return tuple(program for program in PROGRAMS if not names or {program.name, program.shape} & names)


def chosen_cases(gpus: Sequence[str], policies: Sequence[str]) -> list[Case]:
    """Return the policies of each GPU. A policy named together with a GPU that it is not for only observes there."""
    simulated = {gpu.key: gpu for gpu in known() if gpu.simulated and gpu.vendor == NVIDIA}  # the programs are CUDA's
    chosen = _chosen("simulated GPU", gpus, tuple(simulated)) or tuple(simulated)
    shipped = [name for key in simulated for name in policies_of(key)]
    files = [item for item in policies if "/" in item or Path(item).is_file()]
    named = _chosen("policy", [item for item in policies if item not in files], (*dict.fromkeys(shipped), "observe"))
    cases = []
    for key in chosen:
        own = tuple(name for name in policies_of(key) if not policies or name in named)
        if gpus:
            own += tuple(name for name in named if name not in own)
        if own or files:
            cases.append(Case(simulated[key], (*own, *files)))
    return cases


def policies_of(key: str) -> list[str]:
    """Return the default policy of a GPU, then its variants."""
    return [key, *(name for name in sorted(library.names({})) if name.startswith(f"{key}-"))]


def _chosen(what: str, wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    for word in wanted:
        if word not in names:
            close = get_close_matches(word, names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OverlapError(f"no {what} is called {word!r}", f"{hint}known: {', '.join(names)}", USAGE)
    return tuple(wanted)


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
    return "\n".join([*lines, verdict(rows)])


def verdict(rows: Sequence[Row]) -> str:
    found = harmed(rows)
    if not any(row.default for row in rows):
        return "no default policy among them"
    if not found:
        return f"no default policy loses more than {LIMIT_PERCENT:g} % of virtual time in any of these (simulated)"
    head = f"default policies lose more than {LIMIT_PERCENT:g} % here (simulated; own: by priority alone):"
    own = (f"  {row.gpu}, {row.rule}, {row.program}: {row.change:+.1f} %, own {row.priority:+.1f} %" for row in found)
    return "\n".join([head, *own])
