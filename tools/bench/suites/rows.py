"""All runs of a selection, and one row for each program, GPU, rule and policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass

from pyshim.demo.arms import change
from pyshim.policy.gpus import KnownGpu
from tools.bench.suites.arms import BARE, Bench, Outcome
from tools.bench.suites.programs import Program

LIMIT_PERCENT = 1.0  # what a default policy may lose


@dataclass(frozen=True)
class Row:
    """Virtual milliseconds of a step, once the first ones are over; changes against `plain`, negative is faster."""

    program: str
    step: str  # the program, in the words of programs.py
    gpu: str
    rule: str
    policy: str
    change_percent: float
    first_change_percent: float  # of the first steps alone
    shaped_share: float  # of the launches, 0 to 1
    ideal_share: float  # the ideal time over that under the policy: 1 is ideal
    policy_ms: float
    plain_ms: float
    priority_ms: float
    sequential_ms: float
    ideal_ms: float  # the larger of computation and communication alone
    priority_change_percent: float
    sequential_change_percent: float
    launches: int
    shaped: int
    raised: int
    reasons: dict[str, int]
    default: bool  # the policy is the default of this GPU
    simulated: bool = True

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """On one GPU: the policies to be tried there."""

    gpu: KnownGpu
    policies: tuple[str, ...]


@dataclass(frozen=True)
class Arms:
    """The runs without the library: under each rule only that with a priority."""

    bare: dict[str, Future[Outcome]]
    priority: dict[str, Future[Outcome]]
    policies: dict[tuple[str, str], Future[Outcome]]  # by policy and rule


def measure(
    bench: Bench, cases: Sequence[Case], rules: Sequence[str], programs: Sequence[Program], jobs: int
) -> list[Row]:
    for case in cases:
        bench.prepare(case.gpu)
        for policy in case.policies:  # here and not side by side: the first mistake is the one that is said
            for rule in rules:
                bench.settings(policy, case.gpu, rule)
    with ThreadPoolExecutor(jobs) as pool:
        started = [(case, program, _start(pool, bench, case, rules, program)) for case in cases for program in programs]
        try:
            return [row for case, program, arms in started for row in _rows(case, program, arms)]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _start(pool: ThreadPoolExecutor, bench: Bench, case: Case, rules: Sequence[str], program: Program) -> Arms:
    gpu = case.gpu
    return Arms(
        {arm: pool.submit(bench.bare, program, gpu, rules[0], arm) for arm in BARE},
        {rule: pool.submit(bench.bare, program, gpu, rule, "priority") for rule in rules},
        {
            (policy, rule): pool.submit(bench.under, policy, program, gpu, rule)
            for policy in case.policies
            for rule in rules
        },
    )


def _rows(case: Case, program: Program, arms: Arms) -> Iterable[Row]:
    bare = {arm: future.result() for arm, future in arms.bare.items()}
    plain = bare["plain"]
    ideal = max(bare["compute"].steady_ms, bare["communication"].steady_ms)
    for (policy, rule), future in arms.policies.items():
        found, priority = future.result(), arms.priority[rule].result()
        yield Row(
            program=program.name,
            step=program.step,
            gpu=case.gpu.key,
            rule=rule,
            policy=policy,
            change_percent=round(change(plain.steady_ms, found.steady_ms), 3),
            first_change_percent=round(change(plain.first_ms, found.first_ms), 3),
            shaped_share=round(found.shaped / found.launches, 4) if found.launches else 0.0,
            ideal_share=round(ideal / found.steady_ms, 4),
            policy_ms=round(found.steady_ms, 6),
            plain_ms=round(plain.steady_ms, 6),
            priority_ms=round(priority.steady_ms, 6),
            sequential_ms=round(bare["sequential"].steady_ms, 6),
            ideal_ms=round(ideal, 6),
            priority_change_percent=round(change(plain.steady_ms, priority.steady_ms), 3),
            sequential_change_percent=round(change(plain.steady_ms, bare["sequential"].steady_ms), 3),
            launches=found.launches,
            shaped=found.shaped,
            raised=found.raised,
            reasons=dict(found.reasons),
            default=policy == case.gpu.key,
        )


def harmed(rows: Iterable[Row]) -> list[Row]:
    """Where a default policy loses more than it may; the worst first."""
    found = [row for row in rows if row.default and row.change_percent > LIMIT_PERCENT]
    return sorted(found, key=lambda row: -row.change_percent)
