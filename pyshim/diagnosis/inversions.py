"""Priority inversions: work that was ready and stood behind blocks of another stream's kernel, while it was waited for.

What counts:

- It was ready and stood behind a kernel (blocked.py). Behind one whose blocks were all resident at once nothing can be
  gained: a priority takes effect when a block ends. Nor can it where the work has the greater priority already.
- It was waited for: by the host, by another stream through an event, or by communication on its own stream.
- On a minor stream: one with at most half of the GPU's computation, as the default policy counts it: shim/core/judge.h.
  A stream that has most of the work may lose by being raised.

What raising may save in a step is estimated as the time in which any of it waited, on all GPUs of the process, counted
once; no more than its waiters waited for it; without what it would still wait until blocks end (chains.py); and no more
than the time in which the GPU was not full behind the work in front, because that work remains (conserved.py).
Behind a stream that is raised as well, work waits as before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pyshim import _native
from pyshim.diagnosis.blocked import Blocked, DeviceQueues
from pyshim.diagnosis.chains import Chain, follow
from pyshim.diagnosis.conserved import saved
from pyshim.diagnosis.intervals import Interval, merged, union
from pyshim.diagnosis.priorities import Priorities, faults
from pyshim.diagnosis.queues import COMMUNICATION, HOST, LEAST_US, Delay, Place, Queued, Queues
from pyshim.diagnosis.result import COPY, NEXT_TO_NOTHING, Inversion, Share, Waited, raised
from pyshim.profiles.record import TracedLaunch, Work

MINOR = 0.5  # of the GPU's computation: the default policy's share


@dataclass
class _Claim:
    """Who waited for work that had waited, and how that wait would end."""

    waiters: set[str] = field(default_factory=set)
    saved_us: float = 0.0  # what raising would save the waiters
    lost_us: float = 0.0  # what a waiter other than communication lost
    still_us: float = 0.0  # what they would wait all the same


@dataclass
class _Sorted:
    """The waits of one process by what can be done about them, and the times of all steps together."""

    by_step: defaultdict[int, list[Blocked]] = field(default_factory=lambda: defaultdict(list))  # on minor streams
    minor: defaultdict[Place, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    major: defaultdict[Place, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    one_wave: list[Blocked] = field(default_factory=list)
    raised: list[Blocked] = field(default_factory=list)
    unclaimed: list[Blocked] = field(default_factory=list)


class Inversions:
    """What waited on the GPUs of one process, for whom, by step."""

    def __init__(
        self,
        queues: Queues,
        gpus: dict[int, DeviceQueues],
        bounds: Sequence[float],
        priorities: Priorities,
        is_default: Callable[[Place], bool | None],
    ) -> None:
        """bounds: the start of each step, and the end of the last. is_default: a default stream, None: perhaps one."""
        self.is_default = is_default
        self.queues = queues
        self.gpus = gpus
        self.bounds = bounds
        self.priorities = priorities
        self.works = [one.work for stream in queues.streams.values() for one in stream.works]
        self.blocked = {id(wait.queued): wait for gpu in gpus.values() for wait in gpu.blocked()}
        kernels = [work for work in self.works if isinstance(work, TracedLaunch)]
        self.shares = self._shares([kernel for kernel in kernels if not kernel.communication])
        self.chains = self._chains()
        self.claims: defaultdict[int, _Claim] = defaultdict(_Claim)  # by the work's id
        self.spent: defaultdict[tuple[str, int], float] = defaultdict(float)  # of chains, by waiter
        for delay in queues.delays:
            self._spread(delay)
        self.sorted = self._sorted()

    def _shares(self, kernels: Sequence[TracedLaunch]) -> dict[tuple[int, Place], float]:
        """Return a stream's share of its GPU's computation by step, as roles may swap: its work, or time."""
        sized = all(kernel.blocks and kernel.threads for kernel in kernels)
        usual: int = _native.header().OVERLAP_REGISTERS
        sums: defaultdict[tuple[int, Place], float] = defaultdict(float)
        whole: defaultdict[tuple[int, int], float] = defaultdict(float)
        for kernel in kernels:
            step = self._step(kernel)
            size = kernel.end_us - kernel.start_us
            if sized:  # as overlap_block_work() in shim/core/judge.h
                size = (kernel.blocks or 0) * (kernel.threads or 0) * ((kernel.registers or usual) / usual) ** 2
            sums[step, (kernel.device, kernel.stream)] += size
            whole[step, kernel.device] += size
        return {(step, place): size / (whole[step, place[0]] or 1.0) for (step, place), size in sums.items()}

    def _step(self, work: Work) -> int:
        """-1, or their number: outside of all."""
        return bisect_right(self.bounds, work.start_us) - 1

    def _chains(self) -> dict[int, Chain]:
        """Return for each wait the chain of what waited with it, one behind the other, behind the same kernel."""
        chains: dict[int, Chain] = {}
        asked: defaultdict[Place, set[int]] = defaultdict(set)
        for delay in self.queues.delays:
            if delay.waiter == HOST:
                asked[delay.place].add(delay.end)
        for place, stream in self.queues.streams.items():
            waits = [self.blocked.get(id(one)) for one in stream.works]
            ready = [wait.start_us if wait else one.work.start_us for wait, one in zip(waits, stream.works)]
            of_front: dict[int, Chain] = {}
            for number, wait in enumerate(waits):
                if wait is None:
                    continue
                front = wait.behind
                if id(front) not in of_front or number >= of_front[id(front)].end:
                    wave = self.gpus[place[0]].wave_us(front)
                    of_front[id(front)] = follow(stream.works, number, ready, front, wave, asked[place])
                chains[id(wait.queued)] = of_front[id(front)]
        return chains

    def _spread(self, delay: Delay) -> None:
        """Of what the waiter lost, each piece of work in front of it has what it waited, the last one first."""
        works = self.queues.streams[delay.place].works
        left = delay.slack_us
        for queued in reversed(works[delay.first : delay.end]):
            wait = self.blocked.get(id(queued))
            if wait is None:
                continue
            if left < LEAST_US and delay.waiter != COMMUNICATION:
                return  # but say that another rank waits, however little it loses
            claim = self.claims[id(queued)]
            claim.waiters.add(delay.waiter)
            chain = self.chains[id(queued)]
            spent = delay.waiter, id(chain)
            wanted = min(wait.length_us, left)
            gain = chain.gain_us(delay.end, delay.waiter == HOST) - self.spent[spent]
            saved = max(0.0, min(wanted, gain))
            self.spent[spent] += saved
            claim.saved_us = max(claim.saved_us, saved)
            claim.still_us = max(claim.still_us, wanted - saved)
            if delay.waiter != COMMUNICATION:
                claim.lost_us = max(claim.lost_us, wanted)
            left -= wanted

    def _sorted(self) -> _Sorted:
        """Return the waits of all steps by what can be done about them."""
        found = _Sorted()
        for wait in self.blocked.values():
            queued, step = wait.queued, self._step(wait.queued.work)
            if not 0 <= step < len(self.bounds) - 1:
                continue
            share = self.shares.get((step, queued.place), 0.0)
            if not self.claims[id(queued)].waiters:
                found.unclaimed.append(wait)
            elif wait.one_wave:
                found.one_wave.append(wait)
            elif self.priorities.is_greater(queued.place, wait.behind_place):
                found.raised.append(wait)
            elif share > MINOR:
                found.major[queued.place].append((share, wait.length_us))
            else:
                found.by_step[step].append(wait)
                found.minor[queued.place].append((share, wait.length_us))
        return found

    def _inversions(self, waits: Sequence[Blocked], count: int) -> list[Inversion]:
        """Return the waits by kernel and kernel in front, the longest first."""
        groups: defaultdict[tuple[int, str, str], list[Blocked]] = defaultdict(list)
        for wait in waits:
            work = wait.queued.work
            kernel = work.kernel if isinstance(work, TracedLaunch) else COPY
            groups[work.device, kernel, wait.behind.kernel].append(wait)
        found = [
            Inversion(
                device=device,
                kernel=kernel,
                streams=tuple(sorted({wait.queued.work.stream for wait in own})),
                behind=behind,
                behind_streams=tuple(sorted({wait.behind.stream for wait in own})),
                waiters=tuple(sorted({waiter for wait in own for waiter in self.claims[id(wait.queued)].waiters})),
                count=len(own) / count,
                waited_us=sum(wait.length_us for wait in own) / count,
                at_least=any(wait.queued.at_least for wait in own),
            )
            for (device, kernel, behind), own in groups.items()
        ]
        return sorted(found, key=lambda one: (-one.waited_us, one.device))

    def result(self) -> Waited:
        """Return what is to be said of it. Times are of a step, on average."""
        count = len(self.bounds) - 1
        waits = self.sorted
        small = _streams(waits.minor, count, self.is_default)
        to_raise = {(one.device, one.stream) for one in raised(small)}
        waited = still = as_before = 0.0
        raising: list[tuple[Blocked, _Claim]] = []
        for of_this in waits.by_step.values():
            waited += union((wait.start_us, wait.until_us) for wait in of_this)
            claims = [(wait, self.claims[id(wait.queued)]) for wait in of_this if wait.queued.place in to_raise]
            raising += [(wait, claim) for wait, claim in claims if wait.behind_place not in to_raise]
            still += sum(claim.still_us for _, claim in claims)
            as_before += union((wait.start_us, wait.until_us) for wait, _ in claims if wait.behind_place in to_raise)
        span = self.bounds[-1] - self.bounds[0]
        inverted = [wait for of_this in waits.by_step.values() for wait in of_this]
        pairs = {(wait.queued.place, wait.behind_place) for wait in inverted}
        earlier = union(_earlier(raising))
        saves = min(earlier, union(won for device in self.gpus for won in self._won(device, raising, to_raise)))
        return Waited(
            inversions=tuple(self._inversions(inverted, count)),
            waited_us=waited / count,
            saves_us=saves / count,
            moved_us=(earlier - saves) / count,
            still_us=still / count,
            as_before_us=as_before / count,
            saves_at_most=any(self._is_wave_unknown(wait) for wait, claim in raising if claim.saved_us > 0),
            minor=small,
            major=_streams(waits.major, count, self.is_default),
            one_wave_us=sum(wait.length_us for wait in waits.one_wave) / count,
            one_wave_lost_us=self._lost(waits.one_wave) / count,
            one_wave_kernel=_mostly_behind([*waits.one_wave, *(wait for wait in waits.unclaimed if wait.one_wave)]),
            raised_us=sum(wait.length_us for wait in waits.raised) / count,
            unclaimed_us=_any_of(waits.unclaimed) / count,
            unclaimed_one_wave_us=_any_of(wait for wait in waits.unclaimed if wait.one_wave) / count,
            refuted_us=_any_of(self._in_steps(wait for gpu in self.gpus.values() for wait in gpu.refuted)) / count,
            faults=tuple(faults(self.priorities, pairs if saves > NEXT_TO_NOTHING * span else ())),
            has_priorities=self.priorities.differ,
        )

    def of_step(self, step: int) -> list[Blocked]:
        """Return what raising would have helped in one step."""
        return self.sorted.by_step.get(step, [])

    def _is_wave_unknown(self, wait: Blocked) -> bool:
        """Whether nothing says how long a block in front takes, so that chains.py leaves out what would still wait."""
        return not self.gpus[wait.queued.place[0]].wave_us(wait.behind)

    def _lost(self, waits: Iterable[Blocked]) -> float:
        """Return the time that waiters other than communication lost."""
        claims = ((wait, self.claims[id(wait.queued)]) for wait in waits)
        return union((wait.until_us - claim.lost_us, wait.until_us) for wait, claim in claims)

    def _in_steps(self, waits: Iterable[Blocked]) -> list[Blocked]:
        return [wait for wait in waits if 0 <= self._step(wait.queued.work) < len(self.bounds) - 1]

    def _won(
        self, device: int, raising: Sequence[tuple[Blocked, _Claim]], to_raise: Collection[Place]
    ) -> Iterable[Interval]:
        """Return what raising wins on a GPU."""
        own = [(wait, claim) for wait, claim in raising if wait.behind.device == device]
        if not own:
            return ()
        gpu = self.gpus[device]
        fronts = {wait.behind_place for wait, _ in own}
        large = [one for one in gpu.queued if _fills(gpu, one, fronts)]
        in_front = _times(one.work for one in large if one.place not in to_raise)
        # What else the streams in front have comes one after the other all the same.
        others = _times(one.work for one in gpu.queued if one.place in fronts)
        full = merged(sorted([*_times(one.work for one in large), *others]))
        return saved(merged(sorted(_earlier(own))), full, in_front, self.bounds[-1])


def _fills(gpu: DeviceQueues, one: Queued, fronts: Collection[Place]) -> bool:
    """Whether its blocks fill the GPU. Where that is not known, what computes on a stream in front is taken to."""
    if not isinstance(one.work, TracedLaunch) or one.work.communication:
        return False
    waves = gpu.waves(one.work)
    return one.place in fronts if waves is None else waves >= 1


def _times(works: Iterable[Work]) -> list[Interval]:
    return merged((work.start_us, work.end_us) for work in works)


def _earlier(raising: Iterable[tuple[Blocked, _Claim]]) -> Iterable[Interval]:
    return ((wait.until_us - claim.saved_us, wait.until_us) for wait, claim in raising)


def _mostly_behind(waits: Iterable[Blocked]) -> str:
    """Return the kernel behind which most of it waited, "" without waits."""
    sums: defaultdict[str, float] = defaultdict(float)
    for wait in waits:
        sums[wait.behind.kernel] += wait.length_us
    return max(sums, key=lambda kernel: sums[kernel], default="")


def _any_of(waits: Iterable[Blocked]) -> float:
    """Return the time in which any of it waited."""
    intervals: list[Interval] = [(wait.start_us, wait.until_us) for wait in waits]
    return union(intervals)


def _streams(
    waited: dict[Place, list[tuple[float, float]]], count: int, is_default: Callable[[Place], bool | None]
) -> tuple[Share, ...]:
    """Return the streams of shares and times that waited."""
    return tuple(
        Share(
            *place,
            sum(share for share, _ in found) / len(found),
            sum(time for _, time in found) / count,
            is_default(place) is True,
            is_default(place) is None,
        )
        for place, found in sorted(waited.items())
    )
