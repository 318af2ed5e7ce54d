"""A table, as Markdown between two markers of a page, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Union

Value = Union[str, int, float, None]
MISSING = "–"


@dataclass(frozen=True)
class Table:
    """Rows under heads; `words` columns on the left are text, the others are numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Value]]
    words: int = 1

    def markdown(self) -> str:
        rule = [":--" if column < self.words else "--:" for column in range(len(self.heads))]
        body = ([MISSING if value is None else str(value) for value in row] for row in self.rows)
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.heads, rule, *body))

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.heads)
        writer.writerows(self.rows)
        return out.getvalue()


def percent(value: float | None) -> str:
    """For a page, whose heads name the unit."""
    if value is None:
        return MISSING
    return f"{value:+.1f}" if abs(value) >= 0.05 else "0.0"


def span(values: Iterable[float | None]) -> str:
    """From the least to the greatest, in per cent."""
    found = sorted(value for value in values if value is not None)
    if not found:
        return MISSING
    ends = list(dict.fromkeys(percent(value) for value in (found[0], found[-1])))
    return " to ".join(ends)


def rounded(value: float | None, digits: int = 2) -> float | None:
    """For CSV; without a negative zero."""
    return None if value is None else round(value, digits) + 0.0
