"""How we speak: on stderr, behind one prefix. The only module that knows rich, and only where a person looks on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

from pyshim.errors import OverlapError


def printable(text: str) -> str:
    """One line that cannot move a terminal's cursor, whatever a program or a file is called."""
    return "".join(character if character.isprintable() else "?" for character in text)


def say(text: str = "") -> None:
    _write("".join(f"overlap: {printable(line)}".rstrip() + "\n" for line in text.split("\n")))


def show(text: str = "") -> None:
    """Without the prefix: tables and findings that begin with a file's name."""
    _write(text + "\n")


def complain(error: OverlapError) -> None:
    if re.match(r"\S+:\d+:\d+: error\[", error.sentence):
        show(printable(error.sentence))  # as compilers say it, so that editors and terminals find the place
    else:
        say(f"error: {error.sentence}")
    if error.hint:
        say(f"help: {error.hint}")


def _write(text: str) -> None:
    # In one piece: many ranks share one terminal. A closed or full stderr is no reason to fail.
    try:
        sys.stderr.flush()
        os.write(2, text.encode(sys.stderr.encoding or "utf-8", "replace"))
    except (OSError, ValueError, AttributeError):
        pass


class CannotAnswer(Exception):
    """stdout is closed, or what it is connected to takes no more."""


def answer(text: str) -> None:
    """What was asked for with --json or --format, on stdout. Raises BrokenPipeError where the reader has gone, and
    CannotAnswer."""
    if sys.stdout is None:
        raise CannotAnswer("it is closed")
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer would be tried again at exit, and complained about.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise CannotAnswer(error.strerror or str(error)) from error


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[int] = (0,)) -> None:
    """Columns on stderr: drawn by rich on a terminal, plain text otherwise. left: the columns of text."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    plain = set(left)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        _drawn(heads, cells, plain)
        return
    widths = [max([len(head), *(len(row[column]) for row in cells)]) for column, head in enumerate(heads)]
    for row in [list(heads), *cells]:
        padded = [
            cell.ljust(width) if column in plain else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        show("  ".join(padded).rstrip())


def _drawn(heads: Sequence[str], rows: Iterable[Sequence[str]], plain: set[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column, head in enumerate(heads):
        drawn.add_column(head, justify="left" if column in plain else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    Console(stderr=True, highlight=False).print(drawn)
