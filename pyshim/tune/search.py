"""The search: rounds in which bare, the best arm so far and every arm of a stage run once, stage after stage.

A stage tries arms on top of the best so far, sure or not. After each round, arms drop out that surely gain less than
--worth over the best so far, or over the leader of the stage. A stage ends when no arm is left, when the leader is
alone and surely faster, or when its share of --limit is over. The time that is left at the end goes to the arms of all
stages that are not decided.

The first run is bare's of the first round if bare's next run agrees with it; else that one is. A round in random order
is followed by one in the reverse order, so that a steady drift cancels out.

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
from itertools import zip_longest
from statistics import fmean, median
from typing import Any, NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.start.environment import unquote
from pyshim.start.folder import SEARCH
from pyshim.start.program import LAUNCHER_KINDS
from pyshim.tune import judge, measure, observed
from pyshim.tune.arms import BARE, Arm, Stage, TunedProgram, environment_of
from pyshim.tune.measure import Metric, TimedRun

INTERRUPTED, TIME = "interrupted", "the time is up"
AGREES = 0.01  # between bare's first two runs, as a logarithm: the first one counts
_TOO_LONG, _AT_LEAST = 5, 10.0  # times the best arm's time, and so many seconds more than it: an arm that hangs
_FIRST: judge.Round = (-1, 0)  # it warms caches, and shows that the program runs and what it prints
_BEGIN: judge.Round = (0, 0)  # the round in which the first run counts
_DIGITS = 16  # of a digest
_EQUAL = 0.0005  # a logarithm: a smaller change is 0.0 % in the table, where no arm may be called slower by it
_MARGIN = 1.05  # a run may take so much longer than the ones before
_SAYS_NOTHING = 1.0  # of an interval, as a logarithm: from -40 to +60 %, say, after two or three runs in all
_SHOWN = 80  # characters of what --same matches
_ROOM = 1 << 16  # bytes; a disk with less is full


class Setup(NamedTuple):
    """choose: returns the stages with these sets of variables, where the first run decides; then `stages` has none."""

    started: TunedProgram
    stages: Sequence[Stage]
    metric: Metric
    worth: float  # as a logarithm
    folder: str
    observe: bool = False  # the first run, under the policy of that name
    choose: Callable[[Sequence[str]], Sequence[Stage]] | None = None


class SearchResult(NamedTuple):
    """best: the best row of the table. kept: the best of those that are surely faster than bare; BARE for none."""

    best: Arm
    kept: Arm
    rows: list[ArmRow]
    noise: float | None
    runs: int
    stopped: str  # why the search ended before all arms were decided; empty: they are
    broken: bool  # a run that should have worked did not: nothing is known
    more: float  # seconds that one more round would take

    @property
    def is_compared(self) -> bool:
        """Whether any arm was compared with bare, or failed."""
        return not self.stopped or any(row.middle is not None or row.verdict.startswith("out") for row in self.rows[1:])

    def row(self, arm: Arm) -> ArmRow:
        return next(row for row in self.rows if row.arm == arm)


class ArmRow(NamedTuple):
    arm: Arm
    value: float | None  # of the metric: bare's, and of an arm bare's and the change
    middle: float | None  # change from bare, as a logarithm
    change: judge.Change | None  # with its interval; None while that is not known, or so wide that it says nothing
    runs: int
    verdict: str


class _Over(Exception):
    """The time is up, or a run that everything depends on failed."""


class Search:
    """tell: says what runs now, as a context manager. note: says a line. lines: what an earlier search wrote."""

    clock = staticmethod(time.monotonic)

    def __init__(
        self,
        setup: Setup,
        lines: Sequence[dict[str, Any]],
        tell: Callable[[str], Any],
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.setup, self.tell, self.note = setup, tell, note
        self.known = {(line["stage"], line["round"], line["arm"], line["copy"]): line for line in lines}
        self.number = len(lines)
        self.figures: dict[str, dict[judge.Round, list[float]]] = {BARE.name: {}}
        self.seconds: dict[str, list[float]] = {}
        self.arms = [BARE]
        self.verdicts: dict[str, str] = {}
        self.looks: dict[str, int] = {}
        self.stage_of: dict[str, int] = {}
        self.best = BARE  # so far: the next stage is tried on it
        self.first: float | None = None  # figure of the first run, until it is known whether it counts
        self.fit: judge.Fit | None = None  # to all figures; None: there are new ones
        self.stopped, self.broken = "", False
        self.fails_at_times = False  # a run failed that worked when it was repeated
        self.results, self.file, self.first_file = "", "", ""
        self.seen: observed.Seen | None = None  # in the first run
        self.watched = False  # the first run was, and worked
        self.names: dict[str, dict[str, str]] = {}  # of each arm: a policy that is edited meanwhile changes nothing
        self.number_of_arms = 1

    def go(self, limit: float) -> SearchResult:
        """Search for so many seconds. Raises OverlapError where nothing can be found out."""
        self.end = self.clock() + limit
        try:
            self._begin()
            stages = self._stages()
            self.number_of_arms = sum(len(stage.on(BARE)) for stage in stages)
            parts = [len(stage.on(BARE)) + (2 if number else 1) for number, stage in enumerate(stages)]
            for number, stage in enumerate(stages):
                share = (self.end - self.clock()) * parts[number] / sum(parts[number:])
                self._stage(number, stage.on(self.best), self.clock() + share)
            self._decide()
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
        except _Over as over:
            self.stopped = str(over)
        return self._result()

    def _begin(self) -> None:
        self.first = self._figure(_FIRST, BARE, 0)
        assert self.first is not None
        self.figures[BARE.name][_BEGIN] = [self.first]
        self.fit = None
        resumed = (*_FIRST, BARE.name, 0) in self.known
        if self.setup.observe and self.setup.metric.pattern is None and not resumed:
            self.note(observed.advice(self.seen, self.seconds[BARE.name][0], measure.text(self.file)))

    def _stages(self) -> Sequence[Stage]:
        if self.setup.choose is None:
            return self.setup.stages
        line = self.known.get((*_FIRST, BARE.name, 0))
        names = line["sets"] if line else self._sets()
        if names is None:
            sentence = "no process of the first run used a GPU where the library saw it, so no policy can change it"
            doctor = f"overlap doctor {shlex.join(self.setup.started.command)}"
            hint = f"`{doctor}` says why; --set or --arm compares all the same"
            raise OverlapError(sentence, hint)
        self.note(observed.chosen(names, self.seen))
        stages = self.setup.choose(names)
        self.setup = self.setup._replace(stages=stages)
        return stages

    def _sets(self) -> list[str] | None:
        """Return the sets of variables that fit what was seen; None: nothing that was started here uses a GPU."""
        if self.seen is not None:
            return self.seen.sets
        elsewhere = os.path.basename(self.setup.started.command[0]) in LAUNCHER_KINDS  # its ranks may be on other hosts
        return None if self.watched and not elsewhere else []

    # ---- one stage ----

    def _stage(self, number: int, arms: list[Arm], end: float) -> None:
        arms = [arm for arm in arms if arm.name not in self.figures]
        self.arms += arms
        self.figures |= {arm.name: {} for arm in arms}
        self.fit = None
        self.stage_of |= {arm.name: number for arm in arms}
        best = self.best
        went_on = any(key[0] > number for key in self.known)
        leader = self._rounds(number, arms, best, end, went_on)
        if leader is not None and self._leads(leader, best):
            if self._is_kept(leader, best):
                self._replace(best)
            self.best = leader

    def _decide(self) -> None:
        """Give the time that is left to the arms that are not decided: are they better than the best of those kept?"""
        left = self._undecided()
        kept = self._kept()
        rest = [arm for arm in left if arm is not kept]
        if not rest:
            return
        leader = self._rounds(len(self.setup.stages), rest, kept, self.end, False)
        rest = [arm for arm in rest if arm.name not in self.verdicts]
        if rest == [leader] and self._is_kept(rest[0], kept):
            self._replace(kept)
        elif rest:
            self.stopped = TIME

    def _replace(self, best: Arm) -> None:
        if best is not BARE:
            self.verdicts.setdefault(best.name, "kept until then")

    def _undecided(self) -> list[Arm]:
        return [arm for arm in self.arms if arm is not BARE and arm.name not in self.verdicts]

    def _rounds(self, number: int, arms: list[Arm], best: Arm, end: float, went_on: bool) -> Arm | None:
        """Compare arms with the best until it is decided, or the time is up. Return the leader of the arms left.

        went_on: an earlier search ended this stage for want of time, and has runs of later ones."""
        alive, order, rounds = list(arms), list[Arm](), 0
        self._recall()
        while alive:
            at = (number, rounds)
            order = self._order(alive, best, order if rounds % 2 else [])
            if went_on and not any(key[:2] == at for key in self.known):
                break
            if not self._fits(at, order, end):
                if rounds == 0 or number == len(self.setup.stages):
                    self._part_of_a_round(at, alive, best)
                break
            for arm in order:
                if at not in self.figures[arm.name] and arm.name not in self.verdicts:
                    self._one(at, arm)
            self._recall()
            rounds += 1
            alive = self._look([arm for arm in alive if arm.name not in self.verdicts], best, at)
            if len(alive) == 1 and self._is_kept(alive[0], best):
                break
        joined = [arm for arm in alive if self._joined(arm)]
        return min(joined, key=lambda arm: self._middle(arm, best), default=None)

    def _order(self, alive: list[Arm], best: Arm, before: Sequence[Arm]) -> list[Arm]:
        order = list(dict.fromkeys([*alive, best, BARE]))
        if before:
            return [arm for arm in reversed(before) if arm in order]
        random.shuffle(order)
        if self.first is not None:
            order.sort(key=lambda arm: arm is not BARE)  # it has run already
        return order

    def _part_of_a_round(self, at: judge.Round, alive: list[Arm], best: Arm) -> None:
        """Run what still fits: new arms in their order, or else the leaders, with what they are compared with.

        A run that would be alone in its round joins the last one in which bare ran."""
        order = [arm for arm in alive if not self.figures[arm.name]]
        if not order:
            order = sorted(filter(self._joined, alive), key=lambda arm: self._middle(arm, BARE))
        if at not in self.figures[BARE.name]:
            order.insert(1, BARE)
        fitting, now = [], self.clock()
        for arm in dict.fromkeys([*order, best]):
            if at in self.figures[arm.name]:
                continue
            now += self._expected(arm)
            if now > self.end:
                break
            fitting.append(arm)
        if len(fitting) == 1:
            at = max(self.figures[BARE.name])
        for arm in fitting:
            self._one(at, arm)

    def _recall(self) -> None:
        """Take the runs that joined a round later on, as the earlier search has them."""
        for at in sorted(self.figures[BARE.name]) if self.known else ():
            for arm in self.arms:
                while (*at, arm.name, self._copies(at, arm)) in self.known and arm.name not in self.verdicts:
                    self._one(at, arm)

    def _look(self, alive: list[Arm], best: Arm, at: judge.Round) -> list[Arm]:
        """Drop arms that surely gain too little. Return those that stay."""
        self._drop_far(alive, best, at)
        alive = [arm for arm in alive if arm.name not in self.verdicts]
        seen = [arm for arm in alive if len(self.figures[arm.name]) > 1]
        for arm in seen:
            self.looks[arm.name] = self.looks.get(arm.name, 0) + 1
        fit = self._fit()
        self._drop(fit, seen, best)
        left = [arm for arm in seen if arm.name not in self.verdicts]
        if left:
            leader = min(left, key=lambda arm: self._middle(arm, best))
            self._drop(fit, [arm for arm in left if arm is not leader], leader)
        return [arm for arm in alive if arm.name not in self.verdicts]

    def _drop(self, fit: judge.Fit, arms: Sequence[Arm], other: Arm) -> None:
        for arm in arms:
            change = fit.change(arm.name, other.name, self._level(arm))
            if change is not None and change.low > -self.setup.worth:
                self.verdicts[arm.name] = f"{'slower than' if change.low > _EQUAL else 'no gain over'} {other.name}"

    def _drop_far(self, alive: list[Arm], best: Arm, at: judge.Round) -> None:
        """Drop after a single run what is slower than another of its round by far more than any noise seen."""
        far = judge.FAR * max(math.sqrt(self._fit().variance), judge.FLOOR)
        counted = [arm for arm in {*alive, best, BARE} if arm is not BARE or self.first is None]
        here = {arm: fmean(self.figures[arm.name][at]) for arm in counted if at in self.figures[arm.name]}
        for arm in alive:
            if arm in here and len(self.figures[arm.name]) == 1:
                fastest = min(here, key=lambda one: here[one])
                if here[arm] - here[fastest] > far:
                    self.verdicts[arm.name] = f"slower than {fastest.name}"

    # ---- what is known ----

    def _fit(self) -> judge.Fit:
        if self.fit is None:
            self.fit = judge.Fit(self.figures)
        return self.fit

    def _level(self, arm: Arm) -> float:
        return judge.level(self.looks.get(arm.name, 1), self.number_of_arms)

    def _joined(self, arm: Arm) -> bool:
        """Return whether the arm can be compared with bare."""
        return self._fit().middle(arm.name, BARE.name) is not None

    def _middle(self, arm: Arm, other: Arm) -> float:
        middle = self._fit().middle(arm.name, other.name)
        return 0.0 if middle is None else middle

    def _is_kept(self, arm: Arm, other: Arm = BARE) -> bool:
        """Return whether an arm is surely faster, and by --worth or more so far."""
        if arm.name in self.verdicts or len(self.figures[arm.name]) < 2:
            return False
        change = self._fit().change(arm.name, other.name, self._level(arm))
        return change is not None and change.high < 0 and change.middle <= -self.setup.worth

    def _kept(self) -> Arm:
        """Return the best arm that is sure: of a stage the fastest, and of a later stage only what is surely faster.

        So what adds nothing is not kept because of noise."""
        kept = BARE
        for arm in sorted(self._undecided(), key=lambda arm: (self.stage_of[arm.name], self._middle(arm, BARE))):
            if self._is_kept(arm) and (kept is BARE or self._is_kept(arm, kept)):
                kept = arm
        return kept

    def _leads(self, arm: Arm, best: Arm) -> bool:
        """Return whether the next stage is tried on an arm: it gains --worth so far, and twice its standard error."""
        error = self._fit().error(arm.name, best.name)
        return error is not None and self._middle(arm, best) <= -max(self.setup.worth, 2 * error)

    # ---- time ----

    def _fits(self, at: judge.Round, order: Sequence[Arm], end: float) -> bool:
        """Return whether a round would end in time; what is known already takes none."""
        missing = [arm for arm in order if at not in self.figures[arm.name] and (*at, arm.name, 0) not in self.known]
        return not missing or self.clock() + sum(self._expected(arm) for arm in missing) <= end

    def _expected(self, arm: Arm) -> float:
        return _MARGIN * median(self.seconds.get(arm.name) or self.seconds[BARE.name])

    def _patience(self) -> tuple[float, bool]:
        """Return the seconds after which a run is ended, and whether that is because the time is up."""
        left = max(0.1, self.end - self.clock())
        best = min((median(times) for times in self.seconds.values()), default=math.inf)
        enough = max(_TOO_LONG * best, best + _AT_LEAST)
        return min(left, enough), left <= enough

    # ---- one run ----

    def _one(self, at: judge.Round, arm: Arm) -> None:
        """Run an arm once, or take its run from the earlier search."""
        if arm is BARE and self.first is not None:
            if not self._first_counts(at):
                self._one(at, arm)
            return
        figure = self._figure(at, arm, self._copies(at, arm))
        if figure is not None:
            self.figures[arm.name].setdefault(at, []).append(figure)
            self.fit = None

    def _copies(self, at: judge.Round, arm: Arm) -> int:
        return len(self.figures[arm.name].get(at, ()))

    def _first_counts(self, at: judge.Round) -> bool:
        """Run bare for the second time. If the first run agrees with it, both count, and this one is of `at`."""
        first, self.first = self.first, None
        assert first is not None
        try:
            figure = self._figure(_BEGIN, BARE, 0)
        except BaseException:
            self.first = first
            raise
        assert figure is not None
        counts = abs(figure - first) <= AGREES
        self.figures[BARE.name][_BEGIN] = [first if counts else figure]
        if counts:
            self.figures[BARE.name][at] = [figure]
        self.fit = None
        return counts

    def _figure(self, at: judge.Round, arm: Arm, copy: int) -> float | None:
        """Return the logarithm of a run's metric, less for better; None if the arm is out."""
        line = self.known.get((*at, arm.name, copy))
        run = self._again(line, arm) if line else self._repeated(at, arm, copy)
        if at == _FIRST:
            self.results = run.results
            self.first_file = self.file
            if not run.wrong:
                self._check_same(run)
        elif not run.wrong and run.results != self.results:
            if arm is BARE and not any(map(self._counted, self.arms)):
                raise self._two_results()
            if arm is not BARE and self.first is not None:
                self._check_bare(at)
            run = run._replace(wrong="prints other results (--same)")
        if line is None and not (run.wrong and self._needed(arm)):  # what ends a search is tried again
            self._keep(at, arm, copy, run)
        if run.wrong:
            self._failed(at, arm, run)
            return None
        assert run.value is not None
        self.seconds.setdefault(arm.name, []).append(run.seconds)
        return (-1 if self.setup.metric.higher else 1) * math.log(run.value)

    def _counted(self, arm: Arm) -> bool:
        return arm is not BARE and bool(self.figures[arm.name])

    def _check_same(self, run: TimedRun) -> None:
        """Raise OverlapError if --same matches nothing, or what every arm may change."""
        metric = self.setup.metric
        if metric.same is None:
            return
        if not run.results:
            raise OverlapError("the program as it is: nothing that it printed matches --same", self._hint(True))
        covered = metric.covered(measure.text(self.file))
        if covered:
            sentence = f'--same matches "{covered[:_SHOWN]}", with the number that --metric reads: every arm changes it'
            raise OverlapError(sentence, "name in --same only what must not change, such as a sum or an energy", USAGE)

    def _check_bare(self, at: judge.Round) -> None:
        """Run bare again before an arm is out for its results. Raise OverlapError if bare's own ones differ."""
        file = self.file
        self._first_counts((at[0], at[1] + 1))
        self.file = file

    def _two_results(self) -> OverlapError:
        """Return the error for a program whose own results differ from run to run."""
        both = [self.setup.metric.kept(measure.text(file)) for file in (self.first_file, self.file)]
        one, other = next((pair for pair in zip_longest(*both) if pair[0] != pair[1]), ("", ""))
        words = " and ".join(f'"{word[:_SHOWN]}"' if word is not None else "nothing" for word in (one, other))
        sentence = f"two runs of the program as it is print different results where --same matches: {words}"
        return OverlapError(sentence, "name in --same only what is the same in every run: no times, no names of files")

    def _repeated(self, at: judge.Round, arm: Arm, copy: int) -> TimedRun:
        """Run an arm, and once more if it fails: programs fail at times. An arm that has never worked may have to."""
        run = self._new(at, arm, copy)
        has_worked = bool(self.figures[arm.name]) or (self.first is not None and arm is BARE)
        if run.wrong and not run.late and (has_worked or self.fails_at_times):
            self.note(f"a run of {arm.name} failed ({run.wrong}), and is repeated: {self.file}")
            run = self._new(at, arm, copy)
            self.fails_at_times |= not run.wrong
        return run

    def _needed(self, arm: Arm) -> bool:
        return arm is BARE or arm is self.best

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
        what = "the first run" if at == _FIRST else f"round {at[1] + 1}"
        stage = f" of stage {at[0] + 1}" if len(self.setup.stages) > 1 and at != _FIRST else ""
        with self.tell(f"run {self.number}: {arm.name} ({what}{stage}{one}); ends within {left}"):
            try:
                run = self._observed(file, patience) if at == _FIRST and self.setup.observe else None
                self.watched = run is not None and not run.wrong
                if run is None or (run.wrong and not run.late):  # as it is, it may work
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

    def _observed(self, file: str, patience: float) -> TimedRun | None:
        """Run the program under `observe`, and keep what is seen. None: it cannot be observed."""
        report = os.path.join(self.setup.folder, "observed")
        try:
            environment = environment_of(Arm("observed", observed.OBSERVE), self.setup.started, report)
        except OverlapError:
            return None
        watcher = observed.Watcher(unquote(environment["OVERLAP_REPORT"]))
        try:
            return measure.run(self.setup.started.command, environment, file, patience, self.setup.metric)
        finally:
            self.seen = watcher.seen()

    def _keep(self, at: judge.Round, arm: Arm, copy: int, run: TimedRun) -> None:
        where: dict[str, Any] = {
            "stage": at[0],
            "round": at[1],
            "arm": arm.name,
            "copy": copy,
            "file": os.path.basename(self.file),
        }
        if at == _FIRST:
            where["sets"] = self._sets()
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
            hint = self._hint(wrong_output="--" in why)
            if why == measure.NO_MATCH:
                hint = f"{observed.offer(measure.text(self.file))} ({self.file})"
            raise OverlapError(f"the program as it is: {why}", hint)
        if self._needed(arm):
            self.broken = True
            which = "the program as it is" if arm is BARE else f"{arm.name}, the best so far,"
            raise _Over(f"{which} failed {'' if run.late else 'twice '}in a later run ({why}): {self.file}")
        self.verdicts[arm.name] = f"out: {why}"

    def _hint(self, wrong_output: bool = False) -> str:
        last = measure.last_line(self.file)
        said = f'it ended with "{last}"' if last else "it printed nothing"
        terminal = "" if wrong_output else "; its input is empty; script -qec PROGRAM /dev/null gives it a terminal"
        return f"{said}: {self.file}{terminal}"

    # ---- the answer ----

    def _result(self) -> SearchResult:
        """Return the table, its best row, and the best that is surely faster than bare."""
        left = [] if self.broken else [arm for arm in [BARE, *self._undecided()] if arm is BARE or self._joined(arm)]
        best = min(left, key=self._shown, default=BARE)  # of equals the first one, which sets least
        kept = BARE if self.broken else self._kept()
        if self._shown(best) >= self._shown(kept):
            best = kept
        if self.seconds and not self.broken and (self.stopped or not self._undecided()):
            more = sum(self._expected(arm) for arm in dict.fromkeys([BARE, kept, *self._undecided()]))
        else:
            more = 0.0
        verdicts = {arm.name: "not sure" for arm in self.arms[1:]}
        verdicts |= {BARE.name: "", best.name: "" if best is BARE else "best so far, not sure"}
        verdicts |= {kept.name: "" if kept is BARE else "kept"} | self.verdicts
        rows = [self._row(arm, verdicts[arm.name]) for arm in self.arms]
        noise = judge.noise(self.figures)
        return SearchResult(best, kept, rows, noise, self.number, self.stopped, self.broken, more)

    def _shown(self, arm: Arm) -> float:
        """Return an arm's change from bare as the table shows it, less for better."""
        sign = -1 if self.setup.metric.higher else 1
        return sign * round(100 * math.expm1(sign * self._middle(arm, BARE)), 1)

    def _row(self, arm: Arm, verdict: str) -> ArmRow:
        runs = [figure for found in self.figures[arm.name].values() for figure in found]
        bare = [figure for found in self.figures[BARE.name].values() for figure in found]
        if arm is not BARE and not self._joined(arm):
            return ArmRow(arm, None, None, None, len(runs), verdict)
        middle = self._middle(arm, BARE)
        value = math.exp((-1 if self.setup.metric.higher else 1) * (fmean(bare) + middle)) if bare else None
        if arm is BARE:
            return ArmRow(arm, value, None, None, len(runs), verdict)
        change = self._fit().change(arm.name, BARE.name, self._level(arm))
        if change is not None and change.high - change.low > _SAYS_NOTHING:
            change = None
        return ArmRow(arm, value, middle, change, len(runs), verdict)


def _full(folder: str) -> bool:
    with suppress(OSError):
        info = os.statvfs(folder)
        return info.f_bavail * info.f_frsize < _ROOM
    return False


def append(folder: str, line: dict[str, Any]) -> None:
    """Add a line to what --resume reads. Raises OverlapError, with what was there before left as it is."""
    path = os.path.join(folder, SEARCH)
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
