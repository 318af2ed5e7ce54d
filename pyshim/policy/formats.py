"""What `overlap policy check` found, for programs: JSON for editors, workflow commands for GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshim.policy.finding import Finding, printable
from pyshim.policy.reader import Reading

VERSION = 1  # of the JSON; keys may be added to it
_COMMANDS = {"note": "notice"}  # severities that GitHub has another word for


def passes(reading: Reading, strict: bool) -> bool:
    return reading.ok and not (strict and any(finding.severity != "note" for finding in reading.findings))


def as_json(readings: Iterable[Reading], strict: bool) -> dict[str, object]:
    files = [
        {
            "file": reading.file,
            "ok": passes(reading, strict),
            "findings": [_finding(reading, finding) for finding in reading.findings],
        }
        for reading in readings
    ]
    return {"version": VERSION, "ok": all(file["ok"] for file in files), "files": files}


def _finding(reading: Reading, finding: Finding) -> dict[str, object]:
    """Return a finding for JSON.

    Lines and columns from 1, the end after the last character; null where it is about the file as a whole. `file`
    differs from that of the object around it where the mistake is in a policy that is extended."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "sentence": finding.sentence,
        "hint": finding.hint or None,
        "file": finding.file or reading.file,
        "line": finding.line or None,
        "column": finding.column or None,
        "end_column": finding.column + finding.length if finding.column else None,
    }


def as_github(readings: Sequence[Reading]) -> str:
    """One line for each finding: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.

    What is escaped, and how, is of actions/toolkit, packages/core/src/command.ts.
    """
    return "".join(_command(reading, finding) + "\n" for reading in readings for finding in reading.findings)


def _command(reading: Reading, finding: Finding) -> str:
    properties: dict[str, object] = {"file": finding.file or reading.file}
    if finding.line:
        properties["line"] = finding.line
        properties["col"] = finding.column
        properties["endColumn"] = finding.column + finding.length
    properties["title"] = f"overlap policy: {finding.code}"
    shown = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = f"{finding.sentence}\nhelp: {finding.hint}" if finding.hint else finding.sentence
    return f"::{_COMMANDS.get(finding.severity, finding.severity)} {shown}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
