"""A mistake in a policy file, as a value, and how it is shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]

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


def render(file: str, source: str, findings: Iterable[Finding]) -> str:
    """The findings of one file as text, an empty line between two."""
    lines = _LINE_END.split(source)
    return "\n".join(_one(file, lines, finding) for finding in findings)


def line_of(source: str, finding: Finding) -> str:
    """The line of the text that the finding points at, or the empty string."""
    lines = _LINE_END.split(source)
    return lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""


def headline(file: str, finding: Finding) -> str:
    """The one line that says it all."""
    file = finding.file or file
    position = f":{finding.line}:{finding.column}" if finding.line else ""
    return f"{file}{position}: {finding.severity}[{finding.code}]: {finding.sentence}"


def quote(text: str) -> str:
    """Text of the file inside a sentence: short, on one line, printable."""
    shown = "".join(character if _printable(character) else "?" for character in text[: _QUOTED + 1])
    return f"`{shown}`" if len(shown) <= _QUOTED else f"`{shown[:_QUOTED]}...`"


def did_you_mean(text: str, names: Iterable[str]) -> str:
    """A hint that names the closest of the names, or the empty string."""
    close = closest(text, names)
    return f"did you mean `{close}`?" if close else ""


def closest(text: str, names: Iterable[str]) -> str:
    """The one of the names that was probably meant, or the empty string."""
    from difflib import get_close_matches  # needed for mistakes only, and every start of a program pays for imports

    folded = {name.casefold(): name for name in names}
    close = get_close_matches(text.casefold(), folded, n=1)
    return folded[close[0]] if close else ""


def _one(file: str, lines: list[str], finding: Finding) -> str:
    shown = [headline(file, finding)]
    source = finding.text if finding.file else lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    # One character each, tabs too: the caret stands below its place.
    source = "".join(character if _printable(character) else " " for character in source).rstrip()
    margin = " " * len(str(finding.line))
    if source:
        start = finding.column - 1
        if len(source) > _WIDEST:
            cut = max(0, start - _WIDEST // 2)
            source, start = source[cut : cut + _WIDEST], start - cut
        caret = "^" * max(1, min(finding.length, len(source) - start))
        shown += [f"{margin} |", f"{finding.line} | {source}", f"{margin} | {' ' * start}{caret}"]
    if finding.hint:
        shown.append(f"{margin} = help: {finding.hint}")
    return "\n".join(shown) + "\n"


def _printable(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
