"""What the commands print: answers on stdout; diagnostics and progress on stderr, behind one prefix.

The only module that imports rich, and only for progress on a terminal and for a page.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from pyshim.errors import FINDINGS, OverlapError
from pyshim.errors import printable as printable

BUG = 3
_INTERRUPTED, _PIPE = 130, 141  # as a shell reports a death by SIGINT and SIGPIPE
_PREFIX = "overlap: "
_PATIENCE = 2.0  # seconds without progress
_ANSWERS, _ERRORS = 1, 2  # what is shown on: file descriptors
# Styles and their codes (ECMA-48, SGR). rich would take 24 ms to know them.
_SGR = {"bold": "1", "green": "32", "yellow": "33", "bold red": "1;31", "bold yellow": "1;33"}
NARROWEST, WIDEST = 60, 100  # columns that what we say is made for


def say(text: str = "") -> None:
    """Print a diagnostic: one sentence, one line, however long, so that it can be searched for."""
    _write(f"{_PREFIX}{printable(text)}".rstrip() + "\n")


def tell(text: str) -> None:
    """Print a diagnostic that may be long: broken to the width of a terminal; one line into a file or a pipe."""
    if not _is_terminal(_ERRORS):
        say(text)
        return
    for line in wrapped(text, width(_ERRORS), " " * len(_PREFIX), _PREFIX):
        diagnose(line)


def note(text: str) -> None:
    """Print a diagnostic that --quiet leaves out."""
    if not _quiet:
        say(text)


def diagnose(text: str) -> None:
    """Print a diagnostic without the prefix: tracebacks, and findings that begin with a file's name."""
    _write(text + "\n")


def show(text: str = "") -> None:
    """Print a line of the answer."""
    _put(text + "\n")


def sentence(text: str) -> None:
    """Print a sentence of the answer: broken to the width of a terminal; one line into a file or a pipe."""
    if _is_terminal(_ANSWERS):
        paragraph(text, "  ", "")
    else:
        show(printable(text))


def paragraph(text: str, indent: str = "", first: str | None = None) -> None:
    """Print prose, broken at words to the width of the screen. first: stands before the first line, not indent."""
    for line in wrapped(text, width(), indent, first):
        show(line)


def wrapped(text: str, columns: int, indent: str = "", first: str | None = None) -> list[str]:
    from textwrap import wrap

    head = indent if first is None else first
    return wrap(printable(text), columns, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def width(descriptor: int | None = None) -> int:
    """Return the columns of the screen, from 60 to 100: COLUMNS, those of the answer's terminal, or 80."""
    return max(NARROWEST, min(WIDEST, _columns(_ANSWERS if descriptor is None else descriptor) or 80))


def _columns(descriptor: int) -> int:
    """Return 0 where the descriptor is no terminal."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(descriptor).columns
    except OSError:
        return 0


def complain(error: OverlapError) -> None:
    if re.match(r"\S+:\d+:\d+: error\[", error.sentence):
        diagnose(printable(error.sentence))  # as compilers say it, so that editors and terminals find the place
    else:
        say(f"error: {error.sentence}")
    if error.hint:
        say(f"help: {error.hint}")


def _write(text: str) -> None:
    with suppress(NotAnswered):  # flush() at the end says so
        flush()  # on a terminal both are read in the order in which they were written
    # In one piece: many ranks share one terminal. A closed or full stderr is no reason to fail.
    try:
        sys.stderr.flush()
        os.write(2, text.encode(sys.stderr.encoding or "utf-8", "replace"))
    except (OSError, ValueError, AttributeError):
        pass


class NotAnswered(Exception):
    """stdout cannot be written."""


class CannotAnswer(NotAnswered):
    """stdout is closed, or the disk is full."""


class ReaderGone(NotAnswered):
    """stdout is a pipe that nothing reads any more."""


def answer(text: str) -> None:
    """Print text and a line break to stdout, and do not leave it in a buffer. Raises NotAnswered."""
    show(text)
    flush()


def flush() -> None:
    """Write what is left in the buffer of stdout. Raises NotAnswered."""
    with _answering():
        if sys.stdout is not None:
            sys.stdout.flush()


def discard() -> None:
    """Give up stdout, so that the interpreter does not write its buffer again at exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _ANSWERS)


