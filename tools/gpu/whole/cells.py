"""Rows of measure.py, put together by cell: changes against bare with intervals, what is possible, what is wrong.

A change is the median over rounds of an arm's time against that of `bare` in the same round. Intervals are of 90 %, by
resampling starts, and rounds of each. `possible` is the change that the longer of computation and communication alone
would be. Where these take longer alone, as where the host waits more often then, a change may be greater.
"""

from __future__ import annotations

import functools
import itertools
import random
import statistics
from collections.abc import Sequence
from typing import Any

from tools.gpu.whole.programs import cells

BARE = "bare"
RESAMPLED = 1000


def times(row: dict[str, Any]) -> list[float | None]:
    """Of each turn."""
    return [statistics.median(batches) if batches else None for batches in row["ms"]]


def interval(found: Sequence[float]) -> list[float]:
    """Of the 5th to the 95th percentile."""
    ordered = sorted(found)
    return [ordered[int(part * (len(ordered) - 1))] for part in (0.05, 0.95)]


@functools.cache
def resampled(lengths: tuple[int, ...]) -> list[list[int]]:
    """Places of rounds, RESAMPLED times: starts are drawn, then rounds of each, as those of one process are alike."""
    mixed, ends = random.Random(1), list(itertools.accumulate(lengths))
    found = []
    for _ in range(RESAMPLED):
        drawn = mixed.choices(range(len(lengths)), k=len(lengths))
        found.append([mixed.randrange(ends[at] - lengths[at], ends[at]) for at in drawn for _ in range(lengths[at])])
    return found


def change(bare: Sequence[Sequence[float | None]], other: Sequence[Sequence[float | None]]) -> list[float] | None:
    """Median and interval. bare, other: times by start and round; a start that one lacks is left out."""
    starts = []
    for before, after in zip(bare, other):
        pairs = [mine / theirs - 1 for theirs, mine in zip(before, after) if theirs and mine]
        if pairs:
            starts.append(pairs)
    if not starts:
        return None
    every = list(itertools.chain.from_iterable(starts))
    medians = [statistics.median(every[at] for at in places) for places in resampled(tuple(map(len, starts)))]
    return [round(value, 4) for value in (statistics.median(every), *interval(medians))]


def put_together(made: dict[str, Any]) -> list[dict[str, Any]]:
    """One for each cell that was measured, in the order of programs.py. made: a file of measure.py."""
    of: dict[tuple[str, int, int], dict[str, dict[int, dict[str, Any]]]] = {}
    for row in made["rows"]:
        of.setdefault((row["program"], row["n"], row["bits"]), {}).setdefault(row["arm"], {})[row["start"]] = row
    found = []
    for known in cells():
        arms = of.get((known.program, known.n, known.bits))
        if arms:
            one = {"program": known.program, "n": known.n, "bits": known.bits, "waits": known.waits}
            found.append({**one, **cell(arms)})
    return found


def cell(arms: dict[str, dict[int, dict[str, Any]]]) -> dict[str, Any]:
    all_starts = sorted(arms[BARE])
    made: dict[str, Any] = {"wrong": [], "starts": len(all_starts)}
    made["raised"], made["launches"] = by_default(arms)
    rows = [row for starts in arms.values() for row in starts.values()]
    failed = [row["arm"] for row in rows if row.get("broken") and not row.get("cut")]  # cut: the time was over
    if failed:
        made["wrong"].append(f"a process failed: {', '.join(failed)}")
    digests = {row["digest"] for row in rows if row.get("digest")}
    if len(digests) > 1:
        made["wrong"].append(f"digests differ: {sorted(digests)}")
    bare = [times(arms[BARE][start]) for start in all_starts]
    every = [ms for start in bare for ms in start if ms]
    if not every:
        return made
    made["ms"] = round(statistics.median(every), 5)
    made["rounds"] = len(every)
    made["noise"] = round(statistics.median(abs(ms / made["ms"] - 1) for ms in every), 4)
    others = {
        arm: [times(starts[start]) if start in starts else [] for start in all_starts] for arm, starts in arms.items()
    }
    made["change"] = {arm: change(bare, other) for arm, other in others.items() if arm != BARE}
    first = arms[BARE][all_starts[0]]
    alone = {part: statistics.median(first[part]) for part in ("computation", "communication") if first.get(part)}
    made.update({f"{part}_ms": round(ms, 5) for part, ms in alone.items()})
    if len(alone) == 2:
        made["possible"] = round(min(0.0, max(alone.values()) / made["ms"] - 1), 4)
    return made


def by_default(arms: dict[str, dict[int, dict[str, Any]]]) -> tuple[str, str]:
    """Under the default, a start each: launches on raised streams, and all: "6000 6010", "8000 8010"."""
    totals = [row.get("totals") or {} for _, row in sorted(arms.get("default", {}).items())]
    raised, launches = (" ".join(str(one.get(key, "")) for one in totals) for key in ("raised", "launches"))
    return raised, launches
