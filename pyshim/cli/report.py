"""Report what was changed in the latest run of a report folder, or why nothing was, and what to do next.

Several folders, such as one per host, are combined into one report. A run that is still going on can be reported, too.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pyshim.cli import html
from pyshim.errors import FINDINGS, USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from pyshim.report.collect import Collected

RULES = ("rule", "shape", "launches", "shaped", "in window", "refused", "outcome")
_FAR = 6
_FINDINGS = 10
EPILOG = """\
examples:
  overlap report out --full
  overlap report out --check
  overlap report out --html out.html
  overlap report --compare before after

exit status: 0 success; 1 no run to report, or a warning with --check; 2 wrong usage"""


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("report", help="report what was changed in a run", description=__doc__, epilog=EPILOG)
    parser.add_argument("directory", metavar="DIR", nargs="*", help="a report folder: that of overlap-run --report")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--full", action="store_true", help="add notes and tables: processes, reasons, streams, rules, kernels"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", metavar="ID", dest="which", help="report this run instead of the latest one")
    which.add_argument("--all", action="store_const", const="all", dest="which", help="add up all runs of the folder")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if there is a warning, such as ranks that differ"
    )
    parser.add_argument(
        "--compare",
        metavar=("BEFORE", "AFTER"),
        nargs=2,
        help="compare the time between communication launches of two report folders",
    )
    html.add_to(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pyshim.cli import ui
    from pyshim.report.collect import collect
    from pyshim.report.findings import findings, remarks, skipped
    from pyshim.report.many import FEW
    from pyshim.report.runs import chosen
    from pyshim.report.summary import as_json

    html.check(options)
    if options.compare:
        return _compare(options)
    if not options.directory:
        raise OverlapError("missing argument: DIR", "overlap report DIR", USAGE)
    with ui.progress(f"making the report of {', '.join(options.directory)}"):
        collected = chosen(collect(*options.directory), options.which)
        reportable = bool(collected.pages or (collected.runs and not collected.skipped))
        every = bool(options.full or options.json or options.html)
        found, about = (findings(collected), remarks(collected, every)) if reportable else ([], [])
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


def _compare(options: argparse.Namespace) -> int:
    from pyshim.cli.compare import compare

    if options.directory or options.check or options.html:
        raise OverlapError("--compare stands alone, or with --json", "overlap report --compare BEFORE AFTER", USAGE)
    before, after = options.compare
    return compare(before, after, options)


def _nothing(collected: Collected) -> tuple[str, str]:
    from pyshim.report.who import some

    if collected.skipped:
        return (
            f"there is no page in {some(collected.directories)} that can be read",
            "what is the matter with each is said above; where the folder was copied, copy it again",
        )
    holds = "hold" if len(collected.directories) > 1 else "holds"
    return f"{some(collected.directories)} {holds} no report of overlap-run", _where(collected.directories)


def _where(directories: Sequence[str]) -> str:
    """Return what to do. The folders of several hosts are often copied side by side into one."""
    from glob import escape, glob

    for directory in directories:
        if glob(f"{escape(directory)}/*/*.page"):
            return f"there are pages one folder further down: overlap report {directory}/*"
    return "make one: overlap-run --report DIR PROGRAM"


def _show(collected: Collected, found: list[str], about: list[str], full: bool) -> None:
    """Print the verdict, warnings, notes and what was run; with `full`, also the tables."""
    from pyshim.cli import ui
    from pyshim.report import many, text
    from pyshim.report.verdict import verdict

    for name, sentence in verdict(collected)._asdict().items():
        ui.sentence(f"{name}: {sentence}")
    shown = found if len(collected.pages) <= many.FEW else found[:_FINDINGS]
    for sentence in shown:
        ui.sentence(f"warning: {sentence}")
    if len(shown) < len(found):
        ui.sentence(f"warning: {len(found) - len(shown)} more: --json has all")
    for sentence in about:
        ui.sentence(f"note: {sentence}")
    for line in (*text.runs(collected), *text.devices(collected)):
        ui.show(ui.printable(line))
    if full:
        _show_tables(collected)
    elif collected.pages:
        ui.show("--full adds notes and tables: processes, reasons, streams, rules, kernels")


def _show_tables(collected: Collected) -> None:
    """Print the tables, each after an empty line."""
    from pyshim.cli import ui
    from pyshim.report import many, streams, text

    def table(heads: Sequence[str], rows: list[list[str]], left: tuple[int, ...]) -> None:
        if rows:
            ui.show()
            ui.table(heads, rows, left=left)

    if len(collected.pages) > many.FEW:
        _show_many(collected)
    else:
        table(text.HEADS, text.processes(collected), (0, 2, 3))
    table(("launches", "share", "reason", "meaning"), text.reasons(collected), (2, 3))
    table(streams.HEADS, streams.rows(collected), (1, 2, 5))
    table(("count", "what"), text.others(collected), (1,))
    table(RULES, text.rules(collected), (0, 1, 6))
    table(text.KERNEL_HEADS, text.by_kernel(collected), (0, len(text.KERNEL_HEADS) - 1))


def _show_many(collected: Collected) -> None:
    from pyshim.cli import ui
    from pyshim.report import many, text

    ui.show()
    ui.table(many.HEADS, many.rows(collected), left=(2, 3, 4))
    far = many.far(collected)
    if far:
        more = f"; the farthest {_FAR} of {len(far):,}" if len(far) > _FAR else ""
        ui.show()
        ui.show(f"far from the others of their kind{more} (--json has every process):")
        ui.table(text.HEADS, [text.row(page, collected) for page in far[:_FAR]], left=(0, 2, 3))
