"""Streams that were judged: which were raised, and of the others the condition of the rule that did not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyshim._native import STREAM_STATUSES
from pyshim.pages.judged import RAISED, Outcome, judged
from pyshim.pages.page import Page, Stream
from pyshim.report.collect import Collected, some, who

HEADS = ("streams", "made by", "comm", "last share", "work", "outcome")
FIXED, PROGRAMS = "fixed", "programs"
# Behind `not raised:`, of one stream or of several.
WHY = {
    "not_waited": "no wait between the last two judgements",
    "large": "more of the computation than `streams: {raise: ...}` in the policy allows",
    "graphs": "launches graphs whose work is not known",
    PROGRAMS: "the program sets priorities of streams itself",
    "default": "default stream",
    "wide": "communication on more than a third of the multiprocessors",
    "together": "too much of the computation together with the other streams that meet all other conditions",
    FIXED: "the driver refused the priority; the program can set it when it creates the stream",
}
ROWS = 12


class Group(NamedTuple):
    """Streams of which the same can be said, and the processes that have them."""

    creator: str
    communicates: bool
    status: str
    priority: int | None
    outcome: Outcome
    streams: tuple[Stream, ...]
    pages: tuple[Page, ...]


def groups(collected: Collected) -> list[Group]:
    """Return the groups of streams: raised ones first, then in the order of the rule's conditions."""
    found: dict[tuple[str, bool, str, int | None, Outcome], list[tuple[Page, Stream]]] = {}
    for page in collected.pages:
        for stream in page.streams:
            outcome = judged(page, stream).outcome
            key = stream.creator, stream.communicates, stream.status, stream.priority, outcome
            found.setdefault(key, []).append((page, stream))
    made = [
        Group(*key, tuple(stream for _, stream in of), tuple({id(page): page for page, _ in of}.values()))
        for key, of in found.items()
    ]
    return sorted(made, key=lambda group: (_place(group.status), -sum(stream.work for stream in group.streams)))


def _place(status: str) -> int:
    return STREAM_STATUSES.index(status) if status in STREAM_STATUSES else len(STREAM_STATUSES)


def rows(collected: Collected) -> list[list[str]]:
    every = groups(collected)
    made = [
        [
            f"{len(group.streams):,}",
            group.creator or "(not known)",
            "yes" if group.communicates else "-",
            share(group.streams),
            f"{sum(stream.work for stream in group.streams):,}",
            said(group),
        ]
        for group in every[:ROWS]
    ]
    rest = sum(len(group.streams) for group in every[ROWS:])
    return made + ([[f"{rest:,}", "more: --json", "", "", "", ""]] if rest else [])


def said(group: Group) -> str:
    """Return "raised to -5", "would be raised" or "not raised: default stream"."""
    if group.status != RAISED:
        return not_raised(group.status)
    return group.outcome if group.priority is None else f"{group.outcome} to {group.priority}"


def not_raised(status: str) -> str:
    """Return "not raised: default stream"."""
    return f"not raised: {WHY.get(status, status)}"


def share(streams: Sequence[Stream]) -> str:
    """Return "3.1 %" or "2.9 to 3.3 %"."""
    percents = [100 * stream.share for stream in streams]
    least, most = min(percents), max(percents)
    return f"{most:.1f} %" if least == most else f"{least:.1f} to {most:.1f} %"


def conditions(collected: Collected) -> list[str]:
    """Return which condition of the rule did not hold, for all streams that were judged and not raised."""
    found: dict[str, list[Stream]] = {}
    for group in groups(collected):
        if group.status != RAISED:
            found.setdefault(group.status, []).extend(group.streams)
    said = []
    for status, streams in found.items():
        of = f" ({share(streams)})" if status in ("large", "together") else ""
        said.append(f"{count(streams)}: {WHY.get(status, status)}{of}")
    return said


def remarks(collected: Collected) -> Iterator[str]:
    """Yield the streams that were not raised, with their libraries and processes."""
    for status in (*WHY, *sorted({group.status for group in groups(collected)} - {*WHY, RAISED})):
        left = [group for group in groups(collected) if group.status == status]
        if left:
            yield f"not raised, {status}: {_named(left)}: {WHY.get(status, status)}"


def _named(left: list[Group]) -> str:
    """Return "1 stream of rank 0 on node1 (made by libhalo.so; lately 3.1 % of the computation)"."""
    streams = [stream for group in left for stream in group.streams]
    pages = list({id(page): page for group in left for page in group.pages}.values())
    creators = some(sorted({group.creator for group in left if group.creator}))
    by = f"made by {creators}; " if creators else ""
    return f"{count(streams)} of {who(pages)} ({by}lately {share(streams)} of the computation)"


def count(streams: Sequence[Stream]) -> str:
    return f"{len(streams):,} streams" if len(streams) > 1 else "1 stream"
