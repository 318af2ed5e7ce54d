"""What a page says besides its sums: launches by kernel and decision, rules, the times of communication launches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyshim import _native

_VALID = 2  # state of a record


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


class Rule(NamedTuple):
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


def rows(page: Any, totals: Any, reasons: list[str], places: Places, rules: tuple[Rule, ...]) -> tuple[Row, ...]:
    counts = enumerate(totals.rows)
    return tuple(_row(page, totals, index, count, reasons, places, rules) for index, count in counts if count)


def _row(
    page: Any, totals: Any, index: int, launches: int, reasons: list[str], places: Places, rules: tuple[Rule, ...]
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


def _inside(reason: str, number: int, rule: Rule | None) -> bool | None:
    """Return whether launches counted for this reason were in an overlap window; None: it does not depend on one."""
    if reason == "not_overlapping":
        return False
    windowed = rule is not None and rule.when == "overlapping" and _native.library().overlap_reason_shapes(number)
    return True if windowed else None


def rules(page: Any, policies: dict[int, str]) -> tuple[tuple[Rule, ...], dict[int, int]]:
    """Return the policies' rules in order, and their indices by those in the page. policies: by device of the page."""
    found: list[Rule] = []
    places: dict[int, int] = {}
    for index, (state, *_) in enumerate(records("<8B2I", page.rules)):
        if state == _VALID:
            places[index] = len(found)
            record = page.rules[index]
            found.append(_rule(record, policies.get(record.device, "")))
    return tuple(found), places


def _rule(record: Any, policy: str) -> Rule:
    library = _native.library()
    shapes = {
        library.OVERLAP_SHAPE_LEAVE: "leave",
        library.OVERLAP_SHAPE_MAKE_ROOM: "make_room",
        library.OVERLAP_SHAPE_BLOCKS: f"blocks_per_sm: {record.value}",
        library.OVERLAP_SHAPE_PERCENT: f"blocks_per_sm: {record.value}%",
        library.OVERLAP_SHAPE_BYTES: f"dynamic_shared_memory: {_size(record.value)}",
    }
    line, depth = _native.line_of(record.line)
    return Rule(
        policy=policy,
        line=line,
        depth=depth,
        shape=shapes.get(record.shape, f"shape_{record.shape}"),
        when="always" if record.when == library.OVERLAP_WHEN_ALWAYS else "overlapping",
        guard=bool(record.guard),
    )


def _size(size: int) -> str:
    return f"{size >> 10}KiB" if size and size % 1024 == 0 else str(size)


def cadence(page: Any) -> tuple[tuple[int, int], ...]:
    """Return (communication launches so far, nanoseconds of the host's monotonic clock), the oldest first.

    Samples that a thread was just writing are left out, and so are those that threads took in another order than they
    were numbered."""
    samples = records("<3Q", page.cadence.samples)
    whole = sorted(
        (launches, nanoseconds)
        for launches, nanoseconds, check in samples
        if launches and launches ^ nanoseconds == check
    )
    kept: list[tuple[int, int]] = []
    for launches, nanoseconds in whole:
        if not kept or (launches > kept[-1][0] and nanoseconds >= kept[-1][1]):
            kept.append((launches, nanoseconds))
    return tuple(kept)


def records(layout: str, array: Any) -> Iterator[tuple[Any, ...]]:
    """Up to the last that is not empty. A folder may hold thousands of pages: cffi would take its time over each."""
    data = bytes(_native.ffi.buffer(array)).rstrip(b"\0")
    return struct.iter_unpack(layout, data + b"\0" * (-len(data) % struct.calcsize(layout)))
