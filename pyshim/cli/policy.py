"""Checks policy files: finds every mistake, with its place and what to write instead."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from pyshim.errors import FINDINGS, OverlapError
from pyshim.policy import library
from pyshim.policy.finding import Finding, render
from pyshim.policy.reader import Reading, read_file
from pyshim.policy.table import compile_table


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("policy", help="check policy files", description=__doc__)
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    check = verbs.add_parser(
        "check",
        help="find every mistake in policy files",
        description="Find every mistake in policy files, and in what they extend. Nothing is run and no GPU is needed.",
        epilog="exit status: 0 no mistakes (warnings are none), 1 mistakes, 2 usage",
    )
    check.add_argument("file", nargs="+", metavar="FILE", help="a policy file, or the name of a shipped policy")
    check.add_argument(
        "--output-format",
        choices=("text", "json"),
        default="text",
        help="json: one object on stdout (default: text on stderr)",
    )
    check.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    readings = [_read(name) for name in args.file]
    if args.output_format == "json":
        print(json.dumps({"files": [_as_json(reading) for reading in readings]}, indent=2))
    else:
        for reading in readings:
            print(_as_text(reading), end="", file=sys.stderr)
    return 0 if all(reading.ok for reading in readings) else FINDINGS


def _read(name: str) -> Reading:
    """A file if there is one, else a policy by its name."""
    path = Path(name)
    if not path.exists():
        try:
            path = library.find(name, os.environ)
        except OverlapError as error:
            return Reading(name, "", None, (Finding("missing-file", error.sentence, hint=error.hint or ""),))
    reading = read_file(path, environment=os.environ)
    if reading.policy is not None:
        try:
            compile_table([reading.policy])
        except OverlapError as error:
            finding = Finding("too-large", error.sentence, 1, 1, error.hint or "")
            return Reading(reading.file, reading.source, None, (*reading.findings, finding))
    return reading


def _as_text(reading: Reading) -> str:
    text = render(reading.file, reading.source, reading.findings)
    if reading.policy is None:
        return text + "\n"
    count = len(reading.policy.rules)
    separator = "\n" if text else ""
    return f"{text}{separator}{reading.file}: ok, {count} rule{'' if count == 1 else 's'}\n"


def _as_json(reading: Reading) -> dict[str, object]:
    return {
        "file": reading.file,
        "ok": reading.ok,
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "sentence": finding.sentence,
                "line": finding.line or None,
                "column": finding.column or None,
                "hint": finding.hint or None,
                **({"file": finding.file} if finding.file else {}),
            }
            for finding in reading.findings
        ],
    }
