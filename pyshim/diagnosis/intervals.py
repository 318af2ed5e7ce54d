"""Sets of time, as sorted lists of intervals that do not touch. All functions are linear in what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

Interval = tuple[float, float]


def merged(ordered: Iterable[Interval]) -> list[Interval]:
    """Return the time in any of the intervals, which come in the order of their starts."""
    found: list[Interval] = []
    start, end = 0.0, -inf
    for first, last in ordered:
        if last <= first:
            continue
        if first <= end:
            if last > end:
                end = last
            continue
        if end > start:
            found.append((start, end))
        start, end = first, last
    if end > start:
        found.append((start, end))
    return found


def clipped(of: Iterable[Interval], begin: float, end: float) -> list[Interval]:
    """Return what lies between two times."""
    return [(max(first, begin), min(last, end)) for first, last in of if last > begin and first < end]


def without(of: Sequence[Interval], other: Sequence[Interval]) -> list[Interval]:
    """Return the time of one set that is not in the other."""
    found: list[Interval] = []
    at = 0
    for first, last in of:
        while at < len(other) and other[at][1] <= first:
            at += 1
        number = at
        while number < len(other) and other[number][0] < last:
            if other[number][0] > first:
                found.append((first, other[number][0]))
            first = max(first, other[number][1])
            number += 1
        if first < last:
            found.append((first, last))
    return found


def both(of: Sequence[Interval], other: Sequence[Interval]) -> Iterator[tuple[int, float, float]]:
    """Yield the time in both sets, with the number of the interval of the first one."""
    at = 0
    for number, (first, last) in enumerate(of):
        while at < len(other) and other[at][1] <= first:
            at += 1
        candidate = at
        while candidate < len(other) and other[candidate][0] < last:
            yield number, max(first, other[candidate][0]), min(last, other[candidate][1])
            candidate += 1


def union(of: Iterable[Interval]) -> float:
    """Return the time in any of the intervals, in any order."""
    return length(merged(sorted(of)))


def length(of: Iterable[Interval]) -> float:
    """Return the time of a set."""
    return sum(last - first for first, last in of)


def median(values: Iterable[float]) -> float:
    """Return the middle one, 0 of none: the standard library's takes 10 ms to load."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2 if ordered else 0.0
