"""Report what was changed in the latest run of a report folder, or why nothing was, and what to do next.

DIR/RUN is a given run. Several folders, such as one per host, are combined into one report. A run that is still going
on can be reported, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from pyshim.cli import html
from pyshim.errors import FINDINGS, USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from pyshim.cli.parser import Parser
    from pyshim.report.collect import Collected, Skipped

EPILOG = """\
examples:
  overlap report out
  overlap report out --full
  overlap report out --html report.html
  overlap report out/20261127-093005-4711 --check
  overlap report /srv/overlap --jobs

exit status: 0 success; 1 no run to report, or a warning with --check; 2 wrong usage"""


def add_to(commands: _SubParsersAction[Parser]) -> None:
    parser = commands.add_parser("report", help="report what was changed in a run", description=__doc__, epilog=EPILOG)
    parser.add_argument("directory", metavar="DIR", nargs="*", help="the folder of overlap-run --report, or DIR/RUN")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--full", action="store_true", help="add notes and tables: processes, reasons, streams, rules, kernels"
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if there is a warning, such as ranks that differ"
    )
    parser.add_argument(
        "--fetch", action="store_true", help="first move pages that killed processes left on this node into DIR"
    )
    parser.add_argument(
        "--jobs",
        action="store_true",
        help="of all runs in DIR, of all users: a row for each program, those that gain first",
    )
    parser.add_argument("--csv", action="store_true", help="with --jobs: print CSV")
    parser.add_argument(
        "--prometheus",
        metavar="FILE",
        help="with --jobs: also write metrics for the node exporter's textfile collector",
    )
    html.add_to(parser)
    parser.set_defaults(run=_run)
    parser.removed = {
        "--compare": "which of two is faster: overlap tune --arm NAME=POLICY -- PROGRAM, which repeats both in turns",
    }


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.report.as_json import as_json
    from pyshim.report.collect import collect, latest_of
    from pyshim.report.findings import findings, remarks, skipped
    from pyshim.report.tables import FEW

    if not options.directory:
        raise OverlapError("missing argument: DIR", "overlap report DIR", USAGE)
    _refuse_mixed(options)
    if options.jobs:
        from pyshim.cli import jobs

        return jobs.run(options.directory, options.json, options.csv, options.prometheus)
    html.check(options)
    failed = _fetch(options.directory) if options.fetch else False
    with ui.progress(f"making the report of {', '.join(options.directory)}"):
        collected = collect(*options.directory)
        reportable = bool(collected.pages or (collected.runs and not collected.skipped))
        found, about = (findings(collected), remarks(collected)) if reportable else ([], [])
    if not reportable:
        nothing, why = _nothing(collected)
        for sentence in skipped(replace(collected, skipped=tuple(why))):
            ui.tell(f"warning: {sentence}")
        raise nothing
    for sentence in map(latest_of, options.directory):
        if sentence:
            ui.note(sentence)
    if options.html:
        from pyshim.report.page import page

        html.put(page(collected, found, about), options)
    if options.json:
        data = as_json(collected, found, about)
        # Thousands of processes are for a program to read, and take a second less to write so.
        ui.answer(json.dumps(data, indent=2 if len(collected.pages) <= FEW else None))
        for sentence in skipped(collected):
            ui.tell(f"warning: {sentence}")
    elif options.html != html.STDOUT:
        _show(collected, found, about, options.full)
    return FINDINGS if failed or (options.check and found) else 0


def _refuse_mixed(options: argparse.Namespace) -> None:
    """Raise OverlapError for an option that goes with --jobs only, or not with it."""
    if options.jobs:
        mixed = [name for name in ("full", "check", "fetch", "html", "force") if getattr(options, name)]
        if mixed:
            raise OverlapError(f"--{mixed[0]} is of one run, and --jobs of all", "leave one of the two out", USAGE)
        if options.json and options.csv:
            raise OverlapError("--json and --csv are two forms of the same answer", "leave one of the two out", USAGE)
    elif options.csv or options.prometheus is not None:
        name = "--csv" if options.csv else "--prometheus FILE"
        raise OverlapError(f"{name} is of all runs of a folder", f"overlap report DIR --jobs {name}", USAGE)


def _fetch(directories: Sequence[str]) -> bool:
    """Move the pages that wait on this node into their folders; return whether one cannot be moved."""
    from pyshim.cli import ui
    from pyshim.pages.waiting import fetch
    from pyshim.report.collect import run_of

    failed = [why for directory in directories for why in fetch(run_of(directory))]
    for name, reason in failed:
        ui.tell(f"warning: {name}: {reason}")
    return bool(failed)


def _nothing(collected: Collected) -> tuple[OverlapError, Sequence[Skipped]]:
    """Return the error where there is no run to report, and the skipped files that are its cause."""
    from pyshim.report.collect import has_traces, some

    traces = next((path for path in collected.directories if has_traces(path)), None)
    explain = f"overlap explain {shlex.quote(traces)}" if traces else ""
    ours = _ours(collected)
    if traces and not collected.runs and not ours:
        sentence = f"{traces} holds traces of a profiler, and no report of overlap-run"
        return OverlapError(sentence, f"for profilers' traces: {explain}"), ()
    if collected.skipped:
        hint = "what is the matter with each is said above; where the folder was copied, copy it again"
        if any(_is_closed(collected, file.name) for file in ours):
            hint = "what is the matter with each is said above; run it as a user who may read them, or ask their owner"
        hint += f"; for profilers' traces: {explain}" if traces else ""
        sentence = f"there is no page in {some(collected.directories)} that can be read"
        return OverlapError(sentence, hint), ours or collected.skipped
    return OverlapError(*_no_report(collected)), ()


def _ours(collected: Collected) -> list[Skipped]:
    """Return the skipped files that overlap-run or the library wrote: any NAME.json can be another program's."""
    from pyshim.profiles import is_trace
    from pyshim.start import folder

    run = f"{folder.OUTERMOST}.json"
    found = [one for one in collected.skipped if not folder.FIRST.match(one.name) or one.name == run]
    return [one for one in found if not any(map(is_trace, _paths(collected, one.name)))]


