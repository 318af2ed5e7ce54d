"""The streams that a page lists: those that communication ran on, or that something waited for."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyshim import _native
from pyshim.enums import CRITICAL_KINDS

_VALID = 2  # state of a record
STATUSES = ("learning", "raised", "major", "programs", "fixed", "other_arm")


class Stream(NamedTuple):
    device: int  # the driver's index
    why: tuple[str, ...]  # members of a policy's `critical`
    status: str  # the last one
    share_percent: float  # of the device's computation, between the last two waits
    priority: int | None  # None: the one that the program gave it
    launches: int  # of computation, made while it was raised
    library: str  # basename of the one that made it; empty: not known


def streams(page: Any) -> tuple[Stream, ...]:
    """Return streams in the order in which the library learned about them."""
    library = _native.library()
    kinds = {getattr(library, f"OVERLAP_CRITICAL_{kind}".upper()): kind for kind in CRITICAL_KINDS}
    statuses = {getattr(library, f"OVERLAP_STREAM_{status}".upper()): status for status in STATUSES}
    return tuple(
        Stream(
            device=record.device,
            why=tuple(kind for bit, kind in kinds.items() if record.why & bit),
            status=statuses.get(record.status, f"status_{record.status}"),
            share_percent=record.share / 10,
            priority=record.priority or None,
            launches=record.launches,
            library=_native.text(record.creator),
        )
        for record in page.streams
        if record.state == _VALID
    )
