"""Report what was changed in the latest run of a report folder, or why nothing was, and what to do next.

DIR/RUN is a given run. Several folders, such as one per host, are combined into one report. A run that is still going
on can be reported, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from typing import TYPE_CHECKING

from pyshim.cli import html
from pyshim.errors import FINDINGS, USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from pyshim.report.cadence import Change, Compared, Pace, Pair
    from pyshim.report.collect import Collected

RULES = ("rule", "shape", "launches", "shaped", "in window", "refused", "outcome")
PAIRS = ("rank", "before us", "after us", "change", "95 % interval", "verdict")
_FAR = 6
_FINDINGS = 10  # of many processes
_PAIRS = 16
EPILOG = """\
examples:
  overlap report out
  overlap report out --full
  overlap report out/20261127-093005-4711 --check
  overlap report out --html out.html
  overlap report --compare before after

exit status: 0 success; 1 no run to report, or a warning with --check; 2 wrong usage"""


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
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
        "--compare",
        metavar=("BEFORE", "AFTER"),
        nargs=2,
        help="compare the time between communication launches, or waits of the host, of two runs of one program",
    )
    html.add_to(parser, "; with --compare: compare different programs")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.report.collect import collect
    from pyshim.report.findings import findings, remarks, skipped
    from pyshim.report.summary import as_json
    from pyshim.report.tables import FEW

    if options.compare:
        return _compare(options)
    html.check(options)
    if not options.directory:
        raise OverlapError("missing argument: DIR", "overlap report DIR", USAGE)
    with ui.progress(f"making the report of {', '.join(options.directory)}"):
        collected = collect(*options.directory)
        reportable = bool(collected.pages or (collected.runs and not collected.skipped))
        found, about = (findings(collected), remarks(collected)) if reportable else ([], [])
    if not reportable:
        for sentence in skipped(collected):
            ui.tell(f"warning: {sentence}")
        raise OverlapError(*_nothing(collected))
    if options.html:
        html.put(ui.page("overlap report", lambda: _show(collected, found, about, True)), options)
    if options.json:
        data = as_json(collected, found, about)
        # Thousands of processes are for a program to read, and take a second less to write so.
        ui.answer(json.dumps(data, indent=2 if len(collected.pages) <= FEW else None))
        for sentence in skipped(collected):
            ui.tell(f"warning: {sentence}")
    elif not options.html:
        _show(collected, found, about, options.full)
    return FINDINGS if options.check and found else 0


def _nothing(collected: Collected) -> tuple[str, str]:
    from pyshim.report.collect import some

    if collected.skipped:
        return (
            f"there is no page in {some(collected.directories)} that can be read",
            "what is the matter with each is said above; where the folder was copied, copy it again",
        )
    holds = "hold" if len(collected.directories) > 1 else "holds"
    return (
        f"{some(collected.directories)} {holds} no report of overlap-run",
        "make one: overlap-run --report DIR PROGRAM",
    )


def _show(collected: Collected, found: list[str], about: list[str], full: bool) -> None:
    """Print what was done, what it gained and what to do next, and a warning: five lines at most.

    full: print all warnings, notes, what was run, and tables."""
    from pyshim.cli import ui
    from pyshim.report import tables
    from pyshim.report.verdict import verdict

    for name, sentence in verdict(collected)._asdict().items():
        ui.sentence(f"{name}: {sentence}")
    most = (len(found) if len(collected.pages) <= tables.FEW else _FINDINGS) if full else 1
    for sentence in found[:most]:
        ui.sentence(f"warning: {sentence}")
    more = len(found) - most
    if not full:
        also = f"{more:,} more warning{'s' * (more > 1)}, " if more > 0 else ""
        ui.show(f"--full: {also}notes, processes, reasons, streams, rules, kernels")
        return
    if more > 0:
        ui.sentence(f"warning: {more:,} more: --json has all")
    for sentence in about:
        ui.sentence(f"note: {sentence}")
    for line in (*tables.runs(collected), *tables.devices(collected)):
        ui.show(ui.printable(line))
    _show_tables(collected)


def _show_tables(collected: Collected) -> None:
    """Print the tables, each after an empty line."""
    from pyshim.cli import ui
    from pyshim.report import streams, tables

    def table(heads: Sequence[str], rows: list[list[str]], left: tuple[int, ...]) -> None:
        if rows:
            ui.show()
            ui.table(heads, rows, left=left)

    if len(collected.pages) > tables.FEW:
        _show_many(collected)
    else:
        table(tables.HEADS, tables.processes(collected), (0, 2, 3))
    table(("launches", "share", "reason", "meaning"), tables.reasons(collected), (2, 3))
    table(streams.HEADS, streams.rows(collected), (1, 2, 5))
    table(("count", "what"), tables.others(collected), (1,))
    table(RULES, tables.rules(collected), (0, 1, 6))
    table(tables.KERNEL_HEADS, tables.by_kernel(collected), (0, len(tables.KERNEL_HEADS) - 1))


def _show_many(collected: Collected) -> None:
    from pyshim.cli import ui
    from pyshim.report import tables

    ui.show()
    ui.table(tables.SUMMED_HEADS, tables.summed(collected), left=(2, 3, 4))
    far = tables.far(collected)
    if far:
        more = f"; the farthest {_FAR} of {len(far):,}" if len(far) > _FAR else ""
        ui.show()
        ui.show(f"far from the others of their kind{more} (--json has every process):")
        ui.table(tables.HEADS, [tables.row(page, collected) for page in far[:_FAR]], left=(0, 2, 3))


# Two runs


def _compare(options: argparse.Namespace) -> int:
    """Compare two runs. Raises OverlapError for folders without one, for one run, and for different programs."""
    from pyshim.cli import ui
    from pyshim.report.cadence import compared
    from pyshim.report.collect import collect, run_of, some
    from pyshim.report.findings import skipped

    if options.directory or options.check or options.html or options.full:
        hint = "overlap report --compare BEFORE AFTER"
        raise OverlapError("--compare stands alone, or with --json and --force", hint, USAGE)
    before, after = options.compare
    with ui.progress(f"comparing {before} and {after}"):
        sides = collect(before), collect(after)
        for side in sides:
            for sentence in skipped(side):
                ui.tell(f"warning: {sentence}")
            if not side.pages and not side.runs:
                hint = "give two folders of overlap-run --report"
                raise OverlapError(f"--compare: {some(side.directories)} is no report folder", hint, USAGE)
            if not side.pages:
                names = some(side.directories)
                raise OverlapError(f"--compare: the run in {names} has no page", f"overlap report {names} says why")
        if len({os.path.realpath(run_of(directory)) for directory in options.compare}) == 1:
            hint = "name the runs that you mean: overlap report --compare DIR/RUN DIR/RUN"
            raise OverlapError(f"--compare: {before} and {after} are the same run", hint, USAGE)
        found = compared(*sides)
    if found.different and not options.force:
        raise OverlapError(
            f"--compare: different programs, {found.different[0]} before and {found.different[1]} after",
            "compare two runs of one program, or say --force",
            USAGE,
        )
    if not found.pairs:
        raise OverlapError(
            "there is nothing to compare: no rank has launched communication or waited for its GPU in both runs",
            "compare the program's own time of an iteration; "
            f"overlap report {shlex.quote(str(before if not found.only_before else after))} shows one run",
        )
    if options.json:
        ui.answer(json.dumps(found.as_json(), indent=2))
    else:
        _show_compared(found)
    return 0


def _show_compared(found: Compared) -> None:
    from pyshim.cli import ui
    from pyshim.report.cadence import LAUNCHES

    before, after = found.programs
    ui.sentence(f"before and after: {before}" if before == after else f"before: {before}; after: {after}")
    if found.simulated:
        ui.show("simulated: this is no measurement of a GPU, so there is no verdict")
    each = "each launches the same collectives" if found.what == LAUNCHES else "each waits equally often"
    ui.paragraph(
        f"Time between {found.what} by the host's clock, every 2^n-th being timed: the time of steps, as far as {each}."
    )
    ui.show()
    rows = [[_who(pair), _pace(pair.before), _pace(pair.after), *_change(pair.change)] for pair in found.pairs[:_PAIRS]]
    total, count = found.total, len(found.pairs)
    if total and count > 1:
        means = (f"{mean:,.1f}" for mean in (total.before_us, total.after_us))
        rows.append([f"all {count:,}", *means, *_change(total.change)])
    named = all(pair.rank is None for pair in found.pairs)
    ui.table(("process" if named else PAIRS[0], *PAIRS[1:]), rows, left=(0, 5) if named else (5,))
    if count > _PAIRS:
        ui.show(f"{count - _PAIRS:,} more: --json")
    counts = found.as_json()["verdicts"]
    if len(found.pairs) > 1:
        ui.show("; ".join(f"{verdict}: {count:,} of {len(found.pairs):,}" for verdict, count in counts.items()))
    if any(pair.rank is None for pair in found.pairs):
        ui.sentence("note: processes without a rank were compared in their order")
    others = [pair for pair in found.pairs if not pair.change.same_launches]
    if others:
        one, other = others[0].before, others[0].after
        ui.sentence(
            f"note: not the same launches, as on {others[0].before_process}: {one.events:,} {found.what} "
            f"beside {one.others:,} other launches before, {other.events:,} beside {other.others:,} after: "
            "the time for each is not that of the same thing"
        )
    for title, lost in (("before", found.only_before), ("after", found.only_after)):
        if lost:
            ui.sentence(f"note: {len(lost):,} of {title} have no counterpart: {', '.join(lost[:3])}")
    ui.sentence(
        "note: one run on each side: what differs between any two runs (other nodes, other neighbours) is not in the "
        "interval"
    )


def _who(pair: Pair) -> str:
    return f"{pair.before_process}, {pair.after_process}" if pair.rank is None else str(pair.rank)


def _change(change: Change) -> list[str]:
    return [f"{change.percent:+.1f} %", _interval(change.low_percent, change.high_percent), _verdict(change)]


def _verdict(change: Change) -> str:
    from pyshim.report.cadence import TOO_FEW

    if change.verdict == TOO_FEW and change.half_percent is not None:
        return f"too few to see less than {change.half_percent:.0f} %"
    return change.verdict


def _pace(pace: Pace) -> str:
    if pace.low_us is None or pace.high_us is None:
        return f"{pace.mean_us:,.1f}"
    return f"{pace.mean_us:,.1f} ± {(pace.high_us - pace.low_us) / 2:,.1f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
