"""Programs by shape on simulated GPUs, bare and under every shipped policy: the table of gains and losses.

Everything that it prints is simulated: it shows where a policy would gain or harm, and never by how much on a real GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from pyshim.cli import ui
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import library
from pyshim.policy.gpus import known
from suites import text
from suites.arms import Bench
from suites.invented import invented
from suites.picture import picture
from suites.programs import PROGRAMS, Program
from suites.rows import Case, harmed, measure

RULES = ("hold", "backfill")  # what a default policy must be safe under
ALL_RULES = ("hold", "drain", "backfill")
OBSERVE = "observe"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, what in (
        ("--gpu", "simulated GPUs (default: all)"),
        ("--rule", f"dispatch rules: {', '.join(ALL_RULES)} (default: {', '.join(RULES)})"),
        ("--policy", "shipped policies, or files (default: all that are for the GPU, and observe)"),
        ("--program", "programs, or shapes for all programs of that shape (default: all)"),
    ):
        made.add_argument(option, action="append", default=[], metavar="NAME[,...]", help=what)
    made.add_argument("--invent", type=int, metavar="N", help="N programs made at random instead of those of the table")
    made.add_argument("--seed", type=int, default=1, help="which ones (default: %(default)s)")
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs side by side (default: %(default)s)")
    made.add_argument("--json", action="store_true", help="on stdout: a list of rows instead of the table")
    made.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw a bar for each program, sorted by change")
    made.add_argument("--timeline", type=Path, metavar="DIR", help="keep a trace of every run, for chrome://tracing")
    made.add_argument("--check", action="store_true", help="exit status 1 if a default policy loses more than 1 %%")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except OverlapError as error:
        ui.complain(error)
        return error.status
    except OSError as error:
        ui.complain(OverlapError(f"{error.filename}: {error.strerror}"))
        return USAGE


def _run(options: argparse.Namespace) -> int:
    programs = _programs(options)
    rules = _chosen("dispatch rule", _listed(options.rule), ALL_RULES) or RULES
    cases = chosen_cases(_listed(options.gpu), _listed(options.policy))
    if options.jobs < 1:
        raise OverlapError("--jobs is a number from 1", None, USAGE)
    if options.timeline:
        options.timeline.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="overlap-suite-") as folder:
        bench = Bench(Path(folder), os.environ, options.timeline and options.timeline.resolve())
        rows = measure(bench, cases, rules, programs, options.jobs)
    if options.picture:
        options.picture.write_text(picture(rows), encoding="utf-8")
    if options.json:
        sys.stdout.write("[" + ",\n ".join(json.dumps(row.as_dict()) for row in rows) + "]\n")
    else:
        sys.stdout.write(text.table(rows) + "\n")
    sys.stdout.flush()
    ui.say(f"{len(programs)} programs, {len(rows)} rows, {time.monotonic() - begin:.0f} s; all of it simulated")
    lost = harmed(rows) if options.check else []
    if lost and options.json:
        ui.show(text.verdict(rows))
    return FINDINGS if lost else 0


def _programs(options: argparse.Namespace) -> tuple[Program, ...]:
    if options.invent is None:
        return chosen_programs(_listed(options.program))
    if options.invent < 1 or options.program:
        raise OverlapError("--invent is a number from 1, without --program", "--invent 100 --seed 1", USAGE)
    return invented(options.invent, options.seed)


def _listed(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(item.strip() for value in values for item in value.split(",") if item.strip()))


def chosen_programs(wanted: Sequence[str]) -> tuple[Program, ...]:
    shapes = dict.fromkeys(program.shape for program in PROGRAMS)
    names = set(_chosen("program", wanted, (*(program.name for program in PROGRAMS), *shapes)))
    return tuple(program for program in PROGRAMS if not names or {program.name, program.shape} & names)


def chosen_cases(gpus: Sequence[str], policies: Sequence[str]) -> list[Case]:
    """The policies of each GPU. One that was named together with a GPU it is not for runs there all the same: it only
    observes."""
    simulated = {gpu.key: gpu for gpu in known() if gpu.simulated}
    chosen = _chosen("simulated GPU", gpus, tuple(simulated)) or tuple(simulated)
    shipped = [name for key in simulated for name in policies_of(key)]
    files = [item for item in policies if "/" in item or Path(item).is_file()]
    named = _chosen("policy", [item for item in policies if item not in files], tuple(dict.fromkeys(shipped)))
    cases = []
    for key in chosen:
        own = tuple(name for name in policies_of(key) if not policies or name in named)
        if gpus and not own:
            own = named
        if own or files:
            cases.append(Case(simulated[key], (*own, *files)))
    return cases


def policies_of(key: str) -> list[str]:
    """The default of a GPU first, then its variants, then what changes nothing."""
    variants = [name for name in sorted(library.names({})) if name.startswith(f"{key}-")]
    return [key, *variants, OBSERVE]


def _chosen(what: str, wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    for word in wanted:
        if word not in names:
            close = get_close_matches(word, names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OverlapError(f"no {what} is called {word!r}", f"{hint}known: {', '.join(names)}", USAGE)
    return tuple(wanted)
