"""What all traces have in common: what was recorded, one after the other, in the order of the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union


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


class MemoryOperation(NamedTuple):
    """A copy or memset on the GPU: neither computation nor communication."""

    device: int
    stream: str
    start_us: float
    end_us: float
    process: int | None = None


class Span(NamedTuple):
    """A range that the program, or its profiler, has named: ProfilerStep#3."""

    name: str
    start_us: float
    end_us: float
    on_gpu: bool  # from the first to the last kernel inside, instead of host time
    process: int | None = None


Record = Union[TracedLaunch, MemoryOperation, Span]


class Trace(ABC):
    """One file. What it says of itself is known once records() has come to its end."""

    kind: str  # pytorch, nsys or simulated

    def __init__(self, path: str) -> None:
        self.path = path
        self.rank: int | None = None
        self.gpus: dict[int, str] = {}  # device -> name
        self.warnings: list[str] = []  # sentences
        self.torn = False  # the file ends before its records do

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """Reads the file from its beginning. Raises OverlapError where it is none of the kind after all."""

    def on_gpu(self, bounds: Sequence[float], process: int | None) -> list[float] | None:
        """When the GPU came to what the host did from each of these times to the next: a first start each, and the last
        end behind them. None where the trace cannot say."""
        return None

    def launches(self) -> Iterator[TracedLaunch]:
        return (record for record in self.records() if isinstance(record, TracedLaunch))

    def spans(self) -> Iterator[Span]:
        return (record for record in self.records() if isinstance(record, Span))
