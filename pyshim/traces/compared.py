"""Before and after: every quantity of every rank, and of all together, with what the difference may be by chance.

A step of the job is the mean of its ranks in that step: they wait for each other, so steps of several ranks are not
samples of their own. The interval of a difference is Welch's, over the steps of the one and of the other, which count
for less where they resemble each other; all intervals of a table hold together, and a verdict is what its interval
says. Steps of one run resemble each other more than two runs do: a second run of each says more than any interval.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyshim import intervals
from pyshim.errors import USAGE, OverlapError
from pyshim.intervals import CONFIDENCE, Interval
from pyshim.traces.measured import Measured, Side, read_side
from pyshim.traces.overlap import Times

VERSION = 1
TIME, SHARE, FACTOR = "us", "share", "factor"
_TINY = 1e-3  # of a step: of less, no percentage is told
_ROUNDING = 1e-6  # of a step: what rounded times leave


class Quantity(NamedTuple):
    name: str
    title: str
    unit: str
    of: Callable[[Times], float | None]


QUANTITIES = (
    Quantity("step_time", "step time", TIME, lambda times: times.span),
    Quantity("computation", "computation", TIME, lambda times: times.computation),
    Quantity("communication", "communication", TIME, lambda times: times.communication),
    Quantity("hidden", "  hidden", TIME, lambda times: times.hidden),
    Quantity("exposed", "  exposed", TIME, lambda times: times.exposed),
    Quantity("overlap_share", "overlap share", SHARE, lambda times: times.share),
    Quantity("idle", "idle", TIME, lambda times: times.idle),
    Quantity("slowdown", "slowdown", FACTOR, lambda times: times.slowdown),
)
METHOD = (
    "Welch's t over steps, which count as fewer the more each resembles the next (lag-1 autocorrelation); "
    f"{100 * CONFIDENCE:.0f} % for all {len(QUANTITIES)} quantities together (Bonferroni); a step of the job is the "
    "mean of its ranks"
)


# What --json has of each Change.
_TOLD = (
    "before", "after", "before_interval", "after_interval", "difference", "relative", "interval", "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Means over steps, in microseconds, shares (0 to 1) or factors; None where there is nothing to take one of."""

    before: float | None
    after: float | None
    before_interval: Interval | None
    after_interval: Interval | None
    interval: Interval | None  # of after - before
    comparable: bool = True
    step: float = 0.0  # of a time: how long a step was before, in microseconds
    simulated: bool = False  # then no verdict is given

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None or not self.comparable else self.after - self.before

    @property
    def relative(self) -> bool:
        """Whether there was enough before for a percentage of it to say something."""
        return self.before is not None and self.before > _TINY * self.step

    @property
    def verdict(self) -> str | None:
        """None where nothing can be said."""
        if self.simulated or self.interval is None or self.before is None or self.after is None:
            return None
        # Less than the nanosecond that traces are written with, in a step of a millisecond.
        rounding = _ROUNDING * max(abs(self.before), abs(self.after), self.step)
        if self.interval.holds(0) or abs(self.after - self.before) <= rounding:
            return "no difference seen"
        return "less" if self.interval.high < 0 else "more"


def change(
    before: Sequence[float],
    after: Sequence[float],
    comparable: bool = True,
    step: float = 0.0,
    simulated: bool = False,
) -> Change:
    together = len(QUANTITIES)
    return Change(
        statistics.fmean(before) if before else None,
        statistics.fmean(after) if after else None,
        intervals.of_mean(before, together),
        intervals.of_mean(after, together),
        intervals.of_difference(before, after, together) if comparable else None,
        comparable,
        step,
        simulated,
    )


@dataclass(frozen=True)
class Rank:
    name: str
    before: Sequence[Times]
    after: Sequence[Times]
    changes: Mapping[str, Change]  # by the name of the quantity


