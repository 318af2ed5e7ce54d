"""Manual pages in the man macros (man-pages(7)), which man-db, mandoc and groff show."""

from __future__ import annotations

from collections.abc import Iterator

from pyshim import __version__
from tools.manual.parsers import Command

_ABOUT = {
    "overlap-run": "run a program so that its communication overlaps its computation",
    "overlap": "policies, reports and questions around overlap-run",
}


def page(name: str, commands: list[Command]) -> str:
    """commands: that of the name first, then those below it. No date: the same sources make the same page."""
    return (
        "\n".join([f'.TH {_text(name.upper())} 1 "" "overlap-run {__version__}" "User Commands"', *_page(commands)])
        + "\n"
    )


def _page(commands: list[Command]) -> Iterator[str]:
    first, *others = commands
    name = first.words[0]
    yield from (".SH NAME", f"{_text(name)} \\- {_text(_ABOUT[name])}", ".SH SYNOPSIS")
    yield from _usage(first)
    yield from (".SH DESCRIPTION", *_prose(first.description), ".SH OPTIONS", *_options(first))
    if others:
        yield ".SH COMMANDS"
    for command in others:
        yield f".SS {_text(' '.join(command.words))}"
        yield from _usage(command)
        yield from (".PP", *_prose(command.description), *_options(command), *_prose(command.epilog))
    yield from (".SH NOTES", *_prose(first.epilog), ".SH SEE ALSO")
    other = next(other for other in _ABOUT if other != name)
    yield f".BR {_text(other)} (1)"


def _usage(command: Command) -> Iterator[str]:
    yield ".nf"
    for line in command.usage.splitlines():
        yield f"\\fB{_text(line.strip())}\\fR"
    yield ".fi"


def _options(command: Command) -> Iterator[str]:
    for option in command.options:
        if option.hidden or "-h" in option.names:
            continue
        heads = [f"\\fB{_text(name)}\\fR" for name in option.names]
        if option.value:
            value = f"\\fI{_text(option.value)}\\fR"
            heads = [f"{head} {value}" for head in heads] or [value]
        yield from (".TP", ", ".join(heads), _line(option.meaning) or "\\&")


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; one in which a line is indented stays as it is written."""
    for paragraph in filter(None, text.strip("\n").split("\n\n")):
        lines = paragraph.strip("\n").split("\n")
        yield ".PP"
        if any(line.startswith(" ") for line in lines):
            yield from (".nf", *map(_line, lines), ".fi")
        else:
            yield _line(" ".join(lines))


def _line(text: str) -> str:
    """A line of text: none that the macros would take for a request."""
    return ("\\&" if text[:1] in (".", "'") else "") + _text(text)


def _text(text: str) -> str:
    marks = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
    return "".join(marks.get(character, character) for character in text)
