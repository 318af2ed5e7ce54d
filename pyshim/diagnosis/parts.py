"""The parts that every screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, Union

Item = TypeVar("Item")


class Table(NamedTuple):
    """Rows below heads."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: Sequence[int] = (0,)  # columns of text
    above: bool = False  # names in the first column are worth a line of their own


class Prose(NamedTuple):
    """A paragraph."""

    text: str
    label: str = ""  # stands before it
    width: int = 12  # columns of the label
    code: bool = False  # is never broken


class UnbrokenLine(NamedTuple):
    """A line that is never broken."""

    text: str


Part = Union[Table, Prose, UnbrokenLine]


def apart(*groups: Iterable[Part]) -> Iterator[Part]:
    """Yield all parts, with an empty line between groups that are not empty."""
    first = True
    for group in groups:
        parts = list(group)
        if parts and not first:
            yield UnbrokenLine("")
        first = first and not parts
        yield from parts


def cut(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Return the first items, and how many more there are; a single item more is shown rather than counted."""
    return (items, 0) if len(items) <= most + 1 else (items[:most], len(items) - most)
