"""The predictions that were declared for the stand-ins before they were run (tools/gpu/overlap/README.md), each held
against what was measured of them; what the other sets say is said behind it, and was declared for none of them.

A prediction about times has held where every change that is looked at is surely inside its limits, and has failed where
one is surely outside (P3: with its share of the cells): by sign tests, corrected over all arms and cells that are
looked at. Else nothing can be said, nor where the measurement is missing. Which cells and arms are looked at is decided
by their kernels and patterns, never by their results. P5 counts single runs, and P6 holds one number against another.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

from answers import comparing, intervals
from answers.comparing import Against, family, interval
from answers.markdown import percent
from answers.suite import PLAIN, PRIORITY, Cell, Suite

HELD, FAILED, OPEN = "held", "failed", "cannot be said"
NOTHING = "not measured"
UNCHANGED_PERCENT = 0.5  # P1
TWICE, TWICE_BESIDE = (1.8, 2.1), 24  # P2: times, blocks of communication
MOST_OF_THE_TIME = 0.9  # P2: communication that is there while the kernel runs
SHARE_OF_CELLS, BETTER_PERCENT = 0.9, 1.0  # P3
POINTS = 2.0  # P4
GAIN_PERCENT = 2.0  # P7
DECLARED_FOR = "overlap-standins"
LARGEST = 100  # per cent, of a carve-out
GEMM = re.compile(r"gemm|matmul|product|tiled|cutlass|cublas|triton|tensor\d", re.IGNORECASE)
PERSISTENT = re.compile(r"persistent|one wave", re.IGNORECASE)
# Levers that change when communication starts and nothing else, and let it be there first.
COMMUNICATION_FIRST = ("order", "order+priority")
STRETCHED = "order+priority"  # P2


@dataclass(frozen=True)
class Found:
    verdict: str
    numbers: str


@dataclass(frozen=True)
class Neighbours:
    """One run of tools/gpu/neighbours.cu: a block of communication beside a wave of n blocks of computation."""

    name: str
    fits: bool  # beside all n, by the library's arithmetic, which rounds warps up to the four parts of a multiprocessor
    sum_fits: bool  # registers, warps, shared memory and blocks, summed
    carveout: tuple[int, int]  # preferred, per cent, of computation and of communication; -1: the driver's choice
    shared: bool


@dataclass(frozen=True)
class Evidence:
    suites: Sequence[Suite] = ()  # measured ones
    rule: str | None = None  # what the GPU does while a block of high priority fits nowhere (U1)
    waits: tuple[float, float] | None = None  # us until the last block like NCCL's: in clusters of one, of four
    neighbours: Sequence[Neighbours] = ()

    def cells(self, wanted: Callable[[Suite, Cell], bool]) -> list[Cell]:
        return [cell for suite in self.suites for run in suite.runs for cell in run.cells if wanted(suite, cell)]


def words(suite: Suite, cell: Cell) -> str:
    """What is known of the kernel that computes."""
    found = suite.kernels.get(cell.computation, {})
    return " ".join(str(word) for word in (cell.computation, found.get("symbol", ""), found.get("what", "")))


def _kernel(suite: Suite, cell: Cell) -> Any:
    return suite.kernels.get(cell.computation, {})


def _nothing(what: str) -> Found:
    return Found(OPEN, f"{NOTHING}: {what}")


def _verdict(outside: bool, inside: bool) -> str:
    return FAILED if outside else HELD if inside else OPEN


def _worst(found: Iterable[comparing.Change]) -> str:
    change = max(found, key=lambda one: abs(one.median))
    return f"`{change.arm}` in {change.cell.name}, {interval(change)}"


def _few(found: Against) -> str:
    return f" ({comparing.TOO_FEW})" if found.too_few(1) else ""


def _too_few(rows: Sequence[Sequence[float]]) -> str:
    return f" ({comparing.TOO_FEW})" if intervals.too_few(max(map(len, rows)), len(rows), 1) else ""


def one_block_is_left_alone(evidence: Evidence) -> Found:
    cells = evidence.cells(lambda suite, cell: _kernel(suite, cell).get("resident_blocks") == 1)
    rows = [
        (cell, arm, cell.ratios(arm, base))
        for cell in cells
        if (base := comparing.raised(cell))
        for arm in comparing.shaping_policies(cell)
    ]
    found = family("shaping", rows, -UNCHANGED_PERCENT, UNCHANGED_PERCENT)
    if found is None:
        return _nothing("no cell has a kernel of one resident block and a policy that shapes")
    inside = sum(change.inside for change in found.changes)
    outside = sum(change.verdict != 0 for change in found.changes)
    numbers = (
        f"of {found.family} changes against priority alone {inside} are surely within ±{UNCHANGED_PERCENT:g} %, "
        f"{outside} surely outside{_few(found)}; the largest: {_worst(found.changes)}"
    )
    return Found(_verdict(outside > 0, inside == found.family), numbers)


def persistent_takes_twice(evidence: Evidence) -> Found:
    def persistent(suite: Suite, cell: Cell) -> bool:
        return cell.pattern == "one" and bool(PERSISTENT.search(words(suite, cell)))

    stretched = [(cell, cell.stretches(STRETCHED, "computation")) for cell in evidence.cells(persistent)]
    found = {f"{cell.name}, `{STRETCHED}`": own for cell, own in stretched if own and _stays(cell)}
    shorter = [f"{cell.name} {statistics.median(own):.2f}" for cell, own in stretched if own and not _stays(cell)]
    found |= {f"beside {TWICE_BESIDE} resident blocks, `{set_}`": ratios for set_, ratios in _resident(evidence)}
    if not found:
        return _nothing("no cell has a persistent kernel of one wave and communication that is there first, as long")
    rows = list(found.values())
    outside, inside = intervals.verdicts(rows, *TWICE), intervals.inside(rows, *TWICE)
    medians = "; ".join(f"{where}: {statistics.median(own):.2f} times" for where, own in found.items())
    numbers = (
        f"{sum(inside)} of {len(rows)} are surely within, {len(rows) - outside.count(0)} surely outside"
        f"{_too_few(rows)}: {medians}"
    )
    if shorter:
        numbers += f"; not counted, for communication ends before the kernel: {', '.join(shorter)}"
    return Found(_verdict(any(outside), all(inside)), numbers)


def _stays(cell: Cell) -> bool:
    """Is communication there while the kernel runs?"""
    parts = [cell.arms.get(part) for part in ("communication", "computation")]
    if parts[0] is None or parts[1] is None:
        return False
    return parts[0].median >= MOST_OF_THE_TIME * parts[1].median


def _resident(evidence: Evidence) -> Iterator[tuple[str, list[float]]]:
    """Of each set, a persistent kernel's times beside blocks that outlast it, over its times alone."""
    for suite in evidence.suites:
        times = {held.blocks: held.whole for run in suite.runs for held in run.held}
        if ratios := [beside / alone for beside, alone in zip(times.get(TWICE_BESIDE, ()), times.get(0, ()))]:
            yield suite.set, ratios


