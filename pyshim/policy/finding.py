"""A mistake in a policy file, as a value, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pyshim.errors import printable

Severity = Literal["error", "warning"]
Paint = Callable[[str, str], str]  # text, and a style of pyshim/cli/ui.py
STYLES = {"error": "bold red", "warning": "bold yellow"}

# Where YAML ends a line; str.splitlines() knows more ends and would number the lines differently.
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_QUOTED = 60
_WIDEST = 240  # of a line that is shown


@dataclass(frozen=True)
class Finding:
    code: str
    sentence: str
    line: int = 0  # from 1; 0: the file as a whole
    column: int = 0  # from 1
    hint: str = ""
    severity: Severity = "error"
    length: int = 1  # characters under which the caret is drawn
    file: str = ""  # of another file than the one that was asked about: which, and
    text: str = ""  # its line


def render(
    file: str, source: str, findings: Iterable[Finding], columns: int = _WIDEST, paint: Paint = lambda text, style: text
) -> str:
    """Return the findings of one file as text. columns: of the screen; longer source lines are cut."""
    lines = _LINE_END.split(source)
    return "\n".join(_one(file, lines, finding, columns, paint) for finding in findings)


def line_of(source: str, finding: Finding) -> str:
    """Return the line of the text that the finding points at, or the empty string."""
    lines = _LINE_END.split(source)
    return lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""


def headline(file: str, finding: Finding) -> str:
    """Return the one line that says it all."""
    return f"{_place(file, finding)}: {finding.severity}[{finding.code}]: {finding.sentence}"


def _place(file: str, finding: Finding) -> str:
    position = f":{finding.line}:{finding.column}" if finding.line else ""
    return f"{printable(finding.file or file)}{position}"


def quote(text: str) -> str:
    """Quote text of the file inside a sentence: short, on one line, printable."""
    shown = printable(text[: _QUOTED + 1])
    return f"`{shown}`" if len(shown) <= _QUOTED else f"`{shown[:_QUOTED]}...`"


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """Return a hint that names the closest of the names, or the empty string."""
    close = closest(text, names)
    return f"did you mean `{close}`?" if close else ""


def closest(text: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """Return the name that was probably meant, or the empty string. likeness: from 0 to 1, of difflib."""
    from difflib import get_close_matches  # needed for mistakes only, and every start of a program pays for imports

    folded = {name.casefold(): name for name in names}
    close = get_close_matches(text.casefold(), folded, n=1, cutoff=likeness)
    return folded[close[0]] if close else ""


def _one(file: str, lines: list[str], finding: Finding, columns: int, paint: Paint) -> str:
    style = STYLES[finding.severity]
    code = paint(f"{finding.severity}[{finding.code}]", style)
    shown = [f"{_place(file, finding)}: {code}: {printable(finding.sentence)}"]
    source = finding.text if finding.file else lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    # One character each, tabs too: the caret stands below its place.
    source = "".join(character if character.isprintable() else " " for character in source).rstrip()
    margin = " " * len(str(finding.line))
    if source:
        start = finding.column - 1
        room = columns - len(margin) - 3
        if len(source) > room:
            source, start = _window(source, start, room)
        caret = paint("^" * max(1, min(finding.length, len(source) - start)), style)
        shown += [f"{margin} |", f"{finding.line} | {source}", f"{margin} | {' ' * start}{caret}"]
    if finding.hint:
        shown.append(f"{margin} = help: {printable(finding.hint)}")
    return "\n".join(shown) + "\n"


def _window(line: str, start: int, room: int) -> tuple[str, int]:
    """Return the part of a long line around a column, and the column in that part."""
    cut = max(0, min(start - room // 3, len(line) - room))
    part = line[cut : cut + room]
    if cut + room < len(line):
        part = part[:-3] + "..."
    return ("..." + part[3:] if cut else part), start - cut
