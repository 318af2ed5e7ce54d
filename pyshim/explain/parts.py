"""What a screen is made of: tables and prose. Whoever prints it breaks lines and fits columns to the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, Union

Item = TypeVar("Item")


class Table(NamedTuple):
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    left: Sequence[int] = (0,)  # columns of text
    above: bool = False  # names in the first column are worth a line of their own


class Prose(NamedTuple):
    text: str
    label: str = ""  # stands before it


class Line(NamedTuple):
    """That is never broken: part of a picture. It fits the width that its maker was told."""

    text: str


Part = Union[Table, Prose, Line]


def apart(*groups: Iterable[Part]) -> Iterator[Part]:
    """With an empty line between groups that are not empty."""
    first = True
    for group in groups:
        parts = list(group)
        if parts and not first:
            yield Line("")
        first = first and not parts
        yield from parts


def plural(number: int, word: str, words: str = "") -> str:
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def cut(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """The first, and how many more there are; one more than fits is told rather than counted."""
    return (items, 0) if len(items) <= most + 1 else (items[:most], len(items) - most)
