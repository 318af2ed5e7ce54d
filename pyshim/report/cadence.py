"""How fast communication launches follow each other, before and after: host time, out of the pages of two reports.

Where a run has none, as with MPI, how fast waits of the host do.

Every process keeps the time of every 2^n-th communication launch and wait (struct overlap_cadence), 512 of them: the
whole of a short run, the recent past of a long one. The time between two of them, divided by the launches in between,
is what one step of the program takes for each collective that it launches, whatever the collective itself takes.

Intervals that follow each other are not independent: steps repeat, hosts slow down for a while. So the standard error
is that of batch means: the time is cut into 10 to 20 stretches of as many launches, which are long enough to be
nearly independent, and the interval is Student's over their means. Where a step has several collectives, in bursts, a
stretch is of whole steps: cut anywhere, it would be long or short by chance. That 10 to 30 batches are enough: B.
Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30 (1982), 556-568. Two runs
are compared by the logarithm of the ratio of their means, so that the interval of the change is one of per cent.

The interval knows nothing of what changes from run to run, such as the load of the host. So there is no verdict where
the pace drifts within a run, or where parts of one run differ by as much as the two runs do. The parts are eighths: of
20 pairs of equal runs on a host with eight runnable processes a core, the interval alone saw a difference in 5, and
so it did with halves; with eighths in none.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from operator import mul, sub
from statistics import fmean, stdev
from typing import Any, NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.report.collect import Collected, some
from pyshim.stats.page import Page, Samples

VERSION = 1
METHOD = "batch means (Schmeiser 1982), 95 % by Student's t; change: ratio of means"
_BATCHES = (10, 20)
# Student's t, of which |t| exceeds this in 5 % of cases, by degrees of freedom from 9 to 19: one less than batches.
_STUDENT = (2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)
_CORRELATED = 0.9  # of batches: a larger correlation cannot be told from so few
_SURE = 2.576  # of a drift: what chance exceeds in 1 of 100 series without one
_WORTH = 0.01  # of the mean: a smaller drift is not told
_EACH = 3  # samples that a batch must have
_ALIKE = 1.5  # of several steps, whose times differ by hardly more than those of one, the one
_WARM_UP = 10  # one part of so many launches is left out at the beginning
_WIDE = 5.0  # points of per cent: an interval that reaches farther shows little
_SAME = 0.05  # by so much the share of communication in the launches may differ

_PYTHON = re.compile(r"python[0-9.]*\Z")

TOO_FEW = "too few launches to tell"
OTHER_LAUNCHES = "not the same launches"
LAUNCHES, WAITS = "communication launches", "waits of the host"
SIMULATED = "no verdict: simulated"
DRIFTS = "no verdict: the pace drifts within a run"
WITHIN = "no verdict: parts of one run differ as much"
_PARTS = 8  # of a run, whose paces are compared with each other


class Timed(NamedTuple):
    """What has left its times in a process."""

    page: Page
    samples: Samples
    events: int  # launches of communication, or waits
    others: int  # the other launches


def _communicates(page: Page) -> Timed:
    return Timed(page, page.cadence, page.communication, page.launches - page.communication)


def _waits(page: Page) -> Timed:
    return Timed(page, page.wait_cadence, page.waits, page.launches)


@dataclass(frozen=True)
class Pace:
    """Microseconds between two communication launches, or waits, of one process."""

    mean_us: float
    low_us: float | None  # None: too few times for an interval
    high_us: float | None
    counted: int  # that the times are about, of...
    events: int  # ...so many
    others: int  # all other launches of the process
    every: int  # 2^n: the distance of the last two times


@dataclass(frozen=True)
class Change:
    percent: float  # of the time between launches: below 0 is faster
    low_percent: float | None
    high_percent: float | None
    same_launches: bool = True  # else other collectives were launched, and the times are of other things
    noise_percent: float | None = None  # how far parts of one run are from each other; None: too few times
    stationary: bool = True  # the pace drifts in neither run
    simulated: bool = False

    @property
    def half_percent(self) -> float | None:
        """How far the interval reaches: changes that are smaller are not seen. None: there is none."""
        if self.low_percent is None or self.high_percent is None:
            return None
        return (self.high_percent - self.low_percent) / 2

    @property
    def verdict(self) -> str:
        if self.simulated:
            return SIMULATED
        if not self.same_launches:
            return OTHER_LAUNCHES
        half = self.half_percent
        if self.low_percent is None or self.high_percent is None or half is None:
            return TOO_FEW
        if self.low_percent <= 0 <= self.high_percent:
            return "no difference seen" if half <= _WIDE else TOO_FEW
        if not self.stationary:
            return DRIFTS
        if abs(self.percent) <= (self.noise_percent or 0.0):
            return WITHIN
        return "faster" if self.percent < 0 else "slower"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "half_percent": self.half_percent, "verdict": self.verdict}


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
        return {**asdict(self), "change": self.change.as_json()}


@dataclass(frozen=True)
class Total:
    """Of all pairs: geometric means, so that their ratio is that of the pairs."""

    ranks: int
    before_us: float
    after_us: float
    change: Change

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "change": self.change.as_json()}


@dataclass(frozen=True)
class Compared:
    before: tuple[str, ...]  # the folders
    after: tuple[str, ...]
    programs: tuple[str, str]  # by their commands, before and after
    pairs: tuple[Pair, ...]
    only_before: tuple[str, ...]  # processes that have left times, and nobody is there to compare them to
    only_after: tuple[str, ...]
    simulated: bool = False  # then the times are of no GPU
    what: str = LAUNCHES  # the times are between
    different: tuple[str, str] | None = None  # the programs of the processes compared, where they differ

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
            "what": f"time between {self.what}",
            "clock": "host",
            "method": METHOD,
            "before": list(self.before),
            "after": list(self.after),
            "programs": list(self.programs),
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
    means: tuple[float, ...] = ()  # of the batches

    @property
    def noise(self) -> float:
        """Return the logarithm of the ratio of the slowest part of the run to the fastest."""
        if not self.means:
            return 0.0
        ends = [len(self.means) * part // _PARTS for part in range(_PARTS + 1)]
        parts = [fmean(self.means[begin:end]) for begin, end in zip(ends, ends[1:])]
        return math.log(max(parts) / max(min(parts), 1e-3))  # the clock counts nanoseconds


def compared(before: Collected, after: Collected) -> Compared:
    simulated, what, of, sides = _simulated(before, after), LAUNCHES, _communicates, (before, after)
    # A few collectives at the start of a program of MPI are no pace.
    if not all(_steady(side, _communicates) for side in sides) and all(_timed(side, _waits) for side in sides):
        what, of = WAITS, _waits
    first, second = _ranked(before, of), _ranked(after, of)
    if first and second and None not in (*first, *second):
        ranks = [rank for rank in first if rank in second]
        matched = [(rank, first[rank], second[rank]) for rank in ranks]
        lost = [timed for rank, timed in first.items() if rank not in second]
        new = [timed for rank, timed in second.items() if rank not in first]
    else:
        left, right = _timed(before, of), _timed(after, of)
        matched = [(None, one, other) for one, other in zip(left, right)]
        lost, new = left[len(right) :], right[len(left) :]
    return Compared(
        before.directories,
        after.directories,
        (_command(before), _command(after)),
        tuple(_pair(*pair, simulated) for pair in matched),
        tuple(map(_name, lost)),
        tuple(map(_name, new)),
        simulated,
        what,
        _different((before, [one.page for _, one, _ in matched]), (after, [other.page for _, _, other in matched])),
    )


def _different(*sides: tuple[Collected, list[Page]]) -> tuple[str, str] | None:
    """Return the programs of the processes compared, by their names; None where they are the same.

    Where these are interpreters, the scripts, by the commands: None, too, where a command names none."""
    before, after = (_names(pages or collected.pages) for collected, pages in sides)
    if before != after:
        return some(before), some(after)
    scripts = [_script(collected) for collected, _ in sides] if before == ["python"] else []
    return (scripts[0], scripts[1]) if len(set(scripts)) == 2 and all(scripts) else None


def _names(pages: Sequence[Page]) -> list[str]:
    """Return the names of the programs, without the version of an interpreter."""
    names = (os.path.basename(page.program) for page in pages)
    return sorted({"python" if _PYTHON.match(name) else name for name in names})


def _script(collected: Collected) -> str:
    """Return the Python script or module of the command, such as `mpirun -n 2 python train.py`; or nothing."""
    words = next((run.command for run in collected.runs if run.command), ())
    script = next((os.path.basename(word) for word in words if word.endswith(".py")), "")
    python = next((at for at, word in enumerate(words) if _PYTHON.match(os.path.basename(word))), len(words))
    modules = (module for option, module in zip(words[python:], words[python + 1 :]) if option == "-m")
    return script or next(modules, "")


def _command(collected: Collected) -> str:
    """Return the command, without the path of its program; where it is not known, the programs that left a page."""
    command = next((run.command for run in collected.runs if run.command), None)
    if command:
        return shlex.join([os.path.basename(command[0]), *command[1:]])
    return some(sorted({os.path.basename(page.program) for page in collected.pages}))


def _simulated(before: Collected, after: Collected) -> bool:
    """Return whether both are simulated. Raises OverlapError where one is and the other is not."""
    kinds = [
        any(run.simulate for run in side.runs) or any(page.simulated for page in side.pages) for side in (before, after)
    ]
    if before.pages and after.pages and len(set(kinds)) > 1:
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
    """Combine ranks, which wait for each other, so that they are not independent.

    Their standard error together is at most the mean of theirs, which it is where all are one. So is the interval here:
    never too narrow."""

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
        all(change.same_launches for change in changes),
        middle([change.noise_percent for change in changes]),
        all(change.stationary for change in changes),
        any(change.simulated for change in changes),
    )
    before = math.exp(fmean(math.log(max(pair.before.mean_us, 1e-3)) for pair in pairs))
    return Total(len(pairs), before, before * (1 + change.percent / 100), change)


def _timed(collected: Collected, of: Callable[[Page], Timed]) -> list[Timed]:
    return [timed for timed in map(of, collected.pages) if len(timed.samples) > 1]


def _steady(collected: Collected, of: Callable[[Page], Timed]) -> bool:
    """Return whether a process has left times enough for an interval."""
    return any(len(timed.samples) > _EACH * _BATCHES[0] for timed in _timed(collected, of))


def _ranked(collected: Collected, of: Callable[[Page], Timed]) -> dict[int | None, Timed]:
    """Of several processes of a rank the one that communicates or waits most; the ranks in order."""
    found: dict[int | None, Timed] = {}
    for timed in _timed(collected, of):
        rank = timed.page.rank
        if rank not in found or timed.events > found[rank].events:
            found[rank] = timed
    return dict(sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def _name(timed: Timed) -> str:
    return f"{timed.page.host}:{timed.page.pid}"


def _pair(rank: int | None, before: Timed, after: Timed, simulated: bool) -> Pair:
    first, second = _estimate(before), _estimate(after)
    change = replace(_change(first, second), simulated=simulated)
    return Pair(rank, _name(before), _name(after), first.pace, second.pace, change)


def _same(before: Pace, after: Pace) -> bool:
    """Return whether both have equal shares of events; names do not count, as NCCL may change algorithms."""
    one, other = before.events * after.others, after.events * before.others
    if not before.others and not after.others:
        one, other = before.events, after.events
    return abs(one - other) <= _SAME * max(one, other)


def pace(page: Page) -> Pace | None:
    """Return the pace; None where fewer than two communication launches have left their time."""
    return _estimate(_communicates(page)).pace if len(page.cadence) > 1 else None


def _estimate(timed: Timed) -> _Estimate:
    every = timed.samples[-1][0] - timed.samples[-2][0]
    samples = _warm(timed.samples)
    ends = _cut([sample for sample in samples if (samples[-1][0] - sample[0]) % every == 0])
    first, last = (ends or samples)[0], samples[-1]
    mean, counted = (
        _mean(first, last),
        (last[0] - first[0], timed.events, timed.others, every),
    )
    if not ends:
        return _Estimate(Pace(mean, None, None, *counted), None, 0.0)
    means = [_mean(one, other) for one, other in zip(ends, ends[1:])]
    error, student = of_batches(means)
    half = student * error
    made = Pace(mean, max(mean - half, 0.0), mean + half, *counted)
    return _Estimate(made, error / mean if mean else None, student, tuple(means))


def of_batches(means: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the mean of 10 to 20 batch means, and the quantile of Student's t for it.

    Of few batches the means depend on each other still: like an autoregressive process of the first order, whose
    correlation, of so few, comes out too low by what Kendall (1954) says."""
    count, middle = len(means), fmean(means)
    off = [value - middle for value in means]
    square = sum(map(mul, off, off))
    found = sum(map(mul, off[1:], off)) / square if square else 0.0
    correlation = min(max(found + (1 + 3 * found) / count, 0.0), _CORRELATED)
    error = stdev(means) / math.sqrt(count) * math.sqrt((1 + correlation) / (1 - correlation))
    return error, _STUDENT[count - _BATCHES[0]]


