"""Tables that fit the screen: columns of text are narrowed, numbers never are.

Columns that do not fit stand in a further table below, with the first column again. rich's tables cut numbers there,
and pad rows for a pipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from textwrap import wrap

_GAP = "  "
_LEAST = 16  # characters that are left of a column of text
_DOTS = "..."


def tables(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[int] = (),
    limit: int | None = None,
    above: bool = False,
) -> Iterator[list[str]]:
    """Yield the lines of one table, or of several if one is too wide; the first line has the heads.

    left: the columns of text. limit: characters of a line; None: any. above: if rows are too long, print the first
    column on a line of its own above the others, provided that these fit then."""
    natural = [max([len(head), *(len(row[column]) for row in rows)]) for column, head in enumerate(heads)]
    others = dict(list(enumerate(natural))[1:])
    if above and limit is not None and _length(others.values()) <= limit < _length(natural):
        lines = [line for row in rows for line in (shortened(row[0], limit), *_row(row, others, left))]
        yield [*_row(heads, others, left), *lines]
        return
    least = [
        min(width, max(_LEAST, len(heads[column]))) if column in left else width for column, width in enumerate(natural)
    ]
    for columns in _parts(least, _length(natural) if limit is None else limit):
        widths = {column: natural[column] for column in columns}
        if limit is not None:
            _narrow(widths, least, limit - len(_GAP) * (len(columns) - 1))
        yield [line for row in [heads, *rows] for line in _row(row, widths, left)]


def _parts(least: Sequence[int], limit: int) -> list[list[int]]:
    """Return the columns of each table. A column too wide for all of them has a table with the first column only."""
    parts = [[0]]
    for column in range(1, len(least)):
        together = [*parts[-1], column]
        if len(parts[-1]) > 1 and _length([least[one] for one in together]) > limit:
            parts.append([0, column])
        else:
            parts[-1] = together
    return parts


def _length(widths: Collection[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrow(widths: dict[int, int], least: Sequence[int], room: int) -> None:
    """Narrow `widths` in place, the widest column of text first, until they fit."""
    while sum(widths.values()) > room:
        able = [column for column in widths if widths[column] > least[column]]
        if not able:
            return
        widths[max(able, key=lambda column: widths[column])] -= 1


def _row(row: Sequence[str], widths: dict[int, int], left: Collection[int]) -> Iterator[str]:
    cells = {column: _cell(row[column], width) for column, width in widths.items()}
    for line in range(max(map(len, cells.values()))):
        parts = []
        for column, cell in cells.items():
            part = cell[line] if line < len(cell) else ""
            parts.append(part.ljust(widths[column]) if column in left else part.rjust(widths[column]))
        yield _GAP.join(parts).rstrip()


def _cell(text: str, width: int) -> list[str]:
    """Prose goes on below; a name is cut in its middle, for its ends tell it from others."""
    if len(text) <= width:
        return [text]
    if " " in text:
        return wrap(text, width, break_on_hyphens=False)
    return [shortened(text, width)]


def shortened(text: str, width: int) -> str:
    """Return the text, with dots in place of its middle if it is too long."""
    if len(text) <= width:
        return text
    kept = width - len(_DOTS)
    return text[: kept - kept // 2] + _DOTS + text[len(text) - kept // 2 :]
