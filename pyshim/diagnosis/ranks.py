"""Ranks compared by the collectives that they share: how long each waited for others, and which is last to arrive.

A collective of several ranks is found in each of their traces by its group and number, where the traces tell these;
else by its name and its place among those of that name, if the ranks have equally many. The shortest is the transfer,
because the last rank to arrive waits for none; what the others take longer is waiting for ranks. This needs no
clock. Clocks of ranks may differ by any amount. They are aligned by the ends of shared collectives, which come at about
the same time; where those do not agree, collectives were not matched rightly, and the rank is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshim.diagnosis.exposed import CollectiveRun
from pyshim.diagnosis.intervals import median

NOISE_US = 10.0  # ranks that arrive within this time arrive together
_NOISE = 0.05  # or within this part of a collective
_AGREE = 0.25  # of the usual time from one collective to the next: so far apart its ends may be on two aligned clocks
_AGREE_US = 1000.0  # at least
_MOST = 0.8  # of the shared collectives agree on the clock
_NOT_OF_ALL = ("send and receive",)  # each pair of ranks does other work

Member = tuple[int, int]  # number of the process, device
Key = tuple[int, str, str, int]
Found = dict[Key, CollectiveRun]


class RankRow(NamedTuple):
    """One GPU of one rank. Times are of all that was recorded."""

    member: Member
    collectives: int  # that were found on other ranks as well
    waiting_us: float  # for ranks that came later
    last: int  # collectives at which it was the last to arrive
    caused_us: float  # that the others waited for it, on average of them
    offset_us: float  # of its clock against that of the first


@dataclass(frozen=True)
class Ranks:
    rows: tuple[RankRow, ...]
    transfer_us: Mapping[int, float]  # by the id of a collective that ran
    shared_us: float  # time of all shared collectives on all ranks
    waiting_us: float  # of it, waiting for ranks
    name: str  # of the collective that waits most
    unmatched: int  # ranks whose collectives could not be found on others
    groups: Sequence[set[int]]  # processes that share a collective

    @property
    def waiting(self) -> float:
        """The part of shared collectives that is waiting for ranks."""
        return self.waiting_us / self.shared_us if self.shared_us else 0.0

    def late(self) -> list[RankRow]:
        """Return the ranks that the others wait for: as few as cause two thirds of the waiting."""
        rows = sorted((row for row in self.rows if row.caused_us > 0), key=lambda row: -row.caused_us)
        left, found = 2 / 3 * sum(row.caused_us for row in rows), []
        for row in rows:
            if left <= 0:
                break
            found.append(row)
            left -= row.caused_us
        return found


def compare(members: Mapping[Member, Sequence[CollectiveRun]], recordings: Sequence[int]) -> Ranks | None:
    """Compare GPUs by what they communicated; None if they share nothing.

    recordings: of each process, the number of its recording: only those with equal numbers ran at the same time."""
    named = {member: _named(runs, recordings[member[0]]) for member, runs in members.items()}
    keys = Counter(key for found in named.values() for key in found)
    shared = {
        member: {key: run for key, run in found.items() if keys[key] > 1} for member, found in named.items() if found
    }
    clocks = _clocks({member: found for member, found in shared.items() if found})
    groups: defaultdict[Key, dict[Member, CollectiveRun]] = defaultdict(dict)
    for member in clocks:
        for key, run in shared[member].items():
            groups[key][member] = run
    groups = defaultdict(dict, {key: runs for key, runs in groups.items() if len(runs) > 1})
    if not groups:
        return None
    transfer: dict[int, float] = {}
    waiting: defaultdict[Member, float] = defaultdict(float)
    caused: defaultdict[Member, float] = defaultdict(float)
    by_name: defaultdict[str, float] = defaultdict(float)
    last: Counter[Member] = Counter()
    for runs in groups.values():
        shortest = min(runs, key=lambda member: runs[member].length_us)
        least = runs[shortest].length_us
        for member, run in runs.items():
            transfer[id(run)] = least
            waiting[member] += run.length_us - least
            by_name[run.name] += run.length_us - least
        others = sum(run.length_us - least for run in runs.values()) / (len(runs) - 1)
        if others > max(NOISE_US, _NOISE * least):
            last[shortest] += 1
            caused[shortest] += others
    counts = Counter(member for runs in groups.values() for member in runs)
    rows = (
        RankRow(member, counts[member], waiting[member], last[member], caused[member], clocks[member])
        for member in sorted(counts)
    )
    return Ranks(
        tuple(rows),
        transfer,
        sum(run.length_us for runs in groups.values() for run in runs.values()),
        sum(waiting.values()),
        max(by_name, key=lambda name: by_name[name]),
        len(members) - len(counts),
        [set(one) for one in {frozenset(member[0] for member in runs) for runs in groups.values()}],
    )


def _named(runs: Iterable[CollectiveRun], recording: int) -> Found:
    """Return the collectives of one GPU by what other ranks know them by."""
    found: Found = {}
    number: Counter[tuple[str, str]] = Counter()
    totals = Counter((run.name, run.group) for run in runs)
    for run in runs:
        if run.name in _NOT_OF_ALL:
            continue
        if run.sequence is not None:
            found[recording, run.name, run.group, run.sequence] = run
            continue
        # Ranks that have other numbers of them do not share these keys.
        kind = run.name, run.group
        number[kind] += 1
        found[recording, run.name, f"{run.group}, {totals[kind]} in all", number[kind]] = run
    return found


def _clocks(shared: Mapping[Member, Found]) -> dict[Member, float]:
    """Return how far each clock is ahead of that of the first GPU it can be compared with, over others if need be."""
    clocks: dict[Member, float] = {}
    for first in shared:
        if first in clocks:
            continue
        reached = _reach(first, shared, clocks)
        if len(reached) > 1:
            clocks.update(reached)
    return clocks


def _reach(first: Member, shared: Mapping[Member, Found], known: Mapping[Member, float]) -> dict[Member, float]:
    reached, todo = {first: 0.0}, [first]
    while todo:
        one = todo.pop()
        for other, found in shared.items():
            if other in reached or other in known:
                continue
            ahead = _ahead(shared[one], found)
            if ahead is not None:
                reached[other] = reached[one] + ahead
                todo.append(other)
    return reached


def _ahead(one: Found, other: Found) -> float | None:
    """Return how far the clock of the other one is ahead; None where shared collectives do not end together."""
    pairs = [(run, other[key]) for key, run in one.items() if key in other]
    if not pairs:
        return None
    differences = [theirs.end_us - ours.end_us for ours, theirs in pairs]
    middle = median(differences)
    near = max(_AGREE_US, _AGREE * _usual_distance(ours for ours, _ in pairs))
    agree = sum(abs(difference - middle) <= near for difference in differences)
    return middle if agree >= _MOST * len(pairs) else None


def _usual_distance(runs: Iterator[CollectiveRun]) -> float:
    ends = sorted(run.end_us for run in runs)
    return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else 0.0