def drifts(means: Sequence[float]) -> bool:
    """Return whether batch means tend one way, by more than 1 % from the first to the last third.

    H. B. Mann, Econometrica 13 (1945)."""
    count, third = len(means), -(-len(means) // 3)
    if count < _BATCHES[0]:
        return False
    rising = sum(
        (later > earlier) - (later < earlier) for index, earlier in enumerate(means) for later in means[index:]
    )
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    change = fmean(means[-third:]) - fmean(means[:third])
    return abs(rising) - 1 > _SURE * spread and abs(change) > _WORTH * abs(fmean(means))


def _warm(samples: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """By the number of a launch: the ring may have lost the first ones, and the warm-up behind them be in it still."""
    left_out = samples[-1][0] // _WARM_UP
    kept = [sample for sample in samples if sample[0] > left_out]
    return kept if len(kept) > 1 else samples[-2:]


def _mean(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Microseconds for a launch."""
    return (other[1] - one[1]) / (other[0] - one[0]) / 1000


def _cut(samples: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Cut even samples into stretches of as many launches, whole periods, from the beginning; none: too few samples."""
    period = _period([nanoseconds for _, nanoseconds in samples])
    piece = period * -(-_EACH // period)
    pieces = (len(samples) - 1) // piece
    least, most = _BATCHES
    if pieces < least:
        return []
    batches = max(range(least, most + 1), key=lambda batches: (pieces // batches * batches, batches))
    return samples[-1 - pieces // batches * batches * piece :: pieces // batches * piece]


def _period(times: Sequence[int]) -> int:
    """Return after how many samples a program does the same again.

    Where collectives come in bursts, times that are a whole step apart differ the least from each other. 1: it cannot
    be told from chance, or there is none."""
    if len(times) < 2:
        return 1
    pace = (times[-1] - times[0]) / (len(times) - 1)
    off = [nanoseconds - times[0] - index * pace for index, nanoseconds in enumerate(times)]
    spread = {}
    for lag in range(1, max(2, (len(times) - 1) // _BATCHES[0] + 1)):
        apart = list(map(sub, off[lag:], off))
        spread[lag] = sum(map(mul, apart, apart)) / len(apart)
    enough = _ALIKE * min(spread.values()) + 1  # the clock counts whole nanoseconds
    return next(lag for lag, found in spread.items() if found <= enough)


def _change(before: _Estimate, after: _Estimate) -> Change:
    same = _same(before.pace, after.pace)
    if not before.pace.mean_us or not after.pace.mean_us:
        return Change(0.0, None, None, same)
    logarithm = math.log(after.pace.mean_us / before.pace.mean_us)
    if before.error is None or after.error is None:
        return Change(_percent(logarithm), None, None, same)
    # The smaller number of degrees of freedom: never too narrow.
    half = max(before.student, after.student) * math.hypot(before.error, after.error)
    return Change(
        _percent(logarithm),
        _percent(logarithm - half),
        _percent(logarithm + half),
        same,
        _percent(max(before.noise, after.noise)),
        not (drifts(before.means) or drifts(after.means)),
    )


def _percent(logarithm: float) -> float:
    return 100 * math.expm1(logarithm)
