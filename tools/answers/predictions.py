"""The predictions that facts made before the suite was run, each held against what was measured.

A prediction has held, has failed, or nothing can be said: where the measurement is missing, or the 95 % intervals
(corrected over the cells that are looked at) allow both. Which cells and arms are looked at is decided by their kernels
and patterns, never by their results.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from answers import comparing
from answers.comparing import Against, against, interval
from answers.intervals import FEWEST, bootstrap, verdicts
from answers.markdown import percent
from answers.suite import PLAIN, PRIORITY, Cell, Suite

HELD, FAILED, OPEN = "held", "failed", "cannot be said"
UNCHANGED_PERCENT = 0.5  # P1
TWICE, TWICE_BESIDE = (1.8, 2.1), 24  # P2: times, blocks of communication
MOST_OF_THE_TIME = 0.9  # P2: communication that is there while the kernel runs
SHARE_OF_CELLS, BETTER_PERCENT = 0.9, 1.0  # P3
POINTS = 2.0  # P4
GAIN_PERCENT = 2.0  # P7
LARGEST = 100  # per cent, of a carve-out
GEMM = re.compile(r"gemm|matmul|product|tiled|cutlass|cublas|triton|tensor\d", re.IGNORECASE)
PERSISTENT = re.compile(r"persistent|one wave", re.IGNORECASE)
# Levers that change when communication starts and nothing else, and let it be there first.
COMMUNICATION_FIRST = ("order", "order+priority")


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
    return Found(OPEN, f"not measured: {what}")


def _worst(found: Iterable[comparing.Change]) -> str:
    change = max(found, key=lambda one: abs(one.median))
    return f"`{change.arm}` in {change.cell.name}, {interval(change)}"


def one_block_is_left_alone(evidence: Evidence) -> Found:
    cells = evidence.cells(lambda suite, cell: _kernel(suite, cell).get("resident_blocks") == 1)
    arms = sorted({arm for cell in cells for arm in comparing.shaping_policies(cell)})
    limits = (-UNCHANGED_PERCENT, UNCHANGED_PERCENT)
    found = [one for arm in arms if (one := against(cells, arm, comparing.raised, *limits)) is not None]
    changes = [change for one in found for change in one.changes]
    if not changes:
        return _nothing("no cell has a kernel of one resident block and a policy that shapes")
    outside = sum(abs(change.median) >= UNCHANGED_PERCENT for change in changes)
    surely = sum(one.count(-1) + one.count(1) for one in found)
    numbers = (
        f"{len(changes) - outside} of {len(changes)} changes against priority alone are within "
        f"±{UNCHANGED_PERCENT:g} %, {surely} surely outside; the largest: {_worst(changes)}"
    )
    return Found(FAILED if surely else OPEN if outside else HELD, numbers)


def persistent_takes_twice(evidence: Evidence) -> Found:
    def wanted(suite: Suite, cell: Cell) -> bool:
        parts = [cell.arms.get(part) for part in ("communication", "computation")]
        if not PERSISTENT.search(words(suite, cell)) or parts[0] is None or parts[1] is None:
            return False
        return parts[0].median >= MOST_OF_THE_TIME * parts[1].median and cell.pattern == "one"

    found = {
        (cell.name, arm): stretch
        for cell in evidence.cells(wanted)
        for arm in COMMUNICATION_FIRST
        if (stretch := cell.stretch(arm, "computation")) is not None
    }
    found |= {(f"beside {TWICE_BESIDE} resident blocks", run_of): factor for run_of, factor in _resident(evidence)}
    if not found:
        return _nothing("no cell has a persistent kernel of one wave and communication that is there first, as long")
    least, most = TWICE
    inside = [key for key, stretch in found.items() if least <= stretch <= most]
    numbers = "; ".join(f"{cell}, `{arm}`: {stretch:.2f} times" for (cell, arm), stretch in found.items())
    return Found(HELD if len(inside) == len(found) else FAILED, numbers)


def _resident(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """Of each set, a persistent kernel's time beside blocks that outlast it, over its time alone."""
    for suite in evidence.suites:
        times = {held.blocks: held.whole for run in suite.runs for held in run.held}
        alone, beside = times.get(0), times.get(TWICE_BESIDE)
        if alone and beside:
            yield suite.set, beside / alone


def _shaping(cell: Cell) -> str | None:
    """The fastest size with priority; of policies only where the cell has no arms that set a size."""
    return comparing.fastest(cell, comparing.shapes(cell, True) or comparing.shaping_policies(cell))


def _without(cell: Cell) -> str | None:
    return PRIORITY if comparing.shapes(cell, True) else comparing.raised(cell)


