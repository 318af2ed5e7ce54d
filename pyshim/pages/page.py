"""HOST.PID.N.page: the counters of one process, valid at any instant: sums, rows by kernel, rules, streams."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from pyshim import _native
from pyshim._native import STREAM_STATUSES, ShapeKind, shape_words
from pyshim.pages.untrusted import Unreadable, read

_VALID = 2  # state of a record
_MOST = 1 << 63  # launches of a process that is not damaged
_SIMULATED = "GPU-73696d67-7075-"  # the bytes "simgpu" (tools/simgpu/device.c)


class Row(NamedTuple):
    """Launches of a kernel with the same decision and reason; without kernel and device: of kernels without a row."""

    kernel: str  # as the driver gives it, the middle of a long name replaced by ~HASH~; "" where it is not known
    plain: str
    library: str  # basename of the caller
    reason: str
    rule: int | None  # index into Page.rules
    inside: bool | None  # in an overlap window; None: the decision is the same in and outside of windows
    launches: int
    device: int | None  # index into Page.devices; None: not there
    threads: int
    registers: int
    static_shared_memory: int
    dynamic_shared_memory: int  # as asked
    launched_shared_memory: int  # dynamic bytes as launched; this and the two below: of the last decision
    blocks: int  # of the grid
    resident_blocks: int  # on one multiprocessor, as asked; 0: not known
    recorded: bool = True  # False: there was no room to say of which kernel, nor of which rule
    merged: bool = False  # all further kernels of a rule, once there was no room for a row of each


class PageRule(NamedTuple):
    policy: str
    line: int
    shape: str  # as it is written in a policy: make_room, blocks_per_sm: 50%
    when: str  # overlapping | always
    guard: bool = False  # added by us: spares kernels that only look like those of the rule of this line
    depth: int = 0  # how many `extends` lead from the policy to the file that has the line
    file: str = ""  # that file, as its run tells it; empty: the policy's own

    @property
    def place(self) -> str:
        """The rule's file, or the policy that is that file's only one, and the line."""
        unknown = f"a policy that {self.policy} extends" if self.depth else self.policy
        return f"{self.file or unknown}:{self.line}"


class Places(NamedTuple):
    """Where in a Page is what a row names by number."""

    devices: dict[int, int]
    rules: dict[int, int]


class Stream(NamedTuple):
    device: int  # the driver's index
    status: str  # a member of STREAM_STATUSES: raised, or the first condition of the rule that did not hold
    share: float  # of the device's computation, 0 to 1, between the last two judgements
    communicates: bool
    priority: int | None  # None: the one that the program gave it
    work: int  # of computation launched on it, up to the last judgement: overlap_block_work() in shim/core/judge.h
    creator: str  # basename of the library that created it; empty: not known
    since: int  # nanoseconds since 1970: the judgement that raised it, or would have; 0 for any other status


@dataclass(frozen=True)
class Device:
    index: int
    uuid: str
    name: str
    multiprocessors: int
    policy: str | None
    observes: bool  # its policy judges streams, and raises none


def observe(devices: Collection[Device]) -> bool:
    """Return whether streams are judged and never raised on all of these devices that have a policy."""
    under_policy = [device for device in devices if device.policy]
    return bool(under_policy) and all(device.observes for device in under_policy)


@dataclass(frozen=True)
class Page:
    pid: int
    parent: int
    host: str
    rank: int | None
    world: int | None
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
    would_be_raised: int  # the same of a process that only observes: on a stream that the default would raise
    refused: int
    graph_launches: int
    graphs_raised: int  # of these, on a stream while it was raised
    graphs_would_be_raised: int  # of these, on a stream that the default would raise
    streams_created_raised: int  # created at another priority than the program asks for (`created_by`)
    judgements: int  # of the streams of a device
    reasons: dict[str, int]  # those that occurred
    rows: tuple[Row, ...] = ()  # of launches; their sum is launches
    rules: tuple[PageRule, ...] = ()  # of the policies that the devices run under, whether or not they matched
    streams: tuple[Stream, ...] = ()  # that were judged, whether or not they were raised
    waits: int = 0  # of the host, by threads that launch

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


def page_size() -> int:
    _native.header()
    return int(_native.ffi.sizeof("struct overlap_page"))


def read_page(path: str, owners: Collection[int] | None = None) -> Page:
    """Read a page; owners: as read(). Raises Unreadable for a damaged page, OtherLayout for another version's."""
    return page_of(read(path, page_size(), owners))


