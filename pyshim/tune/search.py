"""The search: rounds in which every arm runs once, and the best arm so far twice, in random order, stage after stage.

A stage compares arms with the best one so far (bare, at first). After each round from the third on, arms that surely
gain less than --worth drop out, against the best so far and against the leader of the stage. A stage ends when no arm
is left, when the leader is alone and surely faster, or when its share of --limit is over. Bare runs in every round.

Every run is a line of DIR/tune.jsonl before the next one starts. --resume makes the same decisions from these lines,
and runs what is missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.tune import judge, measure
from pyshim.tune.arms import BARE, Arm, Stage, TunedProgram, environment_of
from pyshim.tune.measure import Metric, TimedRun

FILE = "tune.jsonl"
INTERRUPTED, TIME = "interrupted", "the time is up"
_TOO_LONG, _AT_LEAST = 5, 10.0  # times the best arm's time, and so many seconds more than it: an arm that hangs
_FIRST: judge.Round = (-1, 0)  # not counted: it warms caches, and shows that the program runs and what it prints
_DIGITS = 16  # of a digest
_ROOM = 1 << 16  # bytes; a disk with less is full


class Setup(NamedTuple):
    started: TunedProgram
    stages: Sequence[Stage]
    metric: Metric
    worth: float  # as a logarithm
    folder: str


class SearchResult(NamedTuple):
    best: Arm
    change: judge.Change | None  # of the best against bare
    rows: list[ArmRow]
    noise: float | None
    runs: int
    stopped: str  # why the search ended early; empty: it is sure
    broken: bool  # a run that should have worked did not: nothing is known


class ArmRow(NamedTuple):
    arm: Arm
    median: float | None
    change: judge.Change | None
    runs: int
    verdict: str


class _Over(Exception):
    """The time is up, or a run that everything depends on failed."""


class Search:
    """tell: says what runs now, as a context manager. lines: what an earlier search wrote."""

    clock = staticmethod(time.monotonic)

    def __init__(self, setup: Setup, lines: Sequence[dict[str, Any]], tell: Callable[[str], Any]) -> None:
        self.setup, self.tell = setup, tell
        self.known = {(line["stage"], line["round"], line["arm"], line["copy"]): line for line in lines}
        self.number = len(lines)
        self.figures: dict[str, dict[judge.Round, list[float]]] = {BARE.name: {}}
        self.values: dict[str, list[float]] = {}
        self.seconds: dict[str, list[float]] = {}
        self.arms = [BARE]
        self.verdicts: dict[str, str] = {}
        self.looks: dict[str, int] = {}
        self.stopped, self.broken = "", False
        self.results, self.file, self.best = "", "", BARE
        self.names: dict[str, dict[str, str]] = {}  # of each arm: a policy that is edited meanwhile changes nothing
        self.number_of_arms = sum(len(stage.on(BARE)) for stage in setup.stages)

    def go(self, limit: float) -> SearchResult:
        """Search for so many seconds. Raises OverlapError where nothing can be found out."""
        self.end = self.clock() + limit
        try:
            self._one(_FIRST, BARE)
            parts = [len(stage.on(BARE)) + (3 if number else 2) for number, stage in enumerate(self.setup.stages)]
            self._check_limit(sum(parts), limit)
            for number, stage in enumerate(self.setup.stages):
                share = (self.end - self.clock()) * parts[number] / sum(parts[number:])
                self._stage(number, stage.on(self.best), self.best, self.clock() + share)
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
        except _Over as over:
            self.stopped = str(over)
        return self._result(BARE if self.broken else self.best)

    # ---- one stage ----

    def _stage(self, number: int, arms: list[Arm], best: Arm, end: float) -> None:
        arms = [arm for arm in arms if arm.name not in self.figures]
        self.arms += arms
        self.figures |= {arm.name: {} for arm in arms}
        alive, kept, rounds = list(arms), best, 0
        try:
            while alive:
                if not self._fits(number, rounds, alive, best, end):
                    self.stopped = TIME
                    break
                self._round((number, rounds), alive, best)
                rounds += 1
                alive = [arm for arm in alive if arm.name not in self.verdicts]
                kept = best
                if rounds >= judge.ROUNDS:
                    alive, kept = self._look(alive, best, rounds - judge.ROUNDS + 1)
                    if len(alive) == 1 and kept is alive[0]:
                        break
        finally:
            if kept is not best and kept.name not in self.verdicts:
                self.verdicts |= {best.name: "kept until then", kept.name: "kept"}
                self.best = kept
            for arm in arms:
                self.verdicts.setdefault(arm.name, "not sure")

    def _round(self, at: judge.Round, alive: list[Arm], best: Arm) -> None:
        order = self._order(alive, best)
        random.shuffle(order)
        for arm in order:
            self._one(at, arm)

    def _order(self, alive: list[Arm], best: Arm) -> list[Arm]:
        return [best, best, *alive, *([BARE] if best is not BARE else [])]

    def _look(self, alive: list[Arm], best: Arm, look: int) -> tuple[list[Arm], Arm]:
        """Drop arms that surely gain too little. Return those that stay, and which to keep if the search ended now."""
        chance, worth = judge.level(look, self.number_of_arms), self.setup.worth
        found = {}
        for arm in alive:
            self.looks[arm.name] = look
            change = judge.change(self.figures, arm.name, best.name, chance)
            if change is not None:
                found[arm.name] = change
        left = [arm for arm in alive if arm.name in found]
        for arm in list(left):
            if found[arm.name].low > -worth:
                self.verdicts[arm.name] = _less(found[arm.name], best)
                left.remove(arm)
        if not left:
            return left, best
        leader = min(left, key=lambda arm: found[arm.name].middle)
        for arm in left:
            change = None if arm is leader else judge.change(self.figures, arm.name, leader.name, chance)
            if change is not None and change.low > -worth:
                self.verdicts[arm.name] = _less(change, leader)
        return [arm for arm in left if arm.name not in self.verdicts], leader if found[leader.name].high < 0 else best

    # ---- time ----

    def _fits(self, number: int, rounds: int, alive: list[Arm], best: Arm, end: float) -> bool:
        """Return whether a round, or the first three, would end in time; what is known already takes none."""
        known = {key[2] for key in self.known if key[:2] == (number, rounds)}
        missing = [arm for arm in self._order(alive, best) if arm.name not in known]
        times = judge.ROUNDS if rounds == 0 and not known else 1
        return self.clock() + times * sum(self._expected(arm) for arm in missing) <= end

    def _expected(self, arm: Arm) -> float:
        return median(self.seconds.get(arm.name) or self.seconds[BARE.name])

    def _check_limit(self, runs: int, limit: float) -> None:
        """Raise OverlapError if the search cannot end in time. runs: of a round of each stage."""
        one = self.seconds[BARE.name][0]
        need = one * (1 + runs * judge.ROUNDS)
        if need > limit and not any(key[0] == 0 for key in self.known):
            hint = f"--limit {math.ceil(1.5 * need / 60)}m, fewer arms, or fewer steps of the program"
            rounds = f"{judge.ROUNDS} rounds of {runs} runs"
            sentence = f"a run takes {duration(one)}, so {rounds} do not fit into --limit {duration(limit)}"
            raise OverlapError(sentence, hint)

    def _patience(self) -> tuple[float, bool]:
        """Return the seconds after which a run is ended, and whether that is because the time is up."""
        left = max(0.1, self.end - self.clock())
        best = min((median(times) for times in self.seconds.values()), default=math.inf)
        enough = max(_TOO_LONG * best, best + _AT_LEAST)
        return min(left, enough), left <= enough

    # ---- one run ----

    def _one(self, at: judge.Round, arm: Arm) -> None:
        copy = len(self.figures[arm.name].get(at, ()))
        line = self.known.get((*at, arm.name, copy))
        run = self._again(line, arm) if line else self._new(at, arm, copy)
        if at == _FIRST:
            self.results = run.results
            if self.setup.metric.same is not None and not run.wrong and not run.results:
                run = run._replace(wrong="nothing that it printed matches --same")
        elif not run.wrong and run.results != self.results:
            run = run._replace(wrong="prints other results (--same)")
        if line is None and not (run.wrong and arm in (BARE, self.best)):  # what ends a search is tried again
            self._keep(at, arm, copy, run)
        if run.wrong:
            self._failed(at, arm, run)
            return
        assert run.value is not None
        self.seconds.setdefault(arm.name, []).append(run.seconds)
        if at != _FIRST:
            sign = -1 if self.setup.metric.higher else 1
            self.figures[arm.name].setdefault(at, []).append(sign * math.log(run.value))
            self.values.setdefault(arm.name, []).append(run.value)

    def _environment(self, arm: Arm) -> dict[str, str]:
        if arm.name not in self.names:
            self.names[arm.name] = environment_of(arm, self.setup.started)
        return self.names[arm.name]

    def _choice(self, arm: Arm) -> str:
        """Return a digest of what the arm sets, its policy included."""
        changed = sorted(self._environment(arm).items() - self.setup.started.base.items())
        return hashlib.sha256(json.dumps(changed).encode()).hexdigest()[:_DIGITS]

    def _new(self, at: judge.Round, arm: Arm, copy: int) -> TimedRun:
        patience, last = self._patience()
        self.number += 1
        name = f"{self.number:03d}-{re.sub(r'[^A-Za-z0-9._=-]+', '_', arm.name)[:80]}.txt"
        self.file = file = os.path.join(self.setup.folder, name)
        environment = self._environment(arm)
        left = duration(self.end - self.clock())
        one = f", about {duration(self._expected(arm))}" if self.seconds else ""
        what = "the first run, which is not counted" if at == _FIRST else f"round {at[1] + 1}"
        stage = f" of stage {at[0] + 1}" if len(self.setup.stages) > 1 and at != _FIRST else ""
        with self.tell(f"run {self.number}: {arm.name} ({what}{stage}{one}); ends within {left}"):
            try:
                run = measure.run(self.setup.started.command, environment, file, patience, self.setup.metric)
            except OverlapError as error:  # the program, or room for its output, is there no longer
                error.hint = again(self.setup.folder)
                raise
        if run.late and last:
            if at == _FIRST:
                hint = f"--limit 2h, or fewer steps of the program; {self._hint()}"
                raise OverlapError("a run takes longer than --limit", hint)
            raise _Over(TIME)
        if run.wrong and _full(self.setup.folder):
            raise OverlapError(f"the disk of {self.setup.folder} is full", again(self.setup.folder))
        return run

    def _keep(self, at: judge.Round, arm: Arm, copy: int, run: TimedRun) -> None:
        where = {"stage": at[0], "round": at[1], "arm": arm.name, "copy": copy, "file": os.path.basename(self.file)}
        append(self.setup.folder, {**where, "choice": self._choice(arm), **run._asdict()})

    def _again(self, line: dict[str, Any], arm: Arm) -> TimedRun:
        if line["choice"] != self._choice(arm):
            sentence = f"{arm.name} is no longer what it was: its policy, its variables or overlap-run changed"
            raise OverlapError(sentence, "change it back, or begin anew without --resume", USAGE)
        self.file = os.path.join(self.setup.folder, line["file"])
        return TimedRun(*(line[name] for name in TimedRun._fields))

    def _failed(self, at: judge.Round, arm: Arm, run: TimedRun) -> None:
        why = f"took longer than {_TOO_LONG} times the best" if run.late else run.wrong
        if at == _FIRST:
            raise OverlapError(f"the program as it is: {why}", self._hint(wrong_output="--" in why))
        if arm in (BARE, self.best):
            self.broken = True
            which = "the program as it is" if arm is BARE else f"{arm.name}, the best so far,"
            raise _Over(f"{which} failed in a later run ({why}): {self.file}")
        self.verdicts[arm.name] = f"out: {why}"

    def _hint(self, wrong_output: bool = False) -> str:
        last = measure.last_line(self.file)
        said = f'it ended with "{last}"' if last else "it printed nothing"
        terminal = "" if wrong_output else "; its input is empty; script -qec PROGRAM /dev/null gives it a terminal"
        return f"{said}: {self.file}{terminal}"

    # ---- the answer ----

    def _result(self, best: Arm) -> SearchResult:
        rows = []
        for arm in dict.fromkeys(self.arms):
            values = self.values.get(arm.name, [])
            verdict = "" if arm is BARE else self.verdicts.get(arm.name, "")
            rows.append(ArmRow(arm, median(values) if values else None, self._against_bare(arm), len(values), verdict))
        kept = self._against_bare(best)
        return SearchResult(best, kept, rows, judge.noise(self.figures), self.number, self.stopped, self.broken)

    def _against_bare(self, arm: Arm) -> judge.Change | None:
        if arm is BARE or arm.name not in self.figures:
            return None
        chance = judge.level(self.looks.get(arm.name, 1), self.number_of_arms)
        return judge.change(self.figures, arm.name, BARE.name, chance)


def _less(change: judge.Change, other: Arm) -> str:
    return f"{'slower than' if change.low > 0 else 'no gain over'} {other.name}"


def _full(folder: str) -> bool:
    with suppress(OSError):
        info = os.statvfs(folder)
        return info.f_bavail * info.f_frsize < _ROOM
    return False


def append(folder: str, line: dict[str, Any]) -> None:
    """Add a line to what --resume reads. Raises OverlapError, with what was there before left as it is."""
    path = os.path.join(folder, FILE)
    try:
        with open(path, "ab") as file:
            size = file.tell()
            try:
                file.write((json.dumps(line) + "\n").encode())
                file.flush()
            except OSError:
                file.truncate(size)
                raise
    except OSError as error:
        raise OverlapError(f"{path} cannot be written: {error.strerror}", again(folder)) from error


def again(folder: str) -> str:
    return f"nothing is lost: overlap tune --resume {shlex.quote(folder)} goes on"


def duration(seconds: float) -> str:
    """Return 0.4 s, 12 s, 7 min, 2 h 5 min."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
