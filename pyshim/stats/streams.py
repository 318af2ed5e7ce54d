"""The streams that a page lists: those that the rule has judged (shim/core/judge.h)."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyshim import _native
from pyshim.enums import STREAM_STATUSES

_VALID = 2  # state of a record


class Stream(NamedTuple):
    device: int  # the driver's index
    status: str  # a member of STREAM_STATUSES: raised, or the first condition of the rule that did not hold
    share: float  # of the device's computation, 0 to 1, between the last two judgements
    communicates: bool
    priority: int | None  # None: the one that the program gave it
    threads: int  # of computation launched on it, up to the last judgement
    creator: str  # basename of the library that created it; empty: not known


def streams(page: Any) -> tuple[Stream, ...]:
    """Return the streams in the order in which they were first judged."""
    library = _native.library()
    statuses = {getattr(library, f"OVERLAP_STREAM_{status}".upper()): status for status in STREAM_STATUSES}
    return tuple(
        Stream(
            device=record.device,
            status=statuses.get(record.status, f"status_{record.status}"),
            share=record.share / 1000,
            communicates=bool(record.communicates),
            priority=record.priority or None,
            threads=record.threads,
            creator=_native.text(record.creator),
        )
        for record in page.streams
        if record.state == _VALID
    )