def _is_closed(collected: Collected, name: str) -> bool:
    return any(not os.access(path, os.R_OK) for path in _paths(collected, name))


def _paths(collected: Collected, name: str) -> list[str]:
    """Return where a file of the report is: its name alone is known."""
    from pyshim.report.collect import run_of

    paths = [os.path.join(run_of(directory), name) for directory in collected.directories]
    return [path for path in paths if os.path.lexists(path)]


def _no_report(collected: Collected) -> tuple[str, str]:
    """Return what the folders hold in place of a run, and what to do next."""
    from pyshim.report.collect import some
    from pyshim.report.jobs import run_below
    from pyshim.start.folder import search_of

    searches = [search for search in map(search_of, collected.directories) if search]
    if searches:
        return (
            f"{searches[0]} is a search of overlap tune, and holds no report",
            f"its answer: overlap tune --resume {shlex.quote(searches[0])}",
        )
    holds = "hold" if len(collected.directories) > 1 else "holds"
    every = shlex.join(["overlap", "report", *collected.directories, "--jobs"])
    runs, closed = zip(*map(run_below, collected.directories))
    if any(runs):
        return (
            f"{some(collected.directories)} {holds} no run itself, but folders with runs",
            f"of all runs: {every}; of one: overlap report {shlex.quote(next(filter(None, runs)))}",
        )
    if any(closed):
        first = next(filter(None, closed))
        return (
            f"{some(collected.directories)} {holds} no report that you may read: {first} is closed",
            f"if reports are in there, run it as a user who may read it: {every}; if not, name the folder that "
            "overlap-run --report DIR made",
        )
    return (
        f"{some(collected.directories)} {holds} no report of overlap-run",
        "make one: overlap-run --report DIR PROGRAM. OVERLAP_REPORT=DIR alone makes none: a TaskProlog or a module "
        "must load the library (docs/how-to/deploy.md)",
    )


def _show(collected: Collected, found: list[str], about: list[str], full: bool) -> None:
    """Print what was done, what it gained and what to do next, and a warning: five lines at most.

    full: print all warnings, notes, what was run, and tables."""
    from pyshim.cli import ui
    from pyshim.report import tables
    from pyshim.report.full import lines, sheets

    for name, sentence in lines(collected, found, about, full):
        ui.sentence(f"{name}: {sentence}")
    if not full:
        more = len(found) - 1
        also = f"{more:,} more warning{'s' * (more > 1)}, " if more > 0 else ""
        ui.show(f"--full: {also}notes, processes, reasons, streams, rules, kernels")
        return
    for line in (*tables.runs(collected), *tables.devices(collected)):
        ui.sentence(line)
    for sheet in sheets(collected):
        ui.show()
        if sheet.said:
            ui.show(sheet.said)
        ui.table(sheet.heads, sheet.rows, left=sheet.left)