def shaping_adds_nothing_to_priority(evidence: Evidence) -> Found:
    def one_block(suite: Suite, cell: Cell) -> bool:
        """No size leaves it fewer blocks: nothing to choose from, so none is better."""
        unshaped = cell.primary and not comparing.shapes(cell, True)
        return unshaped and PRIORITY in cell.arms and _kernel(suite, cell).get("resident_blocks") == 1

    cells, fixed = evidence.cells(lambda suite, cell: cell.primary), len(evidence.cells(one_block))
    rows = [(cell, arm, cell.ratios(arm, PRIORITY)) for cell in cells for arm in comparing.shapes(cell, True)]
    found = family("shaping with priority", rows, -BETTER_PERCENT, inf)
    if found is None:
        return _nothing("no primary cell has an arm that shapes with priority, and priority alone")
    by_cell = _by_cell(found)
    every, surely = len(by_cell) + fixed, sum(any(one.verdict < 0 for one in own) for own in by_cell)
    none = fixed + sum(all(one.inside for one in own) for own in by_cell)
    better = sum(one.median < -BETTER_PERCENT for one, *_ in by_cell)
    numbers = (
        f"in {every} cells ({fixed} of one resident block, which has no sizes), {found.family} sizes: surely none is "
        f"more than {BETTER_PERCENT:g} % faster than priority "
        f"alone in {none}, surely one is in {surely}{_few(found)}; by the medians one is in {better} "
        f"({_by_set(evidence, by_cell)}); best {interval(found.best)} ({found.best.cell.name}, `{found.best.arm}`)"
    )
    if evidence.rule != "hold":
        return Found(OPEN, f"it is said of `hold`, and the rule was {evidence.rule or 'not measured'}; {numbers}")
    return Found(_verdict((every - surely) / every < SHARE_OF_CELLS, none / every >= SHARE_OF_CELLS), numbers)