@dataclass(frozen=True)
class Compared:
    before: Side
    after: Side
    ranks: tuple[Rank, ...]
    total: Mapping[str, Change]
    steps: tuple[int | None, int | None]  # of the job, before and after; None: the trace has none
    sources: tuple[str | None, str | None]  # the ranges that steps were found by
    left_out: tuple[int, int]  # steps of a rank, before and after: the last of each of its files
    comparable: bool  # both are whole, and both have steps or neither
    warnings: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        return self.before.simulated  # and so is the other

    def as_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "kind": "traces",
            "simulated": self.simulated,
            "comparable": self.comparable,
            "confidence": CONFIDENCE,
            "method": METHOD,
            **{
                name: {
                    "path": side.path,
                    "kinds": list(side.kinds),
                    "simulated": side.simulated,
                    "ranks": len(side.ranks),
                    "steps": steps,
                    "steps_from": source,
                    "steps_left_out": left_out,
                    "gpus": sorted({one.gpu for rank in side.ranks.values() for one in rank if one.gpu}),
                }
                for name, side, steps, source, left_out in zip(
                    ("before", "after"), (self.before, self.after), self.steps, self.sources, self.left_out
                )
            },
            "total": _told(self.total),
            "ranks": [{"name": rank.name, "changes": _told(rank.changes)} for rank in self.ranks],
            "warnings": list(self.warnings),
        }

    def timeline(self) -> dict[str, Any]:
        """Return {"before": ..., "after": ...}: of one GPU the step of median length.

        Each is None or {"name", "step" (its number from 0, None without steps), "length_us", "lanes": [{"stream",
        "bars": [[start_us, end_us, kind, name], ...]}]}. kind: computation, communication or memory; times since the
        step began."""
        return {"before": _picture(self.before), "after": _picture(self.after)}


def compare(before: str, after: str) -> Compared:
    """Compare files, or folders of one file for each rank. Raises OverlapError."""
    sides = read_side(before), read_side(after)
    _refuse_mixtures(*sides)
    warnings = []
    if sides[0].by_rank != sides[1].by_rank:
        sides = sides[0].in_order(), sides[1].in_order()
        warnings.append("ranks were matched by the order of the files, because not all of them say whose they are")
    keys = _matched(*sides, warnings)
    several = any(key[1:] != (0, 0) for key in keys)
    sources = [_source([one for key in keys for one in side.ranks[key]]) for side in sides]
    torn = [side.path for side in sides if any(one.torn for key in keys for one in side.ranks[key])]
    comparable = not torn and (sources[0] is None) == (sources[1] is None)
    simulated = sides[0].simulated  # and so is the other
    ranks = tuple(
        _rank(_name(key, sides[0], several), sides[0].ranks[key], sides[1].ranks[key], comparable, simulated)
        for key in keys
    )
    jobs = [_job([getattr(rank, name) for rank in ranks]) for name in ("before", "after")]
    for path in torn:
        warnings.append(f"what is left of {path} may be of anything: no change is told")
    for side, source, job in zip(sides, sources, jobs):
        if source is None:
            warnings.append(f"no steps in {side.path}: the whole of it counts as one, and no interval can be told")
            continue
        drift = intervals.drift(job["step_time"])
        if drift:
            warnings.append(
                f"steps drift in {side.path}: {drift[0] / 1e3:.3f} ms in the first third, {drift[1] / 1e3:.3f} ms in "
                "the last: a mean depends on when it was taken; warm up for longer, and record more steps"
            )
    if not torn and not comparable:
        warnings.append("a step cannot be compared with a whole trace: no change is told")
    if None not in sources and sources[0] != sources[1]:
        warnings.append(f"a step is {sources[0]} before and {sources[1]} after: look whether they mean the same")
    kinds = {side.kinds for side in sides}
    if len(kinds) > 1:
        warnings.append("the two were recorded by different programs: what they cost the program differs too")
    return Compared(
        before=sides[0],
        after=sides[1],
        ranks=ranks,
        total=_changes(jobs[0], jobs[1], comparable, simulated),
        steps=(
            len(jobs[0]["step_time"]) if sources[0] else None,
            len(jobs[1]["step_time"]) if sources[1] else None,
        ),
        sources=(sources[0], sources[1]),
        left_out=(_left_out(sides[0].ranks[keys[0]]), _left_out(sides[1].ranks[keys[0]])),
        comparable=comparable,
        warnings=tuple(dict.fromkeys((*sides[0].warnings, *sides[1].warnings, *warnings))),
    )


