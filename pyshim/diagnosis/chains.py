"""How much earlier the work of a stream would end, if its priority were greater than that of a kernel it waited behind.

Raised work still waits until a block of that kernel ends. Equal blocks run in waves on a full GPU; work that comes at
any moment waits half a wave, on average. Each further kernel of a chain of dependent work waits again, but not as long:
waves fall apart, and a kernel that has just ended left its room. A fifth of a wave fits the chains of thirty small
kernels of CoMD on an H100 and an H200 (docs/data/estimates.csv).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import NamedTuple

from pyshim.diagnosis.queues import Cause, Queued
from pyshim.profiles.record import MemoryOperation, TracedLaunch

_FIRST, _AGAIN = 0.5, 0.2  # of a wave: what a kernel of a chain waits


class Chain(NamedTuple):
    """Work of a stream from number `first` on, each piece of which depends on the one before."""

    first: int
    earlier_us: tuple[float, ...]  # each would end
    is_cut: bool  # what follows depends on something else, and would not end earlier

    @property
    def end(self) -> int:
        """The number behind its last."""
        return self.first + len(self.earlier_us)

    def gain_us(self, end: int, of_host: bool) -> float:
        """Return how much earlier a wait for the work before number `end` would be over; the host goes on with it."""
        if self.is_cut and end > self.end:
            return 0.0
        return self.earlier_us[-1 if of_host else min(end, self.end) - self.first - 1]


def follow(
    works: Sequence[Queued],
    first: int,
    ready_us: Sequence[float],
    front: TracedLaunch,
    wave_us: float,
    host_waits: Collection[int],
) -> Chain:
    """Play the chain again that begins with works[first], the first that waited behind `front`.

    ready_us: when each piece would have begun with nothing in front of it. wave_us: how long a block of `front` takes.
    host_waits: before it launched works of these numbers the host waited for those in front of them.
    """
    earlier: list[float] = []
    of_host, ended, has_waited = 0.0, -inf, False
    for number in range(first, len(works)):
        one, moved = works[number], 0.0
        if earlier:
            of_host = earlier[-1] if number in host_waits else of_host
            moved = of_host if _is_launched_late(one) else earlier[-1]
        if one.released_us is None or (earlier and (one.cause is Cause.EVENT or not moved)):
            return Chain(first, tuple(earlier), is_cut=True)
        begins = max(ready_us[number] - moved, ended)
        if begins >= front.end_us:
            break
        if isinstance(one.work, TracedLaunch):
            begins += wave_us * (_AGAIN if has_waited else _FIRST)
            has_waited = True
        earlier.append(max(0.0, one.work.start_us - begins))
        ended = one.work.end_us - earlier[-1]
    return Chain(first, tuple(earlier), is_cut=False)


def _is_launched_late(one: Queued) -> bool:
    """Whether the host launched it when the work in front had ended. The call of a copy that blocks came before."""
    blocks = isinstance(one.work, MemoryOperation) and one.released_us == one.work.start_us
    return one.cause is Cause.LAUNCH and not blocks
