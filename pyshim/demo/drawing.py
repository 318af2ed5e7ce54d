"""A step as two lanes of text, computation above communication, on a scale that all arms share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from pyshim.demo.timeline import Span, Step

MINIMUM_WIDTH = 60
MAXIMUM_WIDTH = 120
LABEL = 11  # columns before a lane


@dataclass(frozen=True)
class Style:
    """How to draw: two fills, so that neighbours can be told apart, and the mark of waiting."""

    fills: tuple[str, str]
    waiting: str
    color: bool = False

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text


COMPUTE = "34"
COMMUNICATION = "33"
WAITING = "2"


def style_for(encoding: str | None, color: bool) -> Style:
    """Return block characters where the terminal's encoding has them, else ASCII."""
    try:
        "█▓·".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Style(("#", "="), ".", color)
    return Style(("█", "▓"), "·", color)


def clamp(width: int) -> int:
    return max(MINIMUM_WIDTH, min(MAXIMUM_WIDTH, width))


def legend(text: str, style: Style) -> str:
    """Return a scene's legend with the bar and the mark of waiting put in."""
    return text.format(style.fills[0] * 2, style.waiting * 3)


def lanes(step: Step, end_us: float, width: int, style: Style, lower: str = "comm") -> list[str]:
    """Draw two lines of at most `width` columns. end_us: the time at the right end; lower: names the second line."""
    columns = width - LABEL
    scale = columns / end_us
    per_layer = [(span, "123456789"[index % 9], index) for index, span in enumerate(step.computation)]
    compute = _Lane(columns, scale)
    for span, mark, index in per_layer:
        compute.bar(span, mark, style.fills[index % 2], COMPUTE)
    for span in step.optimizer:
        compute.bar(span, "o", style.fills[1], COMPUTE)
    communication = _Lane(columns, scale)
    for span, ready in zip(step.waited_for, step.ready_us):
        communication.fill(ready, span.start_us, style.waiting, WAITING)
    for index, span in enumerate(step.waited_for):
        mark = step.marks[index % len(step.marks)]
        communication.bar(span, mark, style.fills[index % 2], COMMUNICATION)
    return [f"  {'compute':<{LABEL - 2}}" + compute.text(style), f"  {lower:<{LABEL - 2}}" + communication.text(style)]


class _Lane:
    """Cells of one line: a character and its colour each."""

    def __init__(self, columns: int, scale: float) -> None:
        self.scale = scale
        self.cells: list[tuple[str, str]] = [(" ", "")] * columns

    def fill(self, begin_us: float, end_us: float, character: str, code: str) -> None:
        for column in self._columns(begin_us, end_us):
            self.cells[column] = (character, code)

    def bar(self, span: Span, mark: str, character: str, code: str) -> None:
        columns = self._columns(span.start_us, span.end_us)
        if len(columns) == 0:  # shorter than a column, but never left out
            first = min(len(self.cells) - 1, columns.start)
            columns = range(first, first + 1)
        for column in columns:
            self.cells[column] = (character, code)
        self.cells[columns[0]] = (mark, code)

    def _columns(self, begin_us: float, end_us: float) -> range:
        last = len(self.cells)
        return range(min(last, round(begin_us * self.scale)), min(last, round(end_us * self.scale)))

    def text(self, style: Style) -> str:
        return "".join(_paint_runs(self.cells, style)).rstrip()


def _paint_runs(cells: Iterable[tuple[str, str]], style: Style) -> Iterable[str]:
    for code, run in groupby(cells, key=itemgetter(1)):
        text = "".join(character for character, _ in run)
        yield style.paint(text, code) if code else text
