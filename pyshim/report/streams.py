"""Streams that are waited for: which were raised, which were left as they were, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyshim.report.who import some, who
from pyshim.stats.page import Page
from pyshim.stats.streams import Stream

if TYPE_CHECKING:
    from pyshim.report.collect import Collected

HEADS = ("streams", "made by", "critical by", "share", "launches", "outcome")
WHY = {
    "communication": "carries communication",
    "host_waits": "the host waits for it",
    "feeding": "feeds a critical stream",
}
OUTCOMES = {
    "learning": "not decided: seen too rarely",
    "raised": "raised",
    "major": "left alone: it has too much of the computation",
    "programs": "left alone: the program has set its priority",
    "fixed": "left alone: its priority could not be changed",
    "other_arm": "left as it was: the arm of the trial that is in force raises no stream",
}
LEFT = ("major", "programs", "fixed")
_ROWS = 12
_NVIDIA, _AMD = "cuda", "hip"


class Group(NamedTuple):
    """Streams of which the same can be said, and the processes that have them."""

    library: str
    why: tuple[str, ...]
    status: str
    priority: int | None
    streams: tuple[Stream, ...]
    pages: tuple[Page, ...]


def groups(collected: Collected) -> list[Group]:
    """Return the groups of streams, those with the most launches first."""
    found: dict[tuple[str, tuple[str, ...], str, int | None], list[tuple[Page, Stream]]] = {}
    for page in collected.pages:
        for stream in page.streams:
            found.setdefault((stream.library, stream.why, stream.status, stream.priority), []).append((page, stream))
    made = [
        Group(*key, tuple(stream for _, stream in of), tuple({id(page): page for page, _ in of}.values()))
        for key, of in found.items()
    ]
    return sorted(made, key=lambda group: -sum(stream.launches for stream in group.streams))


def rows(collected: Collected) -> list[list[str]]:
    every = groups(collected)
    made = [
        [
            f"{len(group.streams):,}",
            group.library or "(not known)",
            ", ".join(group.why) or "-",
            share([stream.share_percent for stream in group.streams]),
            f"{sum(stream.launches for stream in group.streams):,}",
            _outcome(group),
        ]
        for group in every[:_ROWS]
    ]
    rest = sum(len(group.streams) for group in every[_ROWS:])
    return made + ([[f"{rest:,}", "more: --json", "", "", "", ""]] if rest else [])


def _outcome(group: Group) -> str:
    if group.status == "raised" and group.priority is not None:
        return f"raised to {group.priority}"
    return f"left alone: {group.status}" if group.status in LEFT else group.status


def because(why: Sequence[str]) -> str:
    return ", ".join(WHY[kind] for kind in why)


def share(percents: Sequence[float]) -> str:
    """Return "3.1 %" or "2.9 to 3.3 %"."""
    least, most = min(percents), max(percents)
    return f"{most:.1f} %" if least == most else f"{least:.1f} to {most:.1f} %"


def remarks(collected: Collected, full: bool = True) -> Iterator[str]:
    """Yield the streams that were left as they were, by name, and what raising a stream means for its communication.

    full: also what is as it should be.
    """
    every = groups(collected)
    raised = [group for group in every if group.status == "raised" and "communication" in group.why]
    if raised and full:
        count = sum(len(group.streams) for group in raised)
        total = sum(page.communication for page in collected.pages)
        once = sum(page.raised for page in collected.pages)
        said = f"raised with the stream: NCCL or RCCL on {_count(count)} has the priority of its stream"
        if once:
            yield f"{said}; the {once:,} of {total:,} launches that count as raised were raised individually"
        else:
            yield f"{said}; none of its launches was raised individually"
    for status, sentence in zip(LEFT, (_major, _programs, _fixed)):
        left = [group for group in every if group.status == status]
        # Beside a raised stream, the one that has most of the computation is rightly left alone.
        usual = status == "major" and any(group.status == "raised" for group in every)
        if left and (full or not usual):
            yield sentence(left)


def _major(left: list[Group]) -> str:
    percents = [stream.share_percent for group in left for stream in group.streams]
    return (
        f"not raised, major: {_named(left)} had {share(percents)} of the computation of the device "
        "between two waits, more than `share` under `critical` in the policy. Work can pass other work only from a "
        "stream of its own"
    )


def _programs(left: list[Group]) -> str:
    return f"not raised, programs: {_named(left)} kept the priority that the program has set"


def _fixed(left: list[Group]) -> str:
    names = {device.name for group in left for page in group.pages for device in page.devices}
    api = _NVIDIA if all(name.startswith("NVIDIA") for name in names) else _AMD
    range_ = f"{api}DeviceGetStreamPriorityRange(&least, &greatest)"
    return (
        f"not raised, fixed: {_named(left)} could not be given another priority. The program can set it "
        f"when it creates the stream: `{range_}; "
        f"{api}StreamCreateWithPriority(&stream, {api}StreamNonBlocking, greatest)`"
    )


def _named(left: list[Group]) -> str:
    """Return "1 stream of rank 0 on node1 (made by libhalo.so; the host waits for it)"."""
    count = sum(len(group.streams) for group in left)
    pages = list({id(page): page for group in left for page in group.pages}.values())
    libraries = some(sorted({group.library for group in left if group.library}))
    kinds = [kind for kind in WHY if any(kind in group.why for group in left)]
    said = "; ".join(filter(None, (f"made by {libraries}" if libraries else "", because(kinds))))
    return f"{_count(count)} of {who(pages)}" + (f" ({said})" if said else "")


def _count(count: int) -> str:
    return f"{count:,} streams" if count > 1 else "1 stream"
