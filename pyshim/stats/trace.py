"""HOST.PID.N.trace: one record per launch. A kill or a full disk may have torn a record; the others still count."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pyshim import _native
from pyshim.stats.file import Unreadable, read
from pyshim.stats.page import names

FILE = re.compile(r"(?P<host>.+)\.(?P<pid>\d{1,10})\.(?P<number>\d{1,10})\.trace\Z")
_LONGEST = 1 << 14  # bytes of a record; the library writes less than half of it


@dataclass(frozen=True)
class Launch:
    pid: int
    sequence: int
    device: int
    stream: str  # hexadecimal
    kernel: str
    library: str
    blocks: int
    threads: int
    asked: int  # bytes of dynamic shared memory
    launched: int
    priority: int | None  # None: not raised
    overlapping: bool | None  # None: the rule says `when: always`
    could_overlap: int | None  # sequence of the newest communication launch that may run beside it
    reason: str


@dataclass(frozen=True)
class Trace:
    host: str
    launches: tuple[Launch, ...]  # in the order of their sequence
    skipped: int  # bytes that belong to no whole record


def read_trace(path: str, owners: Collection[int] | None = None) -> Trace:
    """Read a trace; owners: as file.read(). Raises Unreadable for a file that is not one of ours."""
    match = FILE.match(path.rpartition("/")[2])
    if not match:
        raise Unreadable("not named HOST.PID.N.trace")
    library = _native.library()
    data = read(path, library.OVERLAP_TRACE_LIMIT + _LONGEST, owners)
    reasons = names(library.overlap_reason_name)
    launches = []
    kept = 0
    for record, end in _records(data, library):
        launches.append(_launch(int(match["pid"]), record, data, end, reasons, library))
        kept += record.size
    return Trace(match["host"], tuple(sorted(launches, key=lambda launch: launch.sequence)), len(data) - kept)


def _records(data: bytes, library: Any) -> Iterator[tuple[Any, int]]:
    """Every whole record with the offset where its names begin; behind damage it goes on at the next one."""
    magic = int(library.OVERLAP_TRACE_MAGIC).to_bytes(4, "little")
    head = _native.ffi.sizeof("struct overlap_trace")
    buffer = _native.ffi.from_buffer(data)
    at = data.find(magic)
    while 0 <= at <= len(data) - head:
        record: Any = _native.ffi.cast("struct overlap_trace *", buffer + at)
        size = record.size
        end = at + size
        fits = head + record.kernel_size + record.library_size <= size <= min(len(data) - at, _LONGEST)
        # A torn record claims bytes of the next one: that one begins inside, and none begins behind.
        torn = data[end : end + 4] not in (magic, b"") and data.find(magic, at + 1, end + 3) >= 0
        if fits and size % 8 == 0 and not torn:
            yield record, at + head
            at = data.find(magic, end)
        else:
            at = data.find(magic, at + 1)


def _launch(pid: int, record: Any, data: bytes, at: int, reasons: list[str], library: Any) -> Launch:
    middle = at + record.kernel_size
    flags = record.flags
    windowed = flags & library.OVERLAP_TRACE_WINDOWED
    return Launch(
        pid=pid,
        sequence=record.sequence,
        device=record.device,
        stream=hex(record.stream),
        kernel=data[at:middle].decode("utf-8", "replace"),
        library=data[middle : middle + record.library_size].decode("utf-8", "replace"),
        blocks=record.blocks,
        threads=record.threads,
        asked=record.asked,
        launched=record.launched,
        priority=record.priority if flags & library.OVERLAP_TRACE_RAISED else None,
        overlapping=bool(flags & library.OVERLAP_TRACE_OVERLAPPING) if windowed else None,
        could_overlap=record.overlaps - 1 if record.overlaps else None,
        reason=reasons[record.reason] if record.reason < len(reasons) else f"reason_{record.reason}",
    )
