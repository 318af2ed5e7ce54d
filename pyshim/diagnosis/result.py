"""What is found in a trace: how much waited, behind what, and what else the trace says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyshim.profiles.record import Trace

COPY = "copy or memset"
COMPUTES, COMMUNICATES, COPIES, WAITS = "computation", "communication", "copy", "wait"
NO_CALLS = "the trace has no calls of the host that launched its kernels"
NEXT_TO_NOTHING = 0.02  # of a step
TOGETHER = 0.6  # of the computation: the default policy raises no computing streams that carry more together
LEGACY = "7"  # CUPTI's number of a context's legacy default stream, as in every trace of kineto and nsys that we saw

Place = tuple[int, str]  # device, stream


@dataclass(frozen=True)
class Inversion:
    """Work of one kernel behind one other kernel; count and time are of a step, on average."""

    device: int
    kernel: str  # or COPY
    streams: tuple[str, ...]
    behind: str
    behind_streams: tuple[str, ...]
    waiters: tuple[str, ...]
    count: float
    waited_us: float
    at_least: bool


@dataclass(frozen=True)
class Share:
    """A stream whose work waited, and its part of the GPU's computation."""

    device: int
    stream: str
    share: float
    waited_us: float


@dataclass(frozen=True)
class KernelSummary:
    """What one kernel takes, all launches of it together. None: the trace does not say."""

    kernel: str
    communication: bool
    launches: int
    us: float
    threads: int | None
    registers: int | None
    shared_memory: int | None


class Bar(NamedTuple):
    """One piece of work, or one wait, in the picture of a step."""

    place: Place
    start_us: float
    end_us: float
    kind: str
    what: str


def raised(minor: Sequence[Share]) -> tuple[Share, ...]:
    """Return the streams of each GPU, or if they are too much together those that compute nothing."""
    sums = together(minor)
    return tuple(one for one in minor if sums[one.device] <= TOGETHER or not one.share)


def together(shares: Iterable[Share]) -> dict[int, float]:
    """Return the sum on each GPU, without default streams: the policy raises none of them."""
    sums: defaultdict[int, float] = defaultdict(float)
    for one in shares:
        sums[one.device] += one.share if one.stream != LEGACY else 0.0
    return sums


@dataclass(frozen=True)
class ProcessResult:
    """The GPUs of one process. Times are of a step, on average; of the whole trace where steps is None."""

    path: str
    rank: int | None
    process: int  # which of those in the file
    devices: tuple[int, ...]
    steps: str | None  # the ranges' name
    count: int  # of steps
    setup_us: float  # before that, where steps is None: not counted
    span_us: float
    told: bool  # when its work was ready
    inversions: tuple[Inversion, ...]  # the longest first
    waited_us: float  # time in which any of these waited
    busy_us: float  # what the stream in front of them works; the busiest, where there are several
    saves_us: float  # what raising may save: an estimate
    still_us: float  # what would be waited for even then, until blocks end; of several waiters, the sum
    minor: tuple[Share, ...]  # the streams to raise
    major: tuple[Share, ...]  # whose work waited, too, but which have too much of the computation to be raised
    one_wave_us: float  # what was waited behind kernels of one wave
    raised_us: float  # what waited although it has the greater priority
    unclaimed_us: float  # what was waited that nothing is known to have waited for
    idle_us: float  # in which the GPU with the most work had nothing to do
    communication_us: float  # in which a GPU communicates, on average of the GPUs
    hidden_us: float  # of it, beside computation
    faults: tuple[str, ...]  # priorities that do not do what they say
    has_priorities: bool  # a stream that ran kernels has another priority than 0
    kernels: tuple[KernelSummary, ...]  # those that take longest first
    pictured: tuple[float, float]  # the step in which most waited: from, to
    picture: tuple[Bar, ...] = field(repr=False)  # of that

    @property
    def raising(self) -> tuple[Share, ...]:
        return raised(self.minor)


@dataclass(frozen=True)
class TraceResult:
    """What a trace says. untold: sentences about what it does not say."""

    trace: Trace  # without its records
    processes: tuple[ProcessResult, ...]
    untold: tuple[str, ...]