def _refuse_mixtures(before: Side, after: Side) -> None:
    """Raise OverlapError where one was measured and the other never ran."""
    simulated = {kind == "simulated" for side in (before, after) for kind in side.kinds}
    if len(simulated) > 1:
        what = [f"{side.path} is {'simulated' if side.simulated else 'measured'}" for side in (before, after)]
        raise OverlapError(
            f"{', '.join(what)}: times of a simulated GPU and of a real one cannot be compared",
            "compare two traces of one kind",
            USAGE,
        )


def _matched(before: Side, after: Side, warnings: list[str]) -> list[tuple[int, int, int]]:
    keys = [key for key in before.ranks if key in after.ranks]
    if not keys:
        raise OverlapError(
            f"no rank is in both {before.path} and {after.path}",
            "compare traces of the same ranks: ranks are those in the files, or else the files' order",
        )
    for side, other in ((before, after), (after, before)):
        missing = [_name(key, side, False) for key in side.ranks if key not in other.ranks]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            warnings.append(f"only in {side.path}, and left out: {', '.join(missing[:3])}{more}")
    return keys


def _name(key: tuple[int, int, int], side: Side, several: bool) -> str:
    rank, process, device = key
    words = [f"rank {rank}" if side.by_rank else f"trace {rank}"]
    if several:
        words += [f"process {process}"] * (process > 0) + [f"GPU {device}"]
    return ", ".join(words)


def _rank(name: str, before: Sequence[Measured], after: Sequence[Measured], comparable: bool, simulated: bool) -> Rank:
    times = [[step for one in side for step in one.times] for side in (before, after)]
    values = [{quantity.name: _values(side, quantity) for quantity in QUANTITIES} for side in times]
    return Rank(
        name=name,
        before=times[0],
        after=times[1],
        changes=_changes(values[0], values[1], comparable, simulated),
    )


def _changes(
    before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], comparable: bool, simulated: bool
) -> dict[str, Change]:
    step = statistics.fmean(before["step_time"])
    return {
        name: change(before[name], after[name], comparable, step if unit == TIME else 0.0, simulated)
        for name, _, unit, _ in QUANTITIES
    }


def _left_out(rank: Sequence[Measured]) -> int:
    return sum(one.steps.last_is_left_out for one in rank if one.steps)


def _values(steps: Sequence[Times], quantity: Quantity) -> list[float]:
    return [value for value in map(quantity.of, steps) if value is not None]


def _job(ranks: Sequence[Sequence[Times]]) -> dict[str, list[float]]:
    """Of each quantity its values step by step: the mean over the ranks, as far as all of them go."""
    made: dict[str, list[float]] = {}
    for quantity in QUANTITIES:
        rows = (_values(step, quantity) for step in zip(*ranks))
        made[quantity.name] = [statistics.fmean(row) for row in rows if row]
    return made


def _source(ranks: Sequence[Measured]) -> str | None:
    """None where any of them has no steps."""
    found = [one.steps.source if one.steps else None for one in ranks]
    return None if None in found else found[0]


def _told(changes: Mapping[str, Change]) -> dict[str, dict[str, Any]]:
    return {name: {word: getattr(change, word) for word in _TOLD} for name, change in changes.items()}


def _picture(side: Side) -> dict[str, Any] | None:
    for key, ranks in side.ranks.items():
        for one in ranks:
            if one.picture:
                return {"name": _name(key, side, True), **one.picture}
    return None