def shaping_adds_nothing_to_priority(evidence: Evidence) -> Found:
    cells = evidence.cells(lambda suite, cell: cell.primary)
    found = against(cells, "best shape + priority", _without, -BETTER_PERCENT, float("inf"), pick=_shaping)
    if found is None:
        return _nothing("no primary cell has an arm that shapes with priority, and priority alone")
    surely, every = found.count(-1), len(found.changes)
    better = sum(change.median < -BETTER_PERCENT for change in found.changes)
    numbers = (
        f"the fastest size with priority is more than {BETTER_PERCENT:g} % faster than priority alone in {better} of "
        f"{every} cells, surely in {surely}; best {interval(found.best)} ({found.best.cell.name}, `{found.best.arm}`), "
        f"median {percent(found.median)}; {_by_set(evidence, found)}"
    )
    if evidence.rule != "hold":
        return Found(OPEN, f"it is said of `hold`, and the rule was {evidence.rule or 'not measured'}; {numbers}")
    few, surely_many = (every - better) / every >= SHARE_OF_CELLS, (every - surely) / every < SHARE_OF_CELLS
    return Found(HELD if few else FAILED if surely_many else OPEN, numbers)


def _by_set(evidence: Evidence, found: Against) -> str:
    """How many changes of each set are better, of how many."""
    parts = []
    for suite in evidence.suites:
        names = {cell.name for run in suite.runs for cell in run.cells}
        own = [change for change in found.changes if change.cell.name in names]
        parts.append(f"{suite.set} {sum(change.median < -BETTER_PERCENT for change in own)} of {len(own)}")
    return ", ".join(parts)


def _any_shaping(cell: Cell) -> str | None:
    arms = (*comparing.shapes(cell, False), *comparing.shapes(cell, True), *comparing.shaping_policies(cell))
    return comparing.fastest(cell, arms)


def order_is_as_good_as_shaping(evidence: Evidence) -> Found:
    rows: list[tuple[Cell, str, str, list[float]]] = []
    for cell in evidence.cells(lambda suite, cell: cell.pattern == "pairs"):
        order, shaped = comparing.fastest(cell, COMMUNICATION_FIRST), _any_shaping(cell)
        if order and shaped and "sequential" in cell.arms:
            times = zip(*(cell.arms[arm].ms for arm in (order, shaped, "sequential")))
            points = [100 * (one - other) / whole for one, other, whole in times]
            if len(points) >= FEWEST:
                rows.append((cell, order, shaped, points))
    if not rows:
        return _nothing("no cell with pairs has order, shaping and the sequential arm")
    found = bootstrap([points for *_, points in rows])
    surely = sum(side == 1 for side in verdicts(found, -float("inf"), POINTS))
    behind = [float(median) for median in found.medians]
    worst = max(range(len(rows)), key=lambda row: behind[row])
    over = sum(points > POINTS for points in behind)
    numbers = (
        f"order is behind the best shaping by more than {POINTS:g} points of the sequential time in {over} of "
        f"{len(rows)} cells, surely in {surely}; most in {rows[worst][0].name}: {behind[worst]:+.1f} points "
        f"(`{rows[worst][1]}` against `{rows[worst][2]}`); median {statistics.median(behind):+.1f}"
    )
    return Found(FAILED if surely else OPEN if over else HELD, numbers)


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
    arms = sorted({arm for cell in cells for arm in comparing.shapes(cell, False)})
    found: list[Against] = [
        one for arm in arms if (one := against(cells, arm, PLAIN, -GAIN_PERCENT, float("inf"))) is not None
    ]
    changes = [change for one in found for change in one.changes]
    if not changes:
        return _nothing("no cell of a GEMM has an arm that shapes without priority")
    gains = sum(change.median < -GAIN_PERCENT for change in changes)
    surely = sum(one.count(-1) for one in found)
    best = min(changes, key=lambda change: change.median)
    names = sorted({change.cell.computation for change in changes})
    numbers = (
        f"of {len(changes)} changes against plain ({', '.join(names)}) {gains} gain more than {GAIN_PERCENT:g} %, "
        f"{surely} surely; best `{best.arm}` in {best.cell.name}, {interval(best)}; worst "
        f"{percent(max(change.median for change in changes))}"
    )
    return Found(FAILED if surely else OPEN if gains else HELD, numbers)


# In the words of facts, written before.
PREDICTIONS: dict[str, tuple[str, Callable[[Evidence], Found]]] = {
    "P1": ("kernels of one resident block are unchanged by shaping (less than 0.5 %)", one_block_is_left_alone),
    "P2": (
        "a persistent GEMM of one wave takes 1.8 to 2.1 times with communication resident, whatever only schedules",
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


def answers(evidence: Evidence) -> Iterator[tuple[str, str, Found]]:
    for name, (prediction, function) in PREDICTIONS.items():
        yield name, prediction, function(evidence)