def _by_cell(found: Against) -> list[list[comparing.Change]]:
    """The changes of each cell, from the best."""
    cells: dict[int, list[comparing.Change]] = {}
    for change in found.changes:
        cells.setdefault(id(change.cell), []).append(change)
    return list(cells.values())


def _by_set(evidence: Evidence, by_cell: Sequence[Sequence[comparing.Change]]) -> str:
    """In how many cells of each set the best is better, of how many."""
    parts = []
    for suite in evidence.suites:
        own = {id(cell) for run in suite.runs for cell in run.cells}
        best = [changes[0].median for changes in by_cell if id(changes[0].cell) in own]
        parts.append(f"{suite.set} {sum(median < -BETTER_PERCENT for median in best)} of {len(best)}")
    return ", ".join(parts)


def _any_shaping(cell: Cell) -> list[str]:
    return [*comparing.shapes(cell, False), *comparing.shapes(cell, True), *comparing.shaping_policies(cell)]


def order_is_as_good_as_shaping(evidence: Evidence) -> Found:
    """Inside: an arm of order is surely at most so far behind every shape; outside: every one is behind some shape."""
    found: list[tuple[Cell, str, str, list[float]]] = []
    for cell in evidence.cells(lambda suite, cell: cell.pattern == "pairs" and "sequential" in cell.arms):
        whole = cell.arms["sequential"].ms
        for order, shaped in product((arm for arm in COMMUNICATION_FIRST if arm in cell.arms), _any_shaping(cell)):
            times = zip(cell.arms[order].ms, cell.arms[shaped].ms, whole)
            found.append((cell, order, shaped, [100 * (one - other) / all_ for one, other, all_ in times]))
    if not found:
        return _nothing("no cell with pairs has order, shaping and the sequential arm")
    rows = [points for *_, points in found]
    behind = dict(zip(((id(cell), *arms) for cell, *arms, _ in found), intervals.verdicts(rows, -inf, POINTS)))
    near = dict(zip(behind, intervals.inside(rows, -inf, POINTS)))
    cells = {id(cell): cell for cell, *_ in found}
    orders = {key: [arm for arm in COMMUNICATION_FIRST if arm in cell.arms] for key, cell in cells.items()}

    def every(key: int, order: str, sides: dict[Any, Any]) -> list[Any]:
        return [sides[key, order, shaped] for shaped in _any_shaping(cells[key])]

    inside = sum(any(all(every(key, order, near)) for order in orders[key]) for key in cells)
    outside = sum(all(1 in every(key, order, behind) for order in orders[key]) for key in cells)
    fastest = [
        (statistics.median(points), cell, order, shaped)
        for cell, order, shaped, points in found
        if (order, shaped) == tuple(comparing.fastest(cell, arms) for arms in (COMMUNICATION_FIRST, _any_shaping(cell)))
    ]
    points, cell, order, shaped = max(fastest, key=lambda one: one[0])
    numbers = (
        f"in {len(cells)} cells, {len(rows)} pairs of arms: order is surely not behind any shaping by more than "
        f"{POINTS:g} points of the sequential time in {inside}, surely behind one in {outside}"
        f"{_too_few(rows)}; the fastest of either: most in {cell.name}, {points:+.1f} points "
        f"(`{order}` against `{shaped}`), median {statistics.median(one[0] for one in fastest):+.1f}"
    )
    return Found(_verdict(outside > 0, inside == len(cells)), numbers)


