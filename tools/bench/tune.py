"""How often is the answer of `overlap tune` right, and after how many runs? Simulated: its search, with made-up times.

    python -m tools.bench.tune [--searches 1000] [--write]

A search has the time of 90 bare runs, and --worth 0.5 %. A run takes 1, times the arm's effect, times noise. The noise
is normal (its deviation in per cent); `drift`: 0.3 %, and 0.2 % more from run to run; `bimodal`: 0.2 %, and 4 % more in
three runs of ten; `scatter`: 0.2 % without changes, 2 % in arms; `cold`, `fresh`: 0.5 %, and the first run 5 % slower,
faster; `cool`: 0.2 %, and the first run 0.8 % slower.

right: the fastest arm is kept, or it is sure that none is better; wrong: an arm is kept that is not faster, or it is
sure that none is better although one is. The rest is not sure when the time is up. --write writes
docs/data/tune-simulated.csv.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

from pyshim.tune.arms import BARE, Arm, Stage, TunedProgram
from pyshim.tune.measure import Metric, TimedRun
from pyshim.tune.search import Search, Setup

OUT = Path(__file__).resolve().parents[2] / "docs" / "data" / "tune-simulated.csv"
WORTH, LIMIT = 0.005, 90
# Of the only arm, or of several.
EFFECTS: tuple[tuple[float, ...], ...] = (
    (-30,), (-20,), (-11,), (-10,), (-3,), (-1,), (0,), (5,), (0, 0, 0), (0, 0, -10), (-3, 0, -10),
)  # fmt: skip
HEADS = ("noise", "effects", "searches", "right", "wrong", "runs")
Noise = Callable[[random.Random, int, bool], float]  # number of the run, from 1; whether it is an arm's


def normal(percent: float) -> Noise:
    return lambda dice, run, arm: dice.gauss(0, percent / 100)


NOISES: dict[str, Noise] = {
    "0.2 %": normal(0.2),
    "1 %": normal(1),
    "3 %": normal(3),
    "drift": lambda dice, run, arm: dice.gauss(0, 0.003) + 0.002 * run,
    "bimodal": lambda dice, run, arm: dice.gauss(0, 0.002) + (0.04 if dice.random() < 0.3 else 0),
    "scatter": lambda dice, run, arm: dice.gauss(0, 0.02 if arm else 0.002),
    "cold": lambda dice, run, arm: dice.gauss(0, 0.005) + (0.05 if run == 1 else 0),
    "cool": lambda dice, run, arm: dice.gauss(0, 0.002) + (0.008 if run == 1 else 0),
    "fresh": lambda dice, run, arm: dice.gauss(0, 0.005) - (0.05 if run == 1 else 0),
}


class Simulated(Search):
    def __init__(self, effects: Sequence[float], noise: Noise, dice: random.Random) -> None:
        arms = tuple(Arm(f"X={effect}-{number}") for number, effect in enumerate(effects))
        self.effects = {BARE.name: 0.0, **{arm.name: effect for arm, effect in zip(arms, effects)}}
        self.noise, self.dice, self.now = noise, dice, 0.0
        setup = Setup(TunedProgram((), {}), [Stage(arms)], Metric(), math.log1p(WORTH), "")
        super().__init__(setup, (), lambda _: nullcontext())
        self.clock = lambda: self.now

    def _new(self, at: Any, arm: Arm, copy: int) -> TimedRun:
        self.number += 1
        seconds = (1 + self.effects[arm.name] / 100) * math.exp(self.noise(self.dice, self.number, arm is not BARE))
        self.now += seconds
        return TimedRun(seconds, seconds)

    def _keep(self, at: Any, arm: Arm, copy: int, run: TimedRun) -> None:
        pass


class Row(NamedTuple):
    noise: str
    effects: str
    searches: int
    right: float  # per cent
    wrong: float
    runs: float  # median


def simulate(effects: Sequence[float], noise: str, searches: int, seed: int = 1) -> Row:
    dice = random.Random(f"{seed} {noise} {effects}")
    random.seed(f"{seed} {noise} {effects}")  # the order within rounds
    right = wrong = 0
    runs = []
    best = min(effects)
    for _ in range(searches):
        search = Simulated(effects, NOISES[noise], dice)
        result = search.go(LIMIT)
        runs.append(result.runs)
        kept = None if result.kept is BARE else search.effects[result.kept.name]
        if kept is None:
            right += best >= 0 and not result.stopped
            wrong += best < -100 * WORTH and not result.stopped
        else:
            right += kept == best < 0
            wrong += kept >= 0
    shown = " ".join(f"{effect:+g}" if effect else "0" for effect in effects)
    return Row(noise, shown, searches, 100 * right / searches, 100 * wrong / searches, statistics.median(runs))


def _cell(cell: tuple[Sequence[float], str, int]) -> Row:
    return simulate(*cell)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cells = [(effects, noise, options.searches) for noise in NOISES for effects in EFFECTS]
    rows = []
    with Pool(len(os.sched_getaffinity(0))) as pool:
        for row in pool.imap(_cell, cells):
            rows.append(row)
            print(*row, sep="\t", flush=True)
    if options.write:
        with OUT.open("w", encoding="ascii", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADS)
            writer.writerows((*row[:3], *(f"{figure:.1f}" for figure in row[3:5]), f"{row.runs:.0f}") for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