def page_of(data: bytes, whole: bool = True) -> Page:
    """Return the page that these bytes are. Raises as read_page(). whole: with the rows of launches, and rules."""
    library, size = _native.library(), page_size()
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
    return _page(_struct(data), library, whole)


def _struct(data: bytes) -> Any:
    # A copy of its own: cffi looks at these bytes as at the struct.
    return _native.ffi.from_buffer("struct overlap_page *", data)


def _stranger(page: Any) -> Stranger:
    """By what is down to `host`, which keeps its place in every version."""
    rank = page.rank if page.rank >= 0 else None
    return Stranger(_native.text(page.host), page.pid, rank, page.world or None, page.start)


def _page(page: Any, library: Any, whole: bool) -> Page:
    known = _known()
    totals = _totals()
    library.overlap_page_totals(page, totals)
    by_reason, counters = list(totals.reasons), list(totals.counters)
    launches = sum(by_reason)
    if launches >= _MOST:
        raise Unreadable("damaged: its counts do not add up")
    devices = {place: _device(device) for place, device in enumerate(page.devices) if device.state == _VALID}
    policies = {place: device.policy or "" for place, device in devices.items()}
    its_rules, rule_places = _rules(page, policies) if whole else ((), {})
    raised, would = _split(counters[library.OVERLAP_COUNTER_RAISED], devices.values())
    graphs_raised, graphs_would = _split(counters[library.OVERLAP_COUNTER_GRAPHS_RAISED], devices.values())
    places = Places({place: index for index, place in enumerate(devices)}, rule_places)
    return Page(
        pid=page.pid,
        parent=page.parent,
        host=_native.text(page.host),
        rank=page.rank if page.rank >= 0 else None,
        world=page.world or None,
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
        raised=raised,
        would_be_raised=would,
        refused=counters[library.OVERLAP_COUNTER_REFUSED],
        graph_launches=counters[library.OVERLAP_COUNTER_GRAPH_LAUNCHES],
        graphs_raised=graphs_raised,
        graphs_would_be_raised=graphs_would,
        streams_created_raised=counters[library.OVERLAP_COUNTER_STREAMS_CREATED_RAISED],
        judgements=counters[library.OVERLAP_COUNTER_JUDGEMENTS],
        reasons=_named(by_reason, known.reasons, "reason"),
        rows=_rows(page, totals, known.reasons, places, its_rules) if whole else (),
        rules=its_rules,
        streams=_streams(page),
        waits=counters[library.OVERLAP_COUNTER_HOST_WAITS],
    )


def _split(count: int, devices: Collection[Device]) -> tuple[int, int]:
    """Return how many launches on marked streams were raised, and how many would be.

    The library counts both in one place (struct overlap_page_stream). A process that observes on one GPU and raises on
    another counts them together: they are told as raised."""
    return (0, count) if observe(devices) else (count, 0)


@functools.cache
def _totals() -> Any:
    return _native.ffi.new("struct overlap_totals *")


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
        observes=bool(device.observes),
    )


def _rows(page: Any, totals: Any, reasons: list[str], places: Places, rules: tuple[PageRule, ...]) -> tuple[Row, ...]:
    counts = enumerate(totals.rows)
    return tuple(_row(page, totals, index, count, reasons, places, rules) for index, count in counts if count)


