"""Tables that scroll in a box of their own where the screen is narrow, and can be sorted where scripts may run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from pyshim.html.tree import Child, Element, element

# What a column holds: classes of page.css.
NUMBER, NAME, WORDS, PROSE, PICTURE = "n", "name", "words", "prose", "wide"


@dataclass(frozen=True)
class Cell:
    shown: Child
    sort: float | str  # what it is sorted by, where that is not what is shown


Content = Union[Child, int, Cell]


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Content]],
    kinds: Mapping[str, str],
    last: Sequence[Content] = (),
) -> Element:
    """kinds: of the columns that hold no numbers, by their heads. last: a row of sums, which stays where it is."""
    columns = [kinds.get(head, NUMBER) for head in heads]
    top = element("tr", [element("th", head, scope="col", class_=kind) for head, kind in zip(heads, columns)])
    body = [_row(row, columns) for row in rows]
    foot = element("tfoot", _row(last, columns)) if last else None
    made = element("table", element("thead", top), element("tbody", body), foot)
    about = f"table: {', '.join(filter(None, heads))}"
    return element("div", made, class_="box", tabindex="0", role="region", aria_label=about)


def _row(cells: Sequence[Content], columns: Sequence[str]) -> Element:
    return element("tr", [_cell(cell, kind) for cell, kind in zip(cells, columns)])


def _cell(cell: Content, kind: str) -> Element:
    if isinstance(cell, Cell):
        return element("td", cell.shown, class_=kind, data_sort=cell.sort)
    if isinstance(cell, int):
        return element("td", f"{cell:,}", class_=kind if cell else f"{kind} zero", data_sort=cell)
    return element("td", cell, class_=kind)
