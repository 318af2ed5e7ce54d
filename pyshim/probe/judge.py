"""What the times of measure.py say about the block scheduler. Every unit is measured: nothing here is a time.

One trial says one thing, and an answer needs nearly all trials to say it: on a GPU that others use at the same time,
some will say something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pyshim.enums import KNOWN_DISPATCHES

HOLD, DRAIN, BACKFILL = KNOWN_DISPATCHES
IGNORED, UNCLEAR = "ignored", "unclear"
WORDS = (*KNOWN_DISPATCHES, IGNORED, UNCLEAR)

FEWEST = 10  # trials
SHARE = 0.9  # of them must agree
# In block times. The longest block of the grid takes 1.5: a high block that is let in waits no longer, and 0.6 where it
# was measured (H200, driver 580.159.04: tools/gpu/results/probe.json).
_SOON = 2.0
_LATE = 6.0  # no rule but backfill makes it wait so long
# What the grid loses, over what it would lose if nothing started anywhere while a high block waits: about 1 under hold
# (0.6 to 1.7 simulated, 1.2 to 1.4 on an H200, up to 3.4 beside two other processes, whose time slices lengthen the
# unit), 0 under drain (simulated; up to 0.3, the less the more multiprocessors there are).
_DRAINED, _HELD, _MOST = 0.35, 0.5, 4.0


class Trial(NamedTuple):
    """Microseconds; pairs: when launched, behind the start of the grid, and time until it had ended."""

    alone: float  # the grid by itself
    grid: float  # the grid with the others in it
    control: tuple[float, float]
    highs: Sequence[tuple[float, float]]


class Run(NamedTuple):
    trials: Sequence[Trial]
    waves: int  # of the grid
    high: float  # microseconds of a high block by itself
    multiprocessors: int


class Verdict(NamedTuple):
    rule: str | None  # None: cannot tell
    counts: dict[str, int]  # by WORDS: what trials said
    trials: int


def verdict(run: Run) -> Verdict:
    counts = Counter(_says(trial, run) for trial in run.trials)
    word, most = counts.most_common(1)[0] if counts else (UNCLEAR, 0)
    agreed = len(run.trials) >= FEWEST and most >= SHARE * len(run.trials) and word in (HOLD, DRAIN, BACKFILL)
    return Verdict(word if agreed else None, {name: counts[name] for name in WORDS}, len(run.trials))


def block_us(run: Run) -> float:
    """Return the microseconds of one block of the grid, median over the trials."""
    return sorted(trial.alone for trial in run.trials)[len(run.trials) // 2] / run.waves


def waits(trial: Trial, run: Run) -> list[float]:
    """Return the waits of high blocks, in block times."""
    return [max(0.0, took - run.high) * run.waves / trial.alone for _, took in trial.highs]


def _says(trial: Trial, run: Run) -> str:
    if not trial.highs or min(trial.alone, trial.grid) <= 0:
        return UNCLEAR
    block = trial.alone / run.waves
    waited = waits(trial, run)
    # A block no larger than one of the grid gets in as soon as one of those ends, if priority means anything.
    if trial.control[1] - run.high > _SOON * block:
        return IGNORED if _ran_out(trial.control, trial, run) else UNCLEAR
    if _ran_out(trial.highs[0], trial, run):
        return BACKFILL
    # The last ones may meet the end of the grid, and say nothing then.
    inside = [wait for wait, (since, took) in zip(waited, trial.highs) if since + took <= trial.grid]
    others = [since for since, took in trial.highs if since + took > trial.grid]
    early = any(since < trial.grid - 2 * _SOON * block for since in others)
    if len(inside) < 0.5 * len(waited) or max(inside) > _SOON or early:
        return UNCLEAR
    lost = (trial.grid - trial.alone) / block - len(inside) * run.high / block / run.multiprocessors
    part = lost / max(sum(map(held_back, inside)), 1e-9)
    if part <= _DRAINED:
        return DRAIN if part > -_HELD else UNCLEAR
    return HOLD if _HELD <= part <= _MOST else UNCLEAR


def _ran_out(launch: tuple[float, float], trial: Trial, run: Run) -> bool:
    """Return whether a block waited until the grid had started all others, but not for another program's blocks."""
    block = trial.alone / run.waves
    since, took = launch
    started = since + max(0.0, took - run.high)
    return started - since >= _LATE * block and abs(started - trial.grid) <= _SOON * block


def held_back(wait: float) -> float:
    """Return what a grid loses if no block of it starts for so long, in block times of the whole GPU.

    Blocks take 0.5 to 1.5, evenly, so t later a part of min(t, 0.5) + ... of them has ended; this is its integral."""
    even = min(wait, 0.5)
    rest = min(max(wait - 0.5, 0.0), 1.0)
    # Beyond 0.5 the rate at which blocks end falls from 1 to 0, in a straight line, until 1.5.
    return even * even / 2 + 0.5 * rest + rest * rest / 2 - rest**3 / 6 + max(wait - 1.5, 0.0)
