"""What all traces have in common: what was recorded, one after the other, in the order of the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Union

from pyshim.counts import counted

KERNEL, COPY, CALL, WAIT = "kernel", "copy", "call", "wait"  # sorts of records without which an answer may be wrong
LEGACY = "7"  # CUPTI's number of a first context's default stream, as in every trace of kineto and nsys that we saw


class Collective(NamedTuple):
    """What a kernel of a communication library carries out. None or "": the trace does not say."""

    name: str  # as PyTorch has it: allreduce, _allgather_base
    bytes: int | None = None  # of the larger of what goes in and what comes out
    elements: int | None = None  # of what goes in
    dtype: str = ""
    group: str = ""  # of processes
    group_size: int | None = None
    sequence: int | None = None  # of the collective in its group


class TracedLaunch(NamedTuple):
    """A kernel as it ran. None: the trace does not say. Times are of the trace's own clock."""

    kernel: str  # as the trace has it
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
    priority: int | None = None  # of the launch; the smaller number is the greater priority
    graph: bool = False  # a node of a graph
    collective: Collective | None = None


PAGEABLE, PINNED, DEVICE = "pageable", "pinned", "device"


class MemoryOperation(NamedTuple):
    """A copy or memset on the GPU: neither computation nor communication."""

    device: int
    stream: str
    start_us: float
    end_us: float
    process: int | None = None
    correlation: int | None = None
    memory: str = ""  # of the host, PAGEABLE or PINNED; DEVICE: of GPUs alone; "": the trace does not say


class NamedRange(NamedTuple):
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
Activity = Union[TracedLaunch, MemoryOperation, NamedRange, Call, Wait]


class TracedGpu(NamedTuple):
    """A GPU as a trace describes it."""

    name: str
    architecture: str = ""  # sm_90
    multiprocessors: int = 0


class Trace(ABC):
    """One file. What it says of itself is known once read() or activity() has come to its end."""

    kind: str  # pytorch, nsys, rocprofv3, jax or simulated
    records_calls = ""  # how its profiler records the calls that launch; "": it cannot
    records_waits = ""  # how it records what streams and the host wait for
    records_code: tuple[str, ...] = ()  # the lines of a program that record all of it
    records_events = ""  # how it records for which events streams wait, where it has recorded that they wait
    records_events_code: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        self.path = path
        self.rank: int | None = None
        self.world_size: int | None = None
        self.host = ""
        self.pid: int | None = None  # of the only process in it
        self.extent_us = 0.0, 0.0  # from the first start to the last end of what is looked at
        self.gpus: dict[int, TracedGpu] = {}  # by device
        self.python = False  # of PyTorch: its operators, steps or kernels are in it
        self.hip = False  # of an AMD GPU
        self.warnings: list[str] = []  # sentences
        self.missing: list[str] = []  # sentences about what was not recorded
        self.left_out: Counter[tuple[str, str]] = Counter()  # records of no usable time, by sort (below) and name
        self.first_left_out = ""  # where the first of them is: line 24
        self.ending = ""  # of a file that is torn: how it ends, as "it ends in the middle"

    def leave_out(self, sort: str, name: str = "") -> None:
        """Count a record that has no usable time."""
        self.left_out[sort, name] += 1

    def note_left_out(self) -> None:
        """Say how many records have no usable time."""
        number = sum(self.left_out.values())
        if number:
            said = counted(number, "record has", "records have")
            self.warnings.append(f"{self.path}: {said} no usable time: left out")

    @property
    def torn(self) -> bool:
        """Whether the file ends too early."""
        return bool(self.ending)

    @abstractmethod
    def activity(self) -> Iterator[Activity]:
        """Read the file from its beginning, and yield its records. Raises OverlapError for another kind."""

    def priority_of(self, process: int | None, stream: str) -> int | None:
        """Return the priority with which a stream was created, if the trace lists streams."""
        return None

    def priorities_of(self, process: int | None) -> list[int]:
        """Return those of all streams that a process created."""
        return []

    def is_default_stream(self, process: int | None, device: int, stream: str) -> bool:
        """Return whether it is the default stream of a context."""
        return stream == LEGACY


def architecture(major: int | None, minor: int | None) -> str:
    """Return the name of a compute capability."""
    return "" if major is None or minor is None else f"sm_{major}{minor}"


def priority(number: int | None) -> int | None:
    """Return a priority that CUPTI may have stored without its sign (CUpti_ActivityStream)."""
    return number if number is None or number < 1 << 31 else number - (1 << 32)
