"""HOST.PID.N.page: the counters of one process, valid at any instant."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from pyshim import _native
from pyshim.stats.file import Unreadable, read
from pyshim.stats.rows import Places, Row, Rule, cadence, rows, rules
from pyshim.stats.streams import Stream, streams

_VALID = 2  # overlap_device.state
_MOST = 1 << 63  # launches of a process that is not damaged
_SIMULATED = "GPU-73696d67-7075-"  # the bytes "simgpu" (tools/simgpu/device.c)


@dataclass(frozen=True)
class Device:
    index: int
    uuid: str
    name: str
    multiprocessors: int
    policy: str | None


@dataclass(frozen=True)
class Page:
    pid: int
    parent: int
    host: str
    rank: int | None
    world: int | None
    run: str
    program: str
    directory: str  # of the report, as the process knew it
    library: str  # version of the preloaded library
    table: str | None  # checksum of the policy table: 8 hexadecimal digits
    start: int  # nanoseconds since 1970
    opened_gpu: bool
    forked: bool
    ended: bool
    devices: tuple[Device, ...]
    launches: int
    shaped: int
    communication: int
    raised: int  # launches, of both kinds, on a stream while it was raised
    refused: int
    graph_launches: int
    streams_raised: int  # created at another priority than the program asks for (`created_by`)
    judgements: int  # of the streams of a device
    reasons: dict[str, int]  # those that occurred
    rows: tuple[Row, ...] = ()  # of launches; their sum is launches
    rules: tuple[Rule, ...] = ()  # of the policies that the devices run under, whether or not they matched
    streams: tuple[Stream, ...] = ()  # that were judged, whether or not they were raised
    cadence: tuple[tuple[int, int], ...] = ()  # (communication launches so far, nanoseconds of the monotonic clock)

    @property
    def simulated(self) -> bool:
        """Whether a GPU of this process was simulated, as the identifier of the simulated driver says."""
        return any(device.uuid.startswith(_SIMULATED) for device in self.devices)

    @property
    def unrecorded(self) -> int:
        """Launches of which no row tells the kernel: counted by reason alone, or by rule and reason."""
        return sum(row.launches for row in self.rows if row.merged or not row.recorded)


@dataclass(frozen=True)
class Stranger:
    """Whose page it is that another version of the library wrote."""

    host: str
    pid: int
    rank: int | None
    world: int | None
    run: str
    start: int


class OtherLayout(Unreadable):
    def __init__(self, version: int, stranger: Stranger) -> None:
        super().__init__(f"written by another version of the library (layout {version})")
        self.stranger = stranger


@dataclass(frozen=True)
class _Names:
    reasons: list[str]
    shapes: list[int]  # indices of the reasons under which launches were changed


@functools.cache
def _known() -> _Names:
    library = _native.library()
    reasons = names(library.overlap_reason_name)
    return _Names(
        reasons,
        [index for index in range(len(reasons)) if library.overlap_reason_shapes(index)],
    )


def read_page(path: str, owners: Collection[int] | None = None) -> Page:
    """Read a page; owners: as file.read(). Raises Unreadable for a damaged page, OtherLayout for another version's."""
    library = _native.library()
    size = _native.ffi.sizeof("struct overlap_page")
    data = read(path, size, owners)
    if len(data) < 16:
        raise Unreadable("too short for a page")
    magic, version, stated = (int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8))
    if magic == 0:
        raise Unreadable("the process ended before it began to count")
    if magic != library.OVERLAP_PAGE_MAGIC:
        raise Unreadable("not a page of ours")
    if version != library.OVERLAP_ABI_VERSION:
        raise OtherLayout(version, _stranger(_struct(data[:size].ljust(size, b"\0"))))
    if stated != size or len(data) < size:
        raise Unreadable("truncated")
    return _page(_struct(data), library)


def _struct(data: bytes) -> Any:
    # A copy of its own: cffi looks at these bytes as at the struct.
    return _native.ffi.from_buffer("struct overlap_page *", data)


def _stranger(page: Any) -> Stranger:
    """By what is down to `host`, which keeps its place in every version."""
    rank = page.rank if page.rank >= 0 else None
    return Stranger(_native.text(page.host), page.pid, rank, page.world or None, _native.text(page.run), page.start)


def _page(page: Any, library: Any) -> Page:
    known = _known()
    totals = _native.ffi.new("struct overlap_totals *")
    library.overlap_page_totals(page, totals)
    by_reason, counters = list(totals.reasons), list(totals.counters)
    launches = sum(by_reason)
    if launches >= _MOST:
        raise Unreadable("damaged: its counts do not add up")
    devices = {place: _device(device) for place, device in enumerate(page.devices) if device.state == _VALID}
    its_rules, rule_places = rules(page, {place: device.policy or "" for place, device in devices.items()})
    places = Places({place: index for index, place in enumerate(devices)}, rule_places)
    return Page(
        pid=page.pid,
        parent=page.parent,
        host=_native.text(page.host),
        rank=page.rank if page.rank >= 0 else None,
        world=page.world or None,
        run=_native.text(page.run),
        program=_native.text(page.program),
        directory=_native.text(page.directory),
        library=_native.text(page.library),
        table=f"{page.table:08x}" if page.table else None,
        start=page.start,
        opened_gpu=bool(page.flags & library.OVERLAP_PAGE_OPENED_GPU),
        forked=bool(page.flags & library.OVERLAP_PAGE_FORKED),
        ended=bool(page.flags & library.OVERLAP_PAGE_ENDED),
        devices=tuple(devices.values()),
        launches=launches,
        shaped=sum(by_reason[index] for index in known.shapes),
        communication=counters[library.OVERLAP_COUNTER_COMMUNICATION],
        raised=counters[library.OVERLAP_COUNTER_RAISED],
        refused=counters[library.OVERLAP_COUNTER_REFUSED],
        graph_launches=counters[library.OVERLAP_COUNTER_GRAPH_LAUNCHES],
        streams_raised=counters[library.OVERLAP_COUNTER_STREAMS_RAISED],
        judgements=counters[library.OVERLAP_COUNTER_JUDGEMENTS],
        reasons=_named(by_reason, known.reasons, "reason"),
        rows=rows(page, totals, known.reasons, places, its_rules),
        rules=its_rules,
        streams=streams(page),
        cadence=cadence(page),
    )


@functools.cache
def sentences() -> dict[str, str]:
    """Return what a user reads of every reason, in the order of their indices."""
    return dict(re.findall(r'^REASON\((\w+), [01], "(.*)"\)$', _native.source("core/reason.def"), re.MULTILINE))


def names(name: Callable[[int], Any]) -> list[str]:
    """Return the names that the library gives to indices, up to the first that has none."""
    found: list[str] = []
    while name(len(found)) != _native.ffi.NULL:
        found.append(_native.text(name(len(found))))
    return found


def _named(counts: list[int], known: list[str], what: str) -> dict[str, int]:
    """Name counts; an index without a name occurs only in a damaged page, and its count is shown all the same."""
    label = [*known, *(f"{what}_{index}" for index in range(len(known), len(counts)))]
    return {label[index]: count for index, count in enumerate(counts) if count}


def _device(device: Any) -> Device:
    uuid = bytes(device.uuid).hex()
    parts = (uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])
    return Device(
        index=device.index,
        uuid="GPU-" + "-".join(parts),
        name=_native.text(device.name),
        multiprocessors=device.multiprocessors,
        policy=_native.text(device.policy) or None,
    )