def sharing_is_arithmetic(evidence: Evidence) -> Found:
    if not evidence.neighbours:
        return _nothing("tools/gpu/neighbours.cu")
    against_it = [one for one in evidence.neighbours if one.shared and not one.sum_fits]
    careful = sum(one.shared and not one.fits for one in evidence.neighbours)
    room = [one for one in evidence.neighbours if one.fits]
    largest = [one for one in room if one.carveout[0] == LARGEST]
    numbers = (
        f"{sum(one.shared for one in evidence.neighbours)} of {len(evidence.neighbours)} runs shared a multiprocessor, "
        f"{len(against_it)} of them although the sum does not fit{f' ({against_it[0].name})' if against_it else ''}; "
        f"the library's arithmetic is more careful: it says no of {careful} that shared. Where it says yes, "
        f"{sum(one.shared for one in room)} of {len(room)} did, with the largest carve-out for computation "
        f"{sum(one.shared for one in largest)} of {len(largest)}"
    )
    return Found(FAILED if against_it else HELD, numbers)


def clusters_wait_longer(evidence: Evidence) -> Found:
    numbers = ""
    if evidence.waits:
        one, four = evidence.waits
        numbers = f"64 blocks like NCCL's are all placed after {one:.0f} us, in clusters of four after {four:.0f}"
    if evidence.rule != "backfill":
        why = f"it is said of `backfill`, and the rule was {evidence.rule or 'not measured'}"
        return Found(OPEN, "; ".join(filter(None, (why, numbers))))
    if not evidence.waits:
        return _nothing("tools/gpu/dispatch_rule.cu, clusters of one and of four")
    return Found(HELD if evidence.waits[1] > evidence.waits[0] else FAILED, numbers)


def shaping_alone_gains_nothing(evidence: Evidence) -> Found:
    cells = evidence.cells(lambda suite, cell: bool(GEMM.search(words(suite, cell))))
    rows = [(cell, arm, cell.ratios(arm, PLAIN)) for cell in cells for arm in comparing.shapes(cell, False)]
    found = family("shaping", rows, -GAIN_PERCENT, inf)
    if found is None:
        return _nothing("no cell of a GEMM has an arm that shapes without priority")
    none = sum(change.inside for change in found.changes)
    names = sorted({change.cell.computation for change in found.changes})
    numbers = (
        f"of {found.family} changes against plain ({', '.join(names)}) {none} surely gain no more than "
        f"{GAIN_PERCENT:g} %, {found.count(-1)} surely more{_few(found)}; best `{found.best.arm}` in "
        f"{found.best.cell.name}, {interval(found.best)}; worst {percent(found.worst.median)}"
    )
    return Found(_verdict(found.count(-1) > 0, none == found.family), numbers)


# As they were declared, of the stand-ins.
PREDICTIONS: dict[str, tuple[str, Callable[[Evidence], Found]]] = {
    "P1": (
        "kernels of one resident block (`warp-specialised`, `persistent`) are not changed by shaping: less than 0.5 %",
        one_block_is_left_alone,
    ),
    "P2": (
        "a persistent kernel of one wave takes 1.8 to 2.1 times as long with 24 resident blocks, whatever is scheduled "
        "how: `order+priority`",
        persistent_takes_twice,
    ),
    "P3": (
        "under `hold`, shaping with priority is no better than priority (by 1 %) in 90 % of the cells",
        shaping_adds_nothing_to_priority,
    ),
    "P4": ("in pairs, order is at most 2 points behind the best shaping", order_is_as_good_as_shaping),
    "P5": (
        "a block of NCCL's size shares a multiprocessor with n blocks only if their sum fits",
        sharing_is_arithmetic,
    ),
    "P6": ("under `backfill`, clusters of four enter later than single blocks", clusters_wait_longer),
    "P7": ("shaping without priority never gains more than 2 % for GEMMs", shaping_alone_gains_nothing),
}


OF_SUITES = (
    *(one_block_is_left_alone, persistent_takes_twice, shaping_adds_nothing_to_priority),
    *(order_is_as_good_as_shaping, shaping_alone_gains_nothing),
)


def answers(evidence: Evidence) -> Iterator[tuple[str, str, Found, Found | None]]:
    """Name, prediction, what the stand-ins say, and what the other sets say where they say anything."""
    declared = replace(evidence, suites=[suite for suite in evidence.suites if suite.set == DECLARED_FOR])
    others = Evidence([suite for suite in evidence.suites if suite.set != DECLARED_FOR], evidence.rule)
    for name, (prediction, function) in PREDICTIONS.items():
        other = function(others) if function in OF_SUITES and others.suites else None
        said = None if other is None or other.numbers.startswith(NOTHING) else other
        yield name, prediction, function(declared), said
