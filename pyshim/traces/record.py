"""What all traces have in common: what was recorded, one after the other, in the order of the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple, Union, cast


class TracedLaunch(NamedTuple):
    """A kernel as it ran. None: the trace does not say. Times are of the trace's own clock."""

    kernel: str  # as the trace has it: names.driver_name makes what patterns are tried on
    communication: bool  # by the library's own families of names, and nothing else
    device: int
    stream: str
    start_us: float
    end_us: float
    blocks: int | None = None
    threads: int | None = None
    registers: int | None = None
    static_shared_memory: int | None = None  # bytes of a block
    dynamic_shared_memory: int | None = None
    shared_memory: int | None = None  # their sum: Kineto says no more
    process: int | None = None  # where several processes share a file
    correlation: int | None = None  # of the call that launched it: grows from call to call of a process


class MemoryOperation(NamedTuple):
    """A copy or memset on the GPU: neither computation nor communication."""

    device: int
    stream: str
    start_us: float
    end_us: float
    process: int | None = None
    correlation: int | None = None


class Span(NamedTuple):
    """A range that the program, or its profiler, has named: ProfilerStep#3."""

    name: str
    start_us: float
    end_us: float
    on_gpu: bool  # from the first to the last kernel inside, instead of host time
    process: int | None = None


class Call(NamedTuple):
    """A call of the host to the runtime or the driver."""

    name: str
    start_us: float
    end_us: float
    correlation: int
    process: int | None = None


class Wait(NamedTuple):
    """A stream that waits for an event, or the host that waits for a stream or an event."""

    host: bool
    device: int
    stream: str | None  # that waits, or that the host waits for; None: the host waits for an event
    start_us: float  # of the call
    end_us: float
    correlation: int
    event: tuple[str, int] | None = None  # the stream it was recorded on, and the correlation of the call that did
    process: int | None = None


Work = Union[TracedLaunch, MemoryOperation]
Record = Union[TracedLaunch, MemoryOperation, Span]
Activity = Union[TracedLaunch, MemoryOperation, Span, Call, Wait]


class Trace(ABC):
    """One file. What it says of itself is known once records() has come to its end."""

    kind: str  # pytorch, nsys or simulated

    def __init__(self, path: str) -> None:
        self.path = path
        self.rank: int | None = None
        self.gpus: dict[int, str] = {}  # device -> name
        self.warnings: list[str] = []  # sentences

    @abstractmethod
    def activity(self, host: bool) -> Iterator[Activity]:
        """Read the file from its beginning; calls and waits only with `host`. Raises OverlapError for another kind."""

    def records(self) -> Iterator[Record]:
        return cast("Iterator[Record]", self.activity(host=False))

    def on_gpu(self, bounds: Sequence[float], process: int | None) -> list[float] | None:
        """Return the GPU's first start after each of the host's times, and the last end; None if not recorded."""
        return None

    def launches(self) -> Iterator[TracedLaunch]:
        return (record for record in self.records() if isinstance(record, TracedLaunch))

    def spans(self) -> Iterator[Span]:
        return (record for record in self.records() if isinstance(record, Span))


def bounds_on_gpu(bounds: Sequence[float], ran: Iterable[tuple[float, float, float]]) -> list[float] | None:
    """Place times as Trace.on_gpu, by the call, the start and the end of each kernel."""
    starts, last = [inf] * (len(bounds) - 1), -inf
    for called, start, end in ran:
        step = bisect_right(bounds, called) - 1
        if 0 <= step < len(starts):
            starts[step] = min(starts[step], start)
            last = max(last, end)
    begun = [start for start in starts if start < inf]
    return [*begun, last] if begun == sorted(begun) and begun else None
