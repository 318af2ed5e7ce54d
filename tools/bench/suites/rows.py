"""All runs of a selection, and one row for each program, GPU, rule and policy."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyshim.demo.arms import change
from pyshim.policy.gpus import KnownGpu
from tools.bench.suites.arms import Bench, Outcome, built
from tools.bench.suites.programs import Program

LIMIT_PERCENT = 1.0  # what a default policy may lose
RULE = "hold"  # what an H200 does


@dataclass(frozen=True)
class Row:
    """Per cent of virtual time against `plain`, the program as written; negative is faster."""

    gpu: str
    rule: str
    policy: str
    program: str
    change: float  # of the steps behind the first ones
    first: float  # of the first steps, in which the library asks the driver about each kernel
    priority: float  # priority of communication alone, without the library
    launches: int = 0
    shaped: int = 0
    raised: int = 0

    @property
    def shape(self) -> str:
        """Of the program: several programs have one."""
        return self.program.partition("/")[0]

    @property
    def default(self) -> bool:
        """Whether the policy is the default of this GPU."""
        return self.policy == self.gpu


@dataclass(frozen=True)
class Case:
    """On one GPU: the policies to be tried there."""

    gpu: KnownGpu
    policies: tuple[str, ...]


Runs = dict[str, "Future[Outcome]"]


def measured(cases: Sequence[Case], rules: Sequence[str], programs: Sequence[Program], jobs: int) -> list[Row]:
    """Run all in a folder of their own. Raises OverlapError if a run fails, or nothing is built."""
    built()
    with tempfile.TemporaryDirectory(prefix="overlap-suite-") as folder:
        return measure(Bench(Path(folder), os.environ), cases, rules, programs, jobs)


def measure(
    bench: Bench, cases: Sequence[Case], rules: Sequence[str], programs: Sequence[Program], jobs: int
) -> list[Row]:
    for case in cases:
        bench.prepare(case.gpu)
        for policy in case.policies:  # here and not side by side: the first mistake is the one that is said
            for rule in rules:
                bench.settings(policy, case.gpu, rule)
    with ThreadPoolExecutor(jobs) as pool:
        plain = {  # one priority: no dispatch rule ever acts
            (case.gpu.key, program): pool.submit(bench.bare, program, case.gpu, rules[0], "plain")
            for case in cases
            for program in programs
        }
        started = [
            (case, rule, program, _start(pool, bench, case, rule, program))
            for case in cases
            for program in programs
            for rule in rules
        ]
        try:
            return [
                row
                for case, rule, program, runs in started
                for row in _rows(case.gpu.key, rule, program.name, plain[case.gpu.key, program].result(), runs)
            ]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _start(pool: ThreadPoolExecutor, bench: Bench, case: Case, rule: str, program: Program) -> Runs:
    runs = {policy: pool.submit(bench.under, policy, program, case.gpu, rule) for policy in case.policies}
    return {"": pool.submit(bench.bare, program, case.gpu, rule, "priority"), **runs}


def _rows(gpu: str, rule: str, program: str, plain: Outcome, runs: Runs) -> Iterable[Row]:
    priority = round(change(plain.steady_ms, runs.pop("").result().steady_ms), 3)
    for policy, future in runs.items():
        found = future.result()
        steady, first = change(plain.steady_ms, found.steady_ms), change(plain.first_ms, found.first_ms)
        counted = (found.launches, found.shaped, found.raised)
        yield Row(gpu, rule, policy, program, round(steady, 3), round(first, 3), priority, *counted)


def harmed(rows: Iterable[Row]) -> list[Row]:
    """Where a default policy loses more than it may; the worst first."""
    found = [row for row in rows if row.default and row.change > LIMIT_PERCENT]
    return sorted(found, key=lambda row: -row.change)
