"""Where the time of a step goes on one GPU: five shares that add up to the step.

At each moment a GPU does one of these; the first that holds counts:

- communication beside computation, if kernels of both run;
- computation, if only such kernels run;
- exposed communication, if a communication kernel runs and no computation;
- copies, if only copies or memsets run;
- idle.

Exposed and hidden communication have the meaning they have in HolisticTraceAnalysis ("Communication Computation
Overlap"), exposed copies and idle time that of TraceLens ("GPU timeline").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from pyshim.diagnosis.copies import ExposedCopies
from pyshim.diagnosis.intervals import Interval, both, clipped, length, merged, without
from pyshim.profiles.record import MemoryOperation, TracedLaunch, Work

Times = TypeVar("Times", "Shares", ExposedCopies)


@dataclass(frozen=True)
class Shares:
    """Microseconds of a step."""

    computation_us: float
    hidden_us: float  # communication beside computation
    exposed_us: float  # communication beside nothing
    copies_us: float
    idle_us: float

    @property
    def communication_us(self) -> float:
        return self.hidden_us + self.exposed_us

    @property
    def whole_us(self) -> float:
        return self.computation_us + self.communication_us + self.copies_us + self.idle_us


def mean(of: Sequence[Times]) -> Times:
    """Return the mean of several GPUs, of each field."""
    kind = type(of[0])
    return kind(*(sum(getattr(one, field.name) for one in of) / len(of) for field in fields(kind)))


class Timeline:
    """What one GPU does from one time to another. works: its own, in the order of their starts."""

    def __init__(self, works: Sequence[Work], begin: float, end: float) -> None:
        self.begin, self.end = begin, end
        kernels = [work for work in works if isinstance(work, TracedLaunch)]
        self.computation = clipped(merged(_times(one for one in kernels if not one.communication)), begin, end)
        self.communication = clipped(merged(_times(one for one in kernels if one.communication)), begin, end)
        self.exposed = without(self.communication, self.computation)
        in_kernels = merged(sorted([*self.computation, *self.exposed]))
        copies = merged(_times(work for work in works if isinstance(work, MemoryOperation)))
        self.copies = without(clipped(copies, begin, end), in_kernels)
        busy = merged(sorted([*in_kernels, *self.copies]))
        self.idle = without([(begin, end)], busy) if end > begin else []

    def shares(self, steps: int) -> Shares:
        """Return the means of a number of equal parts."""
        communication, exposed = length(self.communication), length(self.exposed)
        hidden = communication - exposed
        times = length(self.computation) - hidden, hidden, exposed, length(self.copies), length(self.idle)
        return Shares(*(max(0.0, time) / steps for time in times))


def _times(works: Iterable[Work]) -> Iterator[Interval]:
    return ((work.start_us, work.end_us) for work in works)


def exposed_by_kernel(kernels: Sequence[TracedLaunch], exposed: Sequence[Interval]) -> list[list[Interval]]:
    """Return for each communication kernel, in the order of starts, the exposed time that it has to answer for.

    Where several run at once, that is the one that started first: another one takes over when it ends."""
    own: list[Interval] = []
    until = float("-inf")
    for kernel in kernels:
        own.append((max(kernel.start_us, until), max(kernel.end_us, until)))
        until = max(until, kernel.end_us)
    found: list[list[Interval]] = [[] for _ in kernels]
    for number, first, last in both(own, exposed):
        if last > first:
            found[number].append((first, last))
    return found
