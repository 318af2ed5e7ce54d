"""What the library said about each launch, beside what is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.windows.conservative import explain
from tests.windows.interpreter import Answer, Interpreter, Outcome
from tests.windows.operations import Program, describe, is_communication, line_of
from tests.windows.things import bits
from tests.windows.waiting import Waiting


@dataclass
class Counts:
    programs: int = 0
    launches: int = 0  # of computation
    communication: int = 0
    claims: int = 0  # said to be in a window
    wrong: int = 0
    exact: int = 0
    unexplained: int = 0
    critical: int = 0  # said to be on a stream that somebody waits for
    not_critical: int = 0  # ...and wrong
    conservative: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def as_json(self) -> dict[str, object]:
        return {**vars(self), "conservative": dict(sorted(self.conservative.items()))}


def model_of(program: Program, results: Sequence[int]) -> Waiting:
    model = Waiting()
    for op, result in zip(program, results):
        model.apply(op, result)
    return model


def compare(program: Program, outcome: Outcome, counts: Counts) -> list[str]:
    """What is wrong, in words; nothing if the library is right."""
    model = model_of(program, outcome.results)
    named = {answer.sequence: at for at, answer in outcome.answers.items() if is_communication(program[at])}
    counts.programs += 1
    counts.communication += sum(op.kind in "cC" for op in program)
    found = []
    closure = model.closure()
    for launch in model.launches:
        answer = outcome.answers[launch.operation]
        possible = model.possible(launch, closure)
        inside = answer.overlapping and answer.reason != "window_expired"
        counts.launches += 1
        if answer.reason == "critical":
            found += critical_claim(model.why_not[launch.operation], launch.operation, answer, counts)
            continue
        counts.claims += inside
        words = None
        if inside:
            words = wrong_claim(program, model, answer, possible, named)
            counts.wrong += words is not None
        elif possible:
            case = explain(model, launch, possible)
            counts.conservative[case or "unexplained"] += 1
            counts.unexplained += case is None
            if case is None:
                others = sorted({model.nodes[node].operation for node in bits(possible)})
                words = f"outside ({answer.reason}), can overlap operations {others}, and no case says so"
        counts.exact += words is None and inside == (possible != 0)
        if words is None and answer.shaped != inside:
            words = f"overlapping is {inside}, shaped is {answer.shaped}: {answer.reason}"
        if words:
            found.append(f"operation {launch.operation}: {words}")
    return found


def critical_claim(doubt: str | None, operation: int, answer: Answer, counts: Counts) -> list[str]:
    counts.critical += 1
    counts.not_critical += doubt is not None
    if not doubt and not answer.shaped:
        return []
    return [f"operation {operation}: said to be on a critical stream, but {doubt or 'shaped'}"]


def wrong_claim(program: Program, model: Waiting, answer: Answer, possible: int, named: dict[int, int]) -> str | None:
    if not possible:
        return "said to be in a window, but everything is ordered"
    if answer.could_overlap is None:
        # The launch of a graph has no number.
        of_graph = any(program[model.nodes[node].operation].kind == "g" for node in bits(possible))
        return None if of_graph else "in a window, but no communication is named"
    at = named.get(answer.could_overlap)
    if at is None:
        return f"said to overlap launch {answer.could_overlap}, which is no communication of this program"
    if not any(model.nodes[node].operation == at for node in bits(possible)):
        return f"said to overlap operation {at}, which is ordered"
    return None


def check(interpreter: Interpreter, programs: Sequence[Program], counts: Counts) -> list[tuple[Program, list[str]]]:
    """Those on which the library is wrong."""
    failed = []
    for program, outcome in zip(programs, interpreter.run(programs)):
        found = compare(program, outcome, counts)
        if found:
            failed.append((program, found))
    return failed


def story(program: Program, found: Sequence[str]) -> str:
    return "\n".join([*found, line_of(program), describe(program)])
