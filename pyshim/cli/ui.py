"""How we speak: on stderr, behind one prefix. The only module that knows rich, and only where a person looks on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyshim.errors import OverlapError

_PREFIX = "overlap: "
NARROWEST, WIDEST = 60, 100  # columns that what we say is made for


def printable(text: str) -> str:
    """One line that cannot move a terminal's cursor, whatever a program or a file is called."""
    return "".join(character if character.isprintable() else "?" for character in text)


def say(text: str = "") -> None:
    """A status line: one sentence, one line, however long, so that it can be searched for."""
    _write(f"{_PREFIX}{printable(text)}".rstrip() + "\n")


def tell(text: str) -> None:
    """A sentence that may be long: broken to the width where a person looks on; into a file or a pipe one line."""
    if not _is_terminal():
        say(text)
        return
    for line in wrapped(text, width(), " " * len(_PREFIX), _PREFIX):
        show(line)


def show(text: str = "") -> None:
    """Without the prefix: tables and findings that begin with a file's name."""
    _write(text + "\n")


def paragraph(text: str, indent: str = "", first: str | None = None) -> None:
    """Prose, broken at words to the width of the screen. first: what stands before the first line instead of indent."""
    for line in wrapped(text, width(), indent, first):
        show(line)


def wrapped(text: str, columns: int, indent: str = "", first: str | None = None) -> list[str]:
    from textwrap import wrap

    head = indent if first is None else first
    return wrap(printable(text), columns, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def width() -> int:
    """Columns of the screen: what COLUMNS says, the terminal's that stderr is, or 80; from 60 to 100."""
    return max(NARROWEST, min(WIDEST, _columns() or 80))


def _columns() -> int:
    """0: nobody looks on, so nothing says how wide it is."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return 0


def complain(error: OverlapError) -> None:
    if re.match(r"\S+:\d+:\d+: error\[", error.sentence):
        show(printable(error.sentence))  # as compilers say it, so that editors and terminals find the place
    else:
        say(f"error: {error.sentence}")
    if error.hint:
        say(f"help: {error.hint}")


def _write(text: str) -> None:
    if _captured is not None:
        _captured.append(text)
        return
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


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[int] = (0,), above: bool = False
) -> None:
    """Columns on stderr, no wider than the screen. left: the columns of text; these give way where it is narrow. above:
    rather than that, the first column goes into lines of its own."""
    from pyshim.cli.columns import tables

    # Into a file or a pipe it goes as it is: there one row is one line.
    limit = width() if _columns() else None
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    shown = [
        "\n".join([paint(head, "bold"), *body]) for head, *body in tables(heads, cells, frozenset(left), limit, above)
    ]
    _write("\n\n".join(shown) + "\n")


def paint(text: str, style: str) -> str:
    """With the terminal's codes for a style of rich's, where a person looks on who wants them."""
    if not colours():
        return text
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    # Wide enough for any line: we break lines, rich does not.
    console = Console(file=StringIO(), force_terminal=True, highlight=False, width=10_000)
    with console.capture() as captured:
        console.print(Text(text, style=style), end="")
    return captured.get()


def state(word: str) -> str:
    """ok, warn or FAIL in its colour."""
    return paint(word, {"ok": "green", "warn": "yellow", "FAIL": "bold red"}.get(word, ""))


def colours() -> bool:
    """https://no-color.org: any value but the empty one means none."""
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def redraws() -> bool:
    """Whether what is shown can take the place of what was shown before: on a terminal that can move its cursor."""
    return _is_terminal() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _is_terminal() -> bool:
    try:
        return os.isatty(2)
    except OSError:
        return False


@contextmanager
def redrawn() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Gives draw(body): what body says, by the functions of this module, takes the place of what the body before it
    said. Nothing of it stays on the screen."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def draw(body: Callable[[], None]) -> None:
        global _captured
        _captured = []
        try:
            body()
            live.update(Text.from_ansi("".join(_captured).rstrip("\n")), refresh=True)
        finally:
            _captured = None

    live = Live(
        console=Console(stderr=True, highlight=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with live:
        yield draw


_captured: list[str] | None = None  # what would have been written, while a picture is drawn
