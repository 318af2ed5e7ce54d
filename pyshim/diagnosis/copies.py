"""Of the copies that run beside no kernel: of which memory they are, and on whose streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyshim.diagnosis.intervals import Interval, both, length, merged
from pyshim.profiles.record import DEVICE, PAGEABLE, PINNED, MemoryOperation, TracedLaunch, Work


@dataclass(frozen=True)
class ExposedCopies:
    """Microseconds of a step; where copies of two sorts run at once, of both."""

    pageable_us: float  # of memory of the host that is not pinned
    pinned_us: float  # of the host, too
    device_us: float  # inside a GPU or between GPUs, memsets included
    apart_us: float  # from or to the host, on streams that run no kernels


def exposed_copies(works: Sequence[Work], exposed: Sequence[Interval], steps: int) -> ExposedCopies:
    """works: of one GPU, in the order of their starts. exposed: when copies run beside no kernel."""
    computing = {work.stream for work in works if isinstance(work, TracedLaunch)}
    copies = [work for work in works if isinstance(work, MemoryOperation)]
    of_host = [one for one in copies if one.memory in (PAGEABLE, PINNED)]
    return ExposedCopies(
        _inside([one for one in copies if one.memory == PAGEABLE], exposed) / steps,
        _inside([one for one in copies if one.memory == PINNED], exposed) / steps,
        _inside([one for one in copies if one.memory == DEVICE], exposed) / steps,
        _inside([one for one in of_host if one.stream not in computing], exposed) / steps,
    )


def _inside(copies: Iterable[MemoryOperation], exposed: Sequence[Interval]) -> float:
    own = merged((one.start_us, one.end_us) for one in copies)
    return length([(first, last) for _, first, last in both(own, exposed) if last > first])
