"""The streams of a step as lanes of text, and what was gained."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from pyshim.demo.arms import DemoArm, DemoResult
from pyshim.pages.judged import RAISED
from pyshim.report.streams import not_raised

MINIMUM_WIDTH, MAXIMUM_WIDTH = 60, 120
LABEL = 11  # columns before a lane
SAME = 0.5  # per cent; a smaller difference is none
COLORS = {"interior": "34", "boundary": "33", "exchange": "32", "wait": "2"}
ABOUT = (
    "A stencil: each iteration sweeps the interior (1, 2) on one stream, and on another one the boundary planes (b), "
    "which a collective then exchanges with the neighbours (x)."
)


@dataclass(frozen=True)
class Style:
    """How to draw: two fills, so that neighbours can be told apart, and the mark of waiting."""

    fills: tuple[str, str]
    waiting: str
    color: bool = False


def style_for(encoding: str | None, color: bool) -> Style:
    """Return block characters where the terminal's encoding has them, else ASCII."""
    try:
        "█▓·".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Style(("#", "="), ".", color)
    return Style(("█", "▓"), "·", color)


def report(run: DemoResult, why: str | None, width: int, style: Style) -> list[str]:
    """Return all lines, of at most `width` columns. why: a simulated GPU was not asked for."""
    columns = max(MINIMUM_WIDTH, min(MAXIMUM_WIDTH, width))
    if run.simulated:
        title = f"overlap demo on a simulated {run.gpu}{f' ({why})' if why else ''}: every number is simulated."
        mark = f"{style.waiting * 3} is ready, and waits behind the interior."
    else:
        title = f"overlap demo on {run.gpu}: medians, measured by events."
        mark = "A bar begins when the work is ready, and ends when it is done."
    end = max(span.end_us for arm in (run.bare, run.default) for span in arm.spans)
    lines = [*_wrapped(title, columns), *_wrapped(f"{ABOUT} {mark}", columns), ""]
    for name, arm in (("bare", run.bare), ("with overlap-run", run.default)):
        time = f"{'simulated ' if run.simulated else ''}{arm.milliseconds:.3f} ms an iteration"
        lines += [name + time.rjust(columns - len(name)), *lanes(arm, end, columns, style)]
    return [*lines, "", *_wrapped(f"gained: {gained(run)}.", columns), *_wrapped(f"next: {following(run)}", columns)]


def gained(run: DemoResult) -> str:
    """Return what overlap-run changed, and why, as a clause."""
    percent = run.change_percent
    raised = [stream for stream in _streams(run) if stream == RAISED]
    if abs(percent) < max(SAME, run.noise_percent):
        left = [not_raised(status) for status in _streams(run) if status != RAISED]
        why = "" if raised else f": the stream of the exchange was {left[0]}" if left else ": no stream was raised"
        if run.gpu.startswith("AMD"):
            why += ", because HIP fixes a stream's priority when it is created, and RCCL has not created this one"
        noise = f" beyond the {run.noise_percent:.1f} % by which bare runs differ" if run.noise_percent > SAME else ""
        return f"nothing{noise}{why}"
    word = "less" if percent < 0 else "more"
    waits = [
        sum(span.wait_us for span in arm.spans if span.what == "boundary") / len(arm.spans) * 3
        for arm in (run.bare, run.default)
    ]
    because = f"; the boundary planes wait {waits[1]:.0f} us instead of {waits[0]:.0f}" if run.simulated else ""
    noise = " (simulated)" if run.simulated else f" (bare runs differ by {run.noise_percent:.1f} %)"
    stream = "the stream of the exchange was raised" if raised else "no stream was raised"
    return f"{abs(percent):.1f} % {word} time an iteration{noise}: {stream}{because}"


def following(run: DemoResult) -> str:
    """Return the next command."""
    where = ", on a machine with a GPU" if run.simulated else ""
    return f"overlap doctor PROGRAM, then overlap-run --report run1 PROGRAM{where}"


def _streams(run: DemoResult) -> list[str]:
    """Return what became of the streams of communication."""
    counters = run.default.counters
    return [stream.status for stream in counters.streams if stream.communicates] if counters else []


def lanes(arm: DemoArm, end_us: float, width: int, style: Style) -> list[str]:
    """Draw two lines of at most `width` columns. end_us: the time at the right end."""
    columns = width - LABEL
    compute, halo = (_Lane(columns, columns / end_us) for _ in range(2))
    numbers = {"interior": 0, "boundary": 0, "exchange": 0}
    for span in arm.spans:
        number = numbers[span.what]
        numbers[span.what] += 1
        mark = str(number + 1) if span.what == "interior" else "x" if span.what == "exchange" else "b"
        lane = compute if span.what == "interior" else halo
        if span.what == "boundary":
            lane.fill(span.ready_us, span.start_us, style.waiting, COLORS["wait"])
        lane.bar(span.start_us, span.end_us, mark, style.fills[number % 2], COLORS[span.what])
    return [f"  {name:<{LABEL - 2}}{lane.text(style.color)}" for name, lane in (("compute", compute), ("halo", halo))]


class _Lane:
    """Cells of one line: a character and its colour each."""

    def __init__(self, columns: int, scale: float) -> None:
        self.scale = scale
        self.cells: list[tuple[str, str]] = [(" ", "")] * columns

    def fill(self, begin_us: float, end_us: float, character: str, color: str) -> None:
        for column in self._columns(begin_us, end_us):
            self.cells[column] = (character, color)

    def bar(self, begin_us: float, end_us: float, mark: str, character: str, color: str) -> None:
        columns = self._columns(begin_us, end_us)
        if len(columns) == 0:  # shorter than a column, but never left out
            first = min(len(self.cells) - 1, columns.start)
            columns = range(first, first + 1)
        for column in columns:
            self.cells[column] = (character, color)
        self.cells[columns[0]] = (mark, color)

    def _columns(self, begin_us: float, end_us: float) -> range:
        last = len(self.cells)
        return range(min(last, round(begin_us * self.scale)), min(last, round(end_us * self.scale)))

    def text(self, color: bool) -> str:
        return "".join(_painted(self.cells, color)).rstrip()


def _painted(cells: Iterable[tuple[str, str]], color: bool) -> Iterable[str]:
    for code, run in groupby(cells, key=itemgetter(1)):
        text = "".join(character for character, _ in run)
        yield f"\x1b[{code}m{text}\x1b[0m" if color and code else text


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)
