"""What is found in a trace: how much waited, behind what, and what else the trace says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyshim.diagnosis.copies import ExposedCopies
from pyshim.diagnosis.exposed import CollectiveRun, Kind
from pyshim.diagnosis.idle import Idle
from pyshim.diagnosis.queues import Place
from pyshim.diagnosis.shares import Shares
from pyshim.diagnosis.words import COPY as COPY
from pyshim.profiles.record import LEGACY as LEGACY
from pyshim.profiles.record import Trace

NO_CALLS = "the trace has no calls of the host that launched its kernels"
CLOCKS = "the trace has other clocks for the host than for the GPU"
NEXT_TO_NOTHING = 0.02  # of a step
TOGETHER = 0.6  # of the computation: the default policy raises no computing streams that carry more together


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
    default: bool = False  # a default stream: nothing raises it
    may_be_default: bool = False  # the trace does not say, and it is the first stream of a GPU that is not the first


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
    """One piece of work, one wait, or one cause of lost time, in the picture of a step."""

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
        sums[one.device] += 0.0 if one.default else one.share
    return sums


@dataclass(frozen=True)
class Waited:
    """What was queued, ready to run, behind other work, and what raising may save. Times are of a step, on average."""

    inversions: tuple[Inversion, ...]  # the longest first
    waited_us: float  # time in which any of these waited
    saves_us: float  # what raising may save: an estimate
    moved_us: float  # what begins earlier by raising and ends no step earlier: the GPU is full with other work
    still_us: float  # what would be waited for even then, until blocks end; of several waiters, the sum
    as_before_us: float  # what waits behind streams that are to be raised, too
    saves_at_most: bool  # how long a block in front takes is not known: saves_us is a bound
    minor: tuple[Share, ...]  # the streams to raise
    major: tuple[Share, ...]  # whose work waited, too, but which have too much of the computation to be raised
    one_wave_us: float  # what was waited behind kernels of one wave, of each piece of work
    one_wave_lost_us: float  # of it, what the host or other streams lost
    one_wave_kernel: str  # of those in front, the one behind which most waited; "": none
    raised_us: float  # what waited although it has the greater priority
    unclaimed_us: float  # time in which work waited that nothing is known to have waited for
    unclaimed_one_wave_us: float  # of it, behind kernels of one wave
    refuted_us: float  # time in which work seemed ready, although the GPU was idle and did not start it
    faults: tuple[str, ...]  # priorities that do not do what they say
    has_priorities: bool  # a stream that ran kernels has another priority than 0

    @property
    def raising(self) -> tuple[Share, ...]:
        return raised(self.minor)


@dataclass(frozen=True)
class ProcessResult(Waited):
    """The GPUs of one process. Times are of a step, on average; of the whole trace where steps is None."""

    path: str
    rank: int | None
    process: int  # which of those in the file
    devices: tuple[int, ...]
    steps: str | None  # the ranges' name
    count: int  # of steps
    setup_us: float  # in front of what is looked at, where steps is None
    teardown_us: float  # behind what is looked at, where steps is None
    span_us: float
    told: bool  # when its work was ready
    untold: tuple[str, ...]  # sentences about what the trace does not say of it
    waits: bool  # rows of waits are in the trace, as its profiler records them where it is asked to
    events_untold: bool  # some of them do not say for which event
    unread: str  # a clause about what could not be read, where that could change the answer
    shares: Shares  # mean of the GPUs
    gpus: dict[int, Shares]
    copies: ExposedCopies  # mean of the GPUs
    idle: Idle  # mean of the GPUs
    streams: int  # that ran anything
    main_stream: tuple[str, float]  # of the GPU with most work: the busiest, and its part of the work
    beside_us: float  # in which work of several streams of a GPU ran
    kernel_us: float  # of a computation kernel, the median
    kinds: tuple[Kind, ...]  # of collectives
    collectives: tuple[CollectiveRun, ...] = field(repr=False)
    kernels: tuple[KernelSummary, ...]  # those that take longest first
    setting: frozenset[str]  # what the names in the trace tell about the program: setting.py
    pictured: tuple[float, float]  # the step that is nearest to the mean: from, to
    picture: tuple[Bar, ...] = field(repr=False)  # of that

    @property
    def one_gap_us(self) -> float:
        """Return the length of the one gap that makes up most of the time in which the host was late; else 0."""
        idle = self.idle
        is_most = idle.longest_by_host and idle.longest_us > idle.host_us * self.count / 2
        return idle.longest_us if is_most and self.count > 1 else 0.0

    @property
    def idle_us(self) -> float:
        return self.shares.idle_us

    @property
    def communication_us(self) -> float:
        return self.shares.communication_us

    @property
    def hidden_us(self) -> float:
        return self.shares.hidden_us


@dataclass(frozen=True)
class TraceResult:
    """What a trace says. untold: sentences about what it does not say."""

    trace: Trace  # without its records
    processes: tuple[ProcessResult, ...]
    untold: tuple[str, ...]
