"""How fast communication launches follow each other, before and after: host time, out of the pages of two reports.

Every process keeps the time of every 2^n-th communication launch (struct overlap_cadence), 512 of them: the whole of a
short run, the recent past of a long one. The time between two of them, divided by the launches in between, is what one
step of the program takes for each collective that it launches, whatever the collective itself takes.

Intervals that follow each other are not independent: steps repeat, hosts slow down for a while. So the standard error
is that of batch means: the time is cut into 20 stretches of as many launches (10 where there are few), which are long
enough to be nearly independent, and the interval is Student's over their means. That 10 to 30 batches are enough:
B. Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30 (1982), 556-568. Two
runs are compared by the logarithm of the ratio of their means, so that the interval of the change is one of per cent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from pyshim.errors import USAGE, OverlapError
from pyshim.report.collect import Collected
from pyshim.report.who import some
from pyshim.stats.page import Page

VERSION = 1
METHOD = "batch means (Schmeiser 1982), 95 % by Student's t; change: ratio of means"
# Batches, and Student's t of one less: 97.5 % to the left.
_BATCHES = ((20, 2.093), (10, 2.262))
_EACH = 3  # samples that a batch must have
_WARM_UP = 10  # one part of so many is left out where the times go back to the first launch

Samples = Sequence["tuple[int, int]"]


@dataclass(frozen=True)
class Pace:
    """Microseconds between two communication launches of one process."""

    mean_us: float
    low_us: float | None  # None: too few times for an interval
    high_us: float | None
    launches: int  # that the times are about, of...
    communication: int  # ...so many
    every: int  # 2^n: the distance of the last two times, in launches


@dataclass(frozen=True)
class Change:
    percent: float  # of the time between launches: below 0 is faster
    low_percent: float | None
    high_percent: float | None

    @property
    def verdict(self) -> str:
        if self.low_percent is None or self.high_percent is None:
            return "too few launches to tell"
        if self.low_percent <= 0 <= self.high_percent:
            return "no difference seen"
        return "faster" if self.percent < 0 else "slower"


@dataclass(frozen=True)
class Pair:
    """A rank of both runs; rank is None where processes were matched by their order."""

    rank: int | None
    before_process: str  # HOST:PID
    after_process: str
    before: Pace
    after: Pace
    change: Change

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "change": {**asdict(self.change), "verdict": self.change.verdict}}


@dataclass(frozen=True)
class Total:
    """Of all pairs: geometric means, so that their ratio is that of the pairs."""

    ranks: int
    before_us: float
    after_us: float
    change: Change

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "change": {**asdict(self.change), "verdict": self.change.verdict}}


@dataclass(frozen=True)
class Compared:
    before: tuple[str, ...]  # the folders
    after: tuple[str, ...]
    pairs: tuple[Pair, ...]
    only_before: tuple[str, ...]  # processes that have launched communication, and nobody is there to compare them to
    only_after: tuple[str, ...]
    simulated: bool = False  # then the times are of no GPU

    @property
    def total(self) -> Total | None:
        """None where there are no pairs."""
        return _together(self.pairs) if self.pairs else None

    def as_json(self) -> dict[str, Any]:
        verdicts = [pair.change.verdict for pair in self.pairs]
        return {
            "version": VERSION,
            "kind": "reports",
            "simulated": self.simulated,
            "what": "time between communication launches",
            "clock": "host",
            "method": METHOD,
            "before": list(self.before),
            "after": list(self.after),
            "total": self.total and self.total.as_json(),
            "ranks": [pair.as_json() for pair in self.pairs],
            "verdicts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


@dataclass(frozen=True)
class _Estimate:
    pace: Pace
    error: float | None  # standard error of the mean, divided by it
    student: float


def compared(before: Collected, after: Collected) -> Compared:
    first, second = _ranked(before), _ranked(after)
    if first and second and None not in (*first, *second):
        ranks: list[int | None] = [rank for rank in first if rank in second]
        pairs = [_pair(rank, first[rank], second[rank]) for rank in ranks]
        lost = [page for rank, page in first.items() if rank not in second]
        new = [page for rank, page in second.items() if rank not in first]
    else:
        left, right = _timed(before), _timed(after)
        pairs = [_pair(None, one, other) for one, other in zip(left, right)]
        lost, new = left[len(right) :], right[len(left) :]
    return Compared(
        before.directories,
        after.directories,
        tuple(pairs),
        tuple(map(_name, lost)),
        tuple(map(_name, new)),
        _simulated(before, after),
    )


def _simulated(before: Collected, after: Collected) -> bool:
    """Raises OverlapError where one is and the other is not. Where no run was written, nobody knows."""
    kinds = [any(run.simulate for run in side.runs) for side in (before, after)]
    if before.runs and after.runs and len(set(kinds)) > 1:
        said = (
            f"{some(side.directories)} is {'simulated' if kind else 'measured'}"
            for side, kind in zip((before, after), kinds)
        )
        raise OverlapError(
            f"{', '.join(said)}: times of a simulated GPU and of a real one cannot be compared",
            "compare two runs of one kind",
            USAGE,
        )
    return any(kinds)


def _together(pairs: Sequence[Pair]) -> Total:
    """Ranks wait for each other, so that they are not independent: their standard error together is at most the mean of
    theirs, which it is where all are one. So is the interval here: never too narrow."""

    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return _percent(fmean(math.log(max(1 + value / 100, 1e-9)) for value in known))

    changes = [pair.change for pair in pairs]
    change = Change(
        middle([change.percent for change in changes]) or 0.0,
        middle([change.low_percent for change in changes]),
        middle([change.high_percent for change in changes]),
    )
    before = math.exp(fmean(math.log(max(pair.before.mean_us, 1e-3)) for pair in pairs))
    return Total(len(pairs), before, before * (1 + change.percent / 100), change)


def _timed(collected: Collected) -> list[Page]:
    return [page for page in collected.pages if len(page.cadence) > 1]


def _ranked(collected: Collected) -> dict[int | None, Page]:
    """Of several processes of a rank the one that communicates most; the ranks in order."""
    found: dict[int | None, Page] = {}
    for page in _timed(collected):
        if page.rank not in found or page.communication > found[page.rank].communication:
            found[page.rank] = page
    return dict(sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def _name(page: Page) -> str:
    return f"{page.host}:{page.pid}"


def _pair(rank: int | None, before: Page, after: Page) -> Pair:
    first, second = _estimate(before), _estimate(after)
    return Pair(rank, _name(before), _name(after), first.pace, second.pace, _change(first, second))


def pace(page: Page) -> Pace | None:
    """None where fewer than two communication launches have left their time."""
    return _estimate(page).pace if len(page.cadence) > 1 else None


def _estimate(page: Page) -> _Estimate:
    samples = page.cadence
    every = samples[-1][0] - samples[-2][0]
    if samples[0][0] == 1:
        samples = samples[len(samples) // _WARM_UP :]
    launches, mean = samples[-1][0] - samples[0][0], _mean(samples[0], samples[-1])
    for batches, student in _BATCHES:
        ends = _cut(samples, batches)
        if ends:
            means = [_mean(one, other) for one, other in zip(ends, ends[1:])]
            error = stdev(means) / math.sqrt(batches)
            half = student * error
            made = Pace(mean, max(mean - half, 0.0), mean + half, launches, page.communication, every)
            return _Estimate(made, error / mean if mean else None, student)
    return _Estimate(Pace(mean, None, None, launches, page.communication, every), None, _BATCHES[-1][1])


def _mean(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Microseconds for a launch."""
    return (other[1] - one[1]) / (other[0] - one[0]) / 1000


def _cut(samples: Samples, batches: int) -> list[tuple[int, int]]:
    """The ends of stretches of as many launches; none where there are too few times for so many."""
    if len(samples) <= batches * _EACH:
        return []
    first, whole = samples[0][0], samples[-1][0] - samples[0][0]
    ends, at = [samples[0]], 0
    for batch in range(1, batches + 1):
        while (samples[at][0] - first) * batches < whole * batch:
            at += 1
        if samples[at][0] == ends[-1][0]:
            return []
        ends.append(samples[at])
    return ends


def _change(before: _Estimate, after: _Estimate) -> Change:
    if not before.pace.mean_us or not after.pace.mean_us:
        return Change(0.0, None, None)
    logarithm = math.log(after.pace.mean_us / before.pace.mean_us)
    if before.error is None or after.error is None:
        return Change(_percent(logarithm), None, None)
    # The smaller number of degrees of freedom: never too narrow.
    half = max(before.student, after.student) * math.hypot(before.error, after.error)
    return Change(_percent(logarithm), _percent(logarithm - half), _percent(logarithm + half))


def _percent(logarithm: float) -> float:
    return 100 * math.expm1(logarithm)