def _put(text: str) -> None:
    with _answering():
        if sys.stdout is None:
            raise CannotAnswer("it is closed")
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # names of files are bytes; other characters may be missing in this encoding
            sys.stdout.flush()
            sys.stdout.buffer.write(_encoded(text, sys.stdout.encoding))


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "replace")


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise CannotAnswer(error.strerror or str(error)) from error


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[int] = (0,), above: bool = False
) -> None:
    """Print columns of the answer, no wider than the screen.

    left: the columns of text, which are narrowed on a narrow screen. above: instead, print the first column on lines
    of its own."""
    from pyshim.cli.columns import tables

    # Into a file or a pipe it goes as it is: there one row is one line.
    limit = width() if _columns(_ANSWERS) else None
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    shown = [
        "\n".join([paint(head, "bold"), *body]) for head, *body in tables(heads, cells, frozenset(left), limit, above)
    ]
    show("\n\n".join(shown))


def paint(text: str, style: str) -> str:
    """Return the text with the terminal's codes for a style of _SGR, if colours are wanted."""
    return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if style and text and colours() else text


def state(word: str) -> str:
    """Return ok, warn or FAIL in its colour."""
    return paint(word, {"ok": "green", "warn": "yellow", "FAIL": "bold red"}.get(word, ""))


def choose(quiet: bool) -> None:
    """Take what --quiet says."""
    global _quiet
    _quiet = quiet


def colours() -> bool:
    """Return whether to print colours: by NO_COLOR and FORCE_COLOR, else by the terminal.

    https://no-color.org and https://force-color.org; an empty value says nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (_is_terminal(_ANSWERS) and os.environ.get("TERM") != "dumb")


def is_to_terminal() -> bool:
    """Whether the answer goes to a terminal."""
    return _is_terminal(_ANSWERS)


def redraws() -> bool:
    """Whether progress can take the place of earlier progress: on a terminal that can move its cursor."""
    return _is_terminal(_ERRORS) and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on stderr what goes on if it takes more than two seconds; nothing with --quiet.

    On a terminal the line disappears at the end; elsewhere it stays."""
    from threading import Lock, Timer

    stop: list[Callable[[], None]] = []
    lock, over = Lock(), False

    def show_it() -> None:
        with lock:
            if not over and redraws():
                stop.append(_status(what))
            elif not over:
                say(f"{what} ...")

    timer = Timer(_PATIENCE, show_it)
    timer.daemon = True
    if not _quiet and os.environ.get("OVERLAP_PROGRESS") != "off":
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            for end in stop:
                end()


def _status(what: str) -> Callable[[], None]:
    """Start a line on stderr that leaves nothing on the screen, and return what ends it."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    spinner = Spinner("dots", Text(printable(what)))
    live = Live(spinner, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    live.start()
    return live.stop


_quiet = False  # what --quiet says


def guarded(body: Callable[[], int]) -> int:
    """Run a command; return its exit status. The one place where errors become words."""
    try:
        status = _guarded(body)
        flush()
        return status
    except ReaderGone:
        discard()
        return _PIPE
    except CannotAnswer as error:
        discard()
        say(f"error: the answer cannot be written to stdout: {error}")
        return FINDINGS


def _guarded(body: Callable[[], int]) -> int:
    import signal

    # The installed commands begin with SIGINT at its default (tools/release): here it can be caught, and so clean up.
    catches = signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    try:
        try:
            if catches:
                sys.unraisablehook = _unraisable
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return body()
        finally:
            if catches:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    except OverlapError as error:
        complain(error)
        return error.status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except NotAnswered:
        raise
    except Exception as error:
        if _is_interrupted(error):
            return _INTERRUPTED
        from pyshim.cli import bug_log

        say(f"error: a mistake in overlap-run itself: {bug_log.said(error)}")
        path = bug_log.write(error)
        if path:
            say(f"help: please report it with {path}, which has versions and the place")
            return BUG
        import traceback

        diagnose("\n".join(map(printable, traceback.format_exc().rstrip().splitlines())))
        say("help: please report it with the lines above")
        return BUG


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether a Ctrl-C is behind an exception: Python makes a RuntimeError of one inside __set_name__."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Die of a SIGINT whose exception nothing can catch: Python would print it and go on."""
    import signal

    if issubclass(what.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    sys.__unraisablehook__(what)
