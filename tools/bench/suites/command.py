"""Programs by shape on simulated GPUs, bare and under every shipped policy: the
table of gains and losses.

Everything that it prints is simulated: it shows where a policy would gain or
harm, and never by how much on a real GPU.
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
from pyshim.enums import DISPATCH_RULES
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import library
from pyshim.policy.gpus import NVIDIA, known
from tools.bench.suites import text, variants
from tools.bench.suites.arms import Bench, built
from tools.bench.suites.invented import invented
from tools.bench.suites.picture import picture
from tools.bench.suites.programs import PROGRAMS, Program
from tools.bench.suites.rows import Case, harmed, measure

RULES = ("hold", "backfill")  # what a default policy must be safe under
SEED = 1
OBSERVE = "observe"
END = """exit status: 0 measured, and with --check no default policy loses more than 1 %;
1 with --check: one does; or a run failed; 2 the options are wrong, or make
setup was not run. NAME-paper-windows is NAME-paper with `when: overlapping`.
Options take several names and may be repeated. All of it takes three to six
minutes on 2 cores."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="suite", description=__doc__, epilog=END, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, what in (
        ("--gpu", "simulated GPUs (default: all)"),
        ("--rule", f"dispatch rules: {', '.join(DISPATCH_RULES)} (default: {', '.join(RULES)})"),
        ("--policy", "shipped policies, or files (default: all that are for the GPU, and observe)"),
        ("--program", "programs, or shapes for all programs of that shape (default: all)"),
    ):
        made.add_argument(option, action="append", default=[], metavar="NAME[,...]", help=what)
    made.add_argument("--invent", type=int, metavar="N", help="N programs made at random instead of those of the table")
    made.add_argument("--seed", type=int, metavar="N", help=f"with --invent: which ones (default: {SEED})")
    made.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs side by side (default: %(default)s)"
    )
    made.add_argument("--json", action="store_true", help="on stdout: a list of rows instead of the table")
    made.add_argument("--picture", metavar="FILE.svg", help="draw, as SVG, a bar for each program, sorted by change")
    made.add_argument("--timeline", metavar="DIR", help="keep a trace of every run, for chrome://tracing")
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
    named = {name: _listed(f"--{name}", getattr(options, name)) for name in ("gpu", "rule", "policy", "program")}
    drawn, timelines = _drawn(options.picture), _timelines(options.timeline)
    if options.jobs < 1:
        raise OverlapError("--jobs is a number from 1", None, USAGE)
    if options.seed is not None and options.invent is None:
        raise OverlapError("--seed says which programs --invent makes", "--invent 100 --seed 1", USAGE)
    built()
    programs = _programs(options, named["program"])
    rules = _chosen("dispatch rule", named["rule"], DISPATCH_RULES) or RULES
    cases = chosen_cases(named["gpu"], named["policy"])
    if options.check and not any(case.gpu.key in case.policies for case in cases):
        gpus = " or ".join(case.gpu.key for case in cases)
        raise OverlapError("--check looks at default policies, and none is among these", f"--policy {gpus}", USAGE)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="overlap-suite-") as folder:
        bench = Bench(Path(folder), os.environ, timelines)
        rows = measure(bench, cases, rules, programs, options.jobs)
    if drawn:
        drawn.write_text(picture(rows), encoding="utf-8")
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


def _drawn(name: str | None) -> Path | None:
    """Check the name of the picture at once, because the picture itself is written minutes later."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix != ".svg":
        raise OverlapError(f"--picture draws SVG, and {name!r} does not end in .svg", "--picture suite.svg", USAGE)
    if not path.parent.is_dir():
        raise OverlapError(f"--picture {name}: there is no folder {path.parent}", None, USAGE)
    return path


def _timelines(name: str | None) -> Path | None:
    if name is None:
        return None
    if not name:
        raise OverlapError("--timeline has an empty name", "--timeline traces", USAGE)
    path = Path(name)
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def _programs(options: argparse.Namespace, named: Sequence[str]) -> tuple[Program, ...]:
    if options.invent is None:
        return chosen_programs(named)
    if options.invent < 1 or named:
        raise OverlapError("--invent is a number from 1, without --program", "--invent 100 --seed 1", USAGE)
    return invented(options.invent, SEED if options.seed is None else options.seed)


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
    """Return the default policy of a GPU, then its variants and those with overlap windows, then `observe`."""
    shipped = [name for name in sorted(library.names({})) if name.startswith(f"{key}-")]
    pairs = [(name, variants.with_windows(name)) for name in shipped]
    return [key, *(name for pair in pairs for name in pair if name), OBSERVE]


def _chosen(what: str, wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    for word in wanted:
        if word not in names:
            close = get_close_matches(word, names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OverlapError(f"no {what} is called {word!r}", f"{hint}known: {', '.join(names)}", USAGE)
    return tuple(wanted)
