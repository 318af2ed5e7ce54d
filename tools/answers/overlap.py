"""docs/overlap.md: what the overlap suite found on a GPU, and where the simulated GPU agrees.

A set that nobody has measured is left out whole, and the page says which command measures it. No number of the page is
written here: all come from tools/gpu/results.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from answers import comparing, facts, overlap_model, overlap_pictures, overlap_tables, overlap_words, predictions, suite
from answers.comparing import BOUND_PERCENT, Against, against, interval
from answers.default_losses import OBSERVE
from answers.intervals import FEWEST, RESAMPLES
from answers.markdown import bullets, listed, page, paragraph, percent, table
from answers.suite import DEFAULT, PLAIN, PRIORITY, SIMULATED, Run, Suite

PICTURES = Path("docs/pictures")
DECLARED = "tools/gpu/overlap/README.md"
SEQUENTIAL = "sequential"
MEASURED = {
    "overlap-standins": "Stand-ins",
    "overlap-libraries": "Libraries and NCCL",
    "overlap-two-gpus": "Two GPUs",
}
COMMANDS = {name: f"tools/gpu/run {name}" for name in MEASURED}
COMMANDS[SIMULATED] = ".venv/bin/python tools/gpu/overlap/standins.py run --simulate h200 --out overlap-simulated.json"
MOST_SHOWN = 8


@dataclass(frozen=True)
class Set:
    """A measured file; it has one run."""

    name: str
    suite: Suite

    @property
    def title(self) -> str:
        return MEASURED[self.name]

    @property
    def run(self) -> Run:
        return self.suite.runs[0]

    @property
    def picture(self) -> str:
        return self.name.partition("-")[2]


def files(root: Path) -> dict[str, str]:
    found = {name: suite.read(root, name) for name in (*MEASURED, SIMULATED)}
    sets = [Set(name, one) for name in MEASURED if (one := found[name]) is not None]
    simulated = found[SIMULATED]
    missing = [name for name, one in found.items() if one is None]
    evidence = predictions.Evidence(
        [one.suite for one in sets], facts.rule(root), facts.waits(root), facts.neighbours(root)
    )
    pictures: dict[str, str] = {}
    parts = list(_parts(sets, simulated, evidence, pictures, (root / DECLARED).exists()))
    head: dict[str, str | Sequence[str]] = {
        "Question": (
            "Beside real computation on a real GPU: how much of the ideal overlap does a program get as it is, what do "
            "priority, order, smaller communication and fewer resident blocks change, and does the default policy "
            "ever cost anything?"
        ),
        "Answer": list(_answer(sets, simulated)) or "Not measured yet.",
        "From": _from(sets, simulated, missing),
        "Anew": "The commands above, then `.venv/bin/python tools/answers --write overlap`. CI compares this page.",
    }
    text = page("Overlap, measured", "overlap", head, parts)
    return {"docs/overlap.md": text, **{str(PICTURES / name): drawn for name, drawn in pictures.items()}}


def _from(sets: Sequence[Set], simulated: Suite | None, missing: Sequence[str]) -> str:
    every = [(one.title, one.suite) for one in sets]
    every += [("Simulated", simulated)] if simulated else []
    said = [
        f"{title}: {one.words} ([{one.file}](../{suite.FOLDER}/{one.file}), `{COMMANDS[one.set]}`)."
        for title, one in every
        if one.set in COMMANDS
    ]
    left_out = [f"`{name}` (`{COMMANDS[name]}` measures it)" for name in missing]
    return " ".join(said + ([f"Left out, for nobody has measured it: {listed(left_out)}."] if left_out else []))


# ---- The answer ----


def _answer(sets: Sequence[Set], simulated: Suite | None) -> Iterator[str]:
    said = [
        line
        for one in sets
        for line in (*overlap_words.gains(one.title, one.run), *overlap_words.losses(one.title, one.run))
    ]
    agreements = overlap_model.agreements([one.suite for one in sets], simulated) if simulated is not None else []
    if said:
        yield "Change of T of the primary cells against plain streams; negative is faster:"
        yield from said
    if said and agreements:
        yield overlap_model.sentence(agreements)


def _short(sets: Sequence[Set]) -> Iterator[str]:
    """The number of the paper is one of the last column."""
    yield paragraph(
        "Medians of the primary cells, and the best cell against one after the other: a number of the kind that the "
        "paper has (up to 25.5 % less time; its baseline not known to us)."
    )
    rows = []
    for one in sets:
        shaped = [cell for cell in one.run.primary if overlap_words.best_raised(cell)]
        same = [("priority, in the cells of shapes", PRIORITY, None)] if len(shaped) < len(one.run.primary) else []
        for words, arm, choice in (("plain streams", PLAIN, None), *overlap_words.COMPARED, *same):
            cells = shaped if (words, arm, choice) in same else one.run.primary
            found = against(cells, arm, SEQUENTIAL, choice)
            shares = [overlap_tables.share_of(cell, arm) for cell in cells]
            known = [share for share in shares if share is not None]
            if found is not None and known:
                middle = f"{round(statistics.median(known))} %"
                best_of = f"{percent(found.best.median)} ({found.best.cell.name})"
                rows.append((one.title, words, str(len(found.changes)), middle, percent(found.median), best_of))
    heads = ("set", "arm", "cells", "share of the ideal", "against one after the other", "best cell")
    yield table(heads, rows, left=2)


# ---- The parts ----


def _parts(
    sets: Sequence[Set],
    simulated: Suite | None,
    evidence: predictions.Evidence,
    pictures: dict[str, str],
    declared: bool,
) -> Iterator[str]:
    if sets:
        yield "## In short"
        yield from _short(sets)
        yield "## How to read it"
        yield bullets(_method())
        yield overlap_tables.meanings(one.run for one in sets)
        yield "## Arms"
        for one in sets:
            yield from _arms(one, pictures)
        yield "## The default policy, and its bound"
        yield from _outcome(sets)
        yield "## Cells"
        for one in sets:
            yield from _cells(one)
        if any(one.run.curves or one.run.alone for one in sets):
            yield "## Sensitivity to shared memory"
            for one in sets:
                yield from _sensitivity(one, pictures)
        for one in sets:
            if one.run.held:
                yield f"## {one.title}: a kernel of one wave beside communication that is there first"
                yield "Its time over that without communication:"
                yield overlap_tables.held(one.run)
    yield "## Predictions made before"
    yield from _predictions(evidence, declared)
    agreements = overlap_model.agreements([one.suite for one in sets], simulated) if simulated is not None else []
    if agreements:
        yield "## Model and machine"
        yield from overlap_model.parts(agreements, pictures)
    if sets:
        yield "## What follows"
        yield bullets(
            [*_pivot(evidence.rule), *(line for one in sets for line in overlap_words.follows(one.title, one.run))]
        )
        yield "## What was not measured, and results"
        yield bullets(line for one in sets for line in _rest(one))


def _method() -> list[str]:
    return [
        "A cell is a kernel that computes, one that communicates, how long the second takes against the first "
        "(0.5: half), and a pattern. Arms of a cell take turns in random order; sample i of all arms is of the same "
        "turn, so they are compared in pairs. T: from the common start until both parts have ended.",
        "A change is the median of the ratios of these pairs. Intervals in brackets are 95 % BCa intervals "
        f"({RESAMPLES:,} resamples), not corrected: they are shown and decide nothing, for with few rounds they err "
        "too often.",
        "Sure is what an exact sign test of the pairs says: better and worse (two-sided, against zero), a loss of more "
        f"than {BOUND_PERCENT:g} % ruled out, or sure (one-sided, against the bound). In each of these families any "
        "error at all has at most 5 % of probability, by Holm's correction over the cells of an arm; where the best of "
        "several arms is chosen, over all of these in all cells. It is not corrected over the arms of a table. "
        "Neither: no difference was shown. Where even pairs that all agree would not be enough, there are too few "
        "rounds to be sure.",
        "The ideal is the longer of the two parts alone. The share of it: (T sequential / T - 1) / (T sequential / "
        "ideal - 1); 0 is no overlap, 100 % perfect. The stretch of a part is its time over its time alone.",
        "`shape-K`: K resident blocks by dynamic shared memory, and the largest carve-out. Best shape is the fastest "
        "of these in each cell, chosen by the same samples, which flatters its change; what is sure of it is corrected "
        "for all of them. Each of them by itself is in the file of results only. `policy:NAME` is a process of its own "
        f"behind `overlap-run`; `{OBSERVE}` changes nothing there and shows what that alone makes. "
        f"{listed([f'`{arm}`' for arm in comparing.ANCHORS])} are anchors, no controls.",
    ]


def _arms(one: Set, pictures: dict[str, str]) -> Iterator[str]:
    found = overlap_tables.compared(one.run, PLAIN)
    yield f"### {one.title}"
    if not found:
        yield paragraph(f"No primary cell of `{one.name}` has `{PLAIN}` and another arm, of {FEWEST} rounds at least.")
        return
    name = f"overlap-arms-{one.picture}.svg"
    pictures[name] = overlap_pictures.of_arms(one.title, found)
    yield f"![{one.title}: change of T by arm](pictures/{name})"
    yield "Change of T against plain streams:"
    yield overlap_tables.arms(one.run, PLAIN)
    for base, words in ((PRIORITY, "Against priority alone:"), (SEQUENTIAL, "Against one after the other:")):
        if overlap_tables.compared(one.run, base):
            yield words
            yield overlap_tables.arms(one.run, base)


def _outcome(sets: Sequence[Set]) -> Iterator[str]:
    rows, said = [], []
    for one in sets:
        for arm, base in ((DEFAULT, PRIORITY), (DEFAULT, PLAIN), (DEFAULT, OBSERVE), (OBSERVE, PLAIN)):
            found = against(one.run.primary, arm, base)
            if found is None:
                continue
            rows.append(_outcome_row(one, base, found))
            if arm == DEFAULT and (found.too_few(1) or not found.unbounded):
                said.append(f"{one.title}, against `{base}`: {overlap_words.ruled(found)}.")
            elif arm == DEFAULT:
                said.append(_unbounded(one, base, found))
    if not rows:
        yield paragraph(f"No set has `{DEFAULT}` beside `{PRIORITY}` or `{PLAIN}`.")
        return
    yield paragraph(
        f"Primary outcome, of the stand-ins declared before: T of `{DEFAULT}` over T of `{PRIORITY}`. The bound: a "
        f"loss above "
        f"{BOUND_PERCENT:g} % is ruled out in each cell. Declared was that the upper end of each interval decides, "
        "which is counted in the last column; with few rounds it says too much, so the sign test decides. "
        f"`{OBSERVE}` is the same process without any change: what it loses is not the policy's, and what the default "
        "changes against it is."
    )
    changes = ("best", "median", "worst cell (95 %)", "better, neither, worse")
    heads = ("set", "arm, against", *changes, "within the bound", "by intervals")
    yield table(heads, rows, left=2)
    yield f"A loss above {BOUND_PERCENT:g} %:"
    yield bullets(said)


def _outcome_row(one: Set, base: str, found: Against) -> tuple[str, ...]:
    every = len(found.changes)
    return (
        one.title,
        f"`{found.arm}`, `{base}`",
        percent(found.best.median),
        percent(found.median),
        f"{interval(found.worst)}: {found.worst.cell.name}",
        comparing.counts(found),
        comparing.TOO_FEW if found.too_few(1) else f"{every - len(found.unbounded)} of {every}",
        f"{sum(change.high <= BOUND_PERCENT for change in found.changes)} of {every}",
    )


def _unbounded(one: Set, base: str, found: Against) -> str:
    over, words = found.unbounded, overlap_words.ruled(found)
    shown = listed([f"{change.cell.name} {interval(change)}" for change in over[:MOST_SHOWN]])
    more = f", and {len(over) - MOST_SHOWN} more" if len(over) > MOST_SHOWN else ""
    return f"{one.title}, against `{base}`: {words}, from the worst: {shown}{more}."


def _cells(one: Set) -> Iterator[str]:
    yield f"### {one.title}: milliseconds"
    yield overlap_tables.times(one.run)
    yield f"### {one.title}: share of the ideal, %"
    yield overlap_tables.shares(one.run)
    if stretched := overlap_tables.stretches(one.run):
        yield f"### {one.title}: stretch of computation / of communication"
        yield stretched


def _sensitivity(one: Set, pictures: dict[str, str]) -> Iterator[str]:
    if one.run.curves:
        yield from _curves(one, pictures)
    if one.run.alone:
        yield f"### {one.title}: each kernel alone, by resident blocks"
        yield overlap_tables.alone(one.run)


def _curves(one: Set, pictures: dict[str, str]) -> Iterator[str]:
    name = f"overlap-curves-{one.picture}.svg"
    pictures[name] = overlap_pictures.of_curves(one.title, one.run.curves)
    yield f"![{one.title}: time against shared memory](pictures/{name})"
    for curve in one.run.curves:
        yield f"### {overlap_tables.title(curve)}"
        if curve.control:
            yield paragraph(f"The planner: `{curve.control}`{f', {curve.reason}' if curve.reason else ''}.")
        yield overlap_tables.sizes(curve)


def _predictions(evidence: predictions.Evidence, declared: bool) -> Iterator[str]:
    found = list(predictions.answers(evidence))
    counts = [
        f"{sum(one.verdict == verdict for *_, one, _ in found)} {verdict}"
        for verdict in (predictions.HELD, predictions.FAILED, predictions.OPEN)
    ]
    before = f"[declared before](../{DECLARED})" if declared else "declared before"
    yield paragraph(
        f"Made from a model, and {before} anything was measured, for the stand-ins alone: the answer is theirs. What "
        f"the "
        "other sets say of the same stands below it; for them nothing was declared, and it is in no count. P1, P2, P4 "
        "and P7 hold where every change that is "
        "looked at is surely inside the limits, and fail where one is surely outside; P3 holds where that is so in its "
        "share of the cells, and fails where more than the rest are surely outside. That is said by exact sign tests "
        "(one-sided, two-sided where there are two limits), with one correction of Holm's over all arms and cells that "
        "a prediction is about: 5 % at most that any of them is wrongly called inside, 5 % that one is wrongly called "
        "outside. P5 counts single runs that shared; declared was a sign of it (it starts sooner beside fewer blocks) "
        "that other things make, too. P6 is of two medians, untested. Else nothing can be said. "
        f"{listed(counts)} ({len(found)} in all). The rule of the GPU, and who "
        "shares a multiprocessor: [answers](answers.md)."
    )
    rows = []
    for name, text, one, other in found:
        rows.append((name, text, f"**{one.verdict}**", one.numbers))
        if other is not None:
            rows.append(("", "the other sets, not declared for these", other.verdict, other.numbers))
    yield table(("", "prediction", "answer", "numbers"), rows, left=4)


# ---- What follows, and the rest ----


def _rest(one: Set) -> Iterator[str]:
    looked = [cell for cell in one.run.cells if cell.differences is not None]
    if looked:
        other = [cell.name for cell in looked if cell.differences]
        found = f"some arm computed other bits than plain in {listed(other)}" if other else "no arm computed other bits"
        yield f"{one.title}, results of {len(looked)} cells, before the first round and after the last: {found}."
    left_out = one.suite.left_out
    yield f"{one.title}: left out: {'; '.join(left_out)}." if left_out else f"{one.title}: nothing was left out."


def _pivot(rule: str | None) -> Iterator[str]:
    """The stop rule of facts/scheduling.md 7.1."""
    if rule == "hold":
        yield (
            "The rule of this GPU is `hold`. What the method says of that case, written before: priority, order, the "
            "blocks of "
            "communication and multiprocessors left to it lead, and shaping is an option for experts."
        )
    elif rule is not None:
        yield f"The rule of this GPU is `{rule}`: shaping to let communication in early stays a control of its own."