def _row(
    page: Any, totals: Any, index: int, launches: int, reasons: list[str], places: Places, rules: tuple[PageRule, ...]
) -> Row:
    record, number = page.rows[index], totals.row_reasons[index]
    known = record.state == _VALID
    reason = reasons[number] if number < len(reasons) else f"reason_{number}"
    rule = places.rules.get(record.rule) if known else None
    return Row(
        kernel=_native.text(record.kernel) if known else "",
        plain=_native.text(record.plain) if known else "",
        library=_native.text(record.library) if known else "",
        reason=reason,
        rule=rule,
        inside=_inside(reason, number, None if rule is None else rules[rule]),
        launches=launches,
        device=places.devices.get(record.device) if known else None,
        threads=record.footprint.threads,
        registers=record.footprint.registers,
        static_shared_memory=record.footprint.static_shared,
        dynamic_shared_memory=record.footprint.dynamic_shared,
        launched_shared_memory=record.launched,
        blocks=record.blocks,
        resident_blocks=record.resident_blocks,
        recorded=known,
        merged=known and not record.kernel[0] and not record.footprint.threads,
    )


def _inside(reason: str, number: int, rule: PageRule | None) -> bool | None:
    """Return whether launches counted for this reason were in an overlap window; None: it does not depend on one."""
    if reason == "not_overlapping":
        return False
    windowed = rule is not None and rule.when == "overlapping" and _native.library().overlap_reason_shapes(number)
    return True if windowed else None


def _rules(page: Any, policies: dict[int, str]) -> tuple[tuple[PageRule, ...], dict[int, int]]:
    """Return the policies' rules in order, and their indices by those in the page. policies: by device of the page."""
    found: list[PageRule] = []
    places: dict[int, int] = {}
    for index, (state, *_) in enumerate(_records("<8B2I", page.rules)):
        if state == _VALID:
            places[index] = len(found)
            record = page.rules[index]
            found.append(_rule(record, policies.get(record.device, "")))
    return tuple(found), places


def _rule(record: Any, policy: str) -> PageRule:
    library = _native.library()
    kinds = {getattr(library, f"OVERLAP_SHAPE_{kind.upper()}"): kind for kind in get_args(ShapeKind)}
    words = shape_words(kinds.get(record.shape, f"shape_{record.shape}"), record.value)
    line, depth = _native.line_of(record.line)
    return PageRule(
        policy=policy,
        line=line,
        depth=depth,
        shape=words if isinstance(words, str) else ": ".join(words),
        when="always" if record.when == library.OVERLAP_WHEN_ALWAYS else "overlapping",
        guard=bool(record.guard),
    )


def _records(layout: str, array: Any) -> Iterator[tuple[Any, ...]]:
    """Up to the last that is not empty. A folder may hold thousands of pages: cffi would take its time over each."""
    data = bytes(_native.ffi.buffer(array)).rstrip(b"\0")
    return struct.iter_unpack(layout, data + b"\0" * (-len(data) % struct.calcsize(layout)))


@functools.cache
def _statuses() -> dict[int, str]:
    library = _native.library()
    return {getattr(library, f"OVERLAP_STREAM_{status}".upper()): status for status in STREAM_STATUSES}


def may_have_more_streams(page: Page) -> bool:
    """Whether no record for a stream is free."""
    return len(page.streams) == int(_native.library().OVERLAP_PAGE_STREAMS)


def _streams(page: Any) -> tuple[Stream, ...]:
    """Return the streams in the order in which they were first judged."""
    if not page.streams[0].state:
        return ()
    statuses = _statuses()
    return tuple(
        Stream(
            device=record.device,
            status=statuses.get(record.status, f"status_{record.status}"),
            share=record.share / 1000,
            communicates=bool(record.communicates),
            priority=record.priority or None,
            work=record.work,
            creator=_native.text(record.creator),
            since=record.since,
        )
        for record in page.streams
        if record.state == _VALID
    )
