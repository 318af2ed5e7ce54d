"""docs/overlap.md: what the overlap suite found on a GPU, and where the simulated GPU agrees.

A set that nobody has measured is left out whole, and the page says which command measures it. No number of the page is
written here: all come from tools/gpu/results.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from arms import blocks_of

from answers import comparing, facts, overlap_model, overlap_pictures, overlap_tables, predictions, suite
from answers.comparing import BOUND_PERCENT, Against, Pick, against, interval
from answers.intervals import FEWEST, RESAMPLES
from answers.markdown import bullets, listed, page, paragraph, percent, table
from answers.suite import DEFAULT, PLAIN, PRIORITY, SIMULATED, Cell, Run, Suite

PICTURES = Path("docs/pictures")
DECLARED = "tools/gpu/overlap/README.md"
OBSERVE, SEQUENTIAL = "policy:observe", "sequential"
MEASURED = {
    "overlap-standins": "Stand-ins",
    "overlap-libraries": "Libraries and NCCL",
    "overlap-two-gpus": "Two GPUs",
}
COMMANDS = {name: f"tools/gpu/run {name}" for name in MEASURED}
COMMANDS[SIMULATED] = "tools/gpu/overlap/standins.py run --simulate h200 --out overlap-simulated.json"
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
    head = {
        "Question": (
            "Beside real computation on a real GPU: how much of the ideal overlap does a program get as it is, what do "
            "priority, order, smaller communication and fewer resident blocks change, and does the default policy "
            "ever cost anything?"
        ),
        "Answer": " ".join(_answer(sets, simulated)) or "Not measured yet.",
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
    for one in sets:
        primary = one.run.primary
        gains = [
            f"{words}{_of(found, primary)} {percent(found.best.median)} to {percent(found.worst.median)}, median "
            f"{percent(found.median)}"
            for words, arm, pick in COMPARED
            if (found := against(primary, arm, PLAIN, pick=pick)) is not None
        ]
        if gains:
            yield f"{one.title}, {len(primary)} cells, T against plain streams: {'; '.join(gains)}."
        bounds = [
            f"{_ruled(found)} against {base}"
            for base in (PRIORITY, PLAIN)
            if (found := against(primary, DEFAULT, base)) is not None
        ]
        if bounds:
            yield f"A loss of the default above {BOUND_PERCENT:g} % {', '.join(bounds)}."
    agreements = overlap_model.agreements([one.suite for one in sets], simulated) if simulated is not None else []
    if agreements:
        yield overlap_model.sentence(agreements)


def _of(found: Against, cells: Sequence[Cell]) -> str:
    return f" (in {len(found.changes)} cells)" if len(found.changes) < len(cells) else ""


def _short(sets: Sequence[Set]) -> Iterator[str]:
    """The number of the paper is one of the last column."""
    yield paragraph(
        "Medians of the primary cells, and the best cell against one after the other: a number of the kind that the "
        "paper has (up to 25.5 % less time; its baseline not known to us)."
    )
    rows = []
    for one in sets:
        shaped = [cell for cell in one.run.primary if _best_raised(cell)]
        same = [("priority, in the cells of shapes", PRIORITY, None)] if len(shaped) < len(one.run.primary) else []
        for words, arm, pick in (("plain streams", PLAIN, None), *COMPARED, *same):
            cells = shaped if (words, arm, pick) in same else one.run.primary
            found = against(cells, arm, SEQUENTIAL, pick=pick)
            shares = [overlap_tables.share_of(cell, arm) for cell in cells]
            known = [share for share in shares if share is not None]
            if found is not None and known:
                middle = f"{round(statistics.median(known))} %"
                best_of = f"{percent(found.best.median)} ({found.best.cell.name})"
                rows.append((one.title, words, str(len(found.changes)), middle, percent(found.median), best_of))
    heads = ("set", "arm", "cells", "share of the ideal", "against one after the other", "best cell")
    yield table(heads, rows, left=2)


_best_raised = overlap_tables.PICKS[overlap_tables.BEST_RAISED]
COMPARED: tuple[tuple[str, str, Pick | None], ...] = (
    ("priority", PRIORITY, None),
    ("the best shape with priority", overlap_tables.BEST_RAISED, _best_raised),
    ("the default", DEFAULT, None),
)


def _bound(found: Against) -> str:
    """Half a sentence, to be followed by what it is held against."""
    return f"a loss of the default above {BOUND_PERCENT:g} % {_ruled(found)}"


def _ruled(found: Against) -> str:
    over, every = len(found.unbounded), len(found.changes)
    surely = sum(change.low > BOUND_PERCENT for change in found.changes)
    if not over:
        return f"is ruled out in all {every} cells"
    return f"cannot be ruled out in {over} of {every} cells (in {surely} it is sure)"


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
        yield bullets([*_pivot(evidence.rule), *(line for one in sets for line in _follows(one))])
        yield "## What was not measured, and results"
        yield bullets(line for one in sets for line in _rest(one))


def _method() -> list[str]:
    return [
        "A cell is a kernel that computes, one that communicates, how long the second takes against the first "
        "(0.5: half), and a pattern. Arms of a cell take turns in random order; sample i of all arms is of the same "
        "turn, so they are compared in pairs. T: from the common start until both parts have ended.",
        "A change is the median of the ratios of these pairs; better and worse are cells whose 95 % BCa interval "
        f"({RESAMPLES:,} resamples) lies on one side of zero after Holm's correction over the cells of the arm; equal "
        "are all others: no difference was shown. Intervals in brackets are not corrected.",
        "The ideal is the longer of the two parts alone. The share of it: (T sequential / T - 1) / (T sequential / "
        "ideal - 1); 0 is no overlap, 100 % perfect. The stretch of a part is its time over its time alone.",
        "`shape-K`: K resident blocks by dynamic shared memory, and the largest carve-out. Best shape is the fastest "
        "of these in each cell, chosen by the same samples, so it flatters. `policy:NAME` is a process of its own "
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
    pictures[name] = overlap_pictures.of_arms(one.title, [arm for arm in found if blocks_of(arm.arm) is None])
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
            if arm == DEFAULT and found.unbounded:
                said.append(_unbounded(one, base, found.unbounded))
            elif arm == DEFAULT:
                said.append(f"{one.title}: {_bound(found)} against `{base}`.")
    if not rows:
        yield paragraph(f"No set has `{DEFAULT}` beside `{PRIORITY}` or `{PLAIN}`.")
        return
    yield paragraph(
        f"Primary outcome, declared before: T of `{DEFAULT}` over T of `{PRIORITY}`. The bound: in each cell the upper "
        f"end of the 95 % interval of the loss is at most {BOUND_PERCENT:g} %. `{OBSERVE}` is the same process without "
        "any change: what it loses is not the policy's, and what the default changes against it is."
    )
    heads = ("set", "arm, against", "best", "median", "worst cell (95 %)", "better, equal, worse", "within the bound")
    yield table(heads, rows, left=2)
    yield bullets(said)


def _outcome_row(one: Set, base: str, found: Against) -> tuple[str, ...]:
    return (
        one.title,
        f"`{found.arm}`, `{base}`",
        percent(found.best.median),
        percent(found.median),
        f"{interval(found.worst)}: {found.worst.cell.name}",
        f"{found.count(-1)}, {found.count(0)}, {found.count(1)}",
        f"{len(found.changes) - len(found.unbounded)} of {len(found.changes)}",
    )


def _unbounded(one: Set, base: str, over: Sequence[comparing.Change]) -> str:
    shown = listed([f"{change.cell.name} {interval(change)}" for change in over[:MOST_SHOWN]])
    more = f", and {len(over) - MOST_SHOWN} more" if len(over) > MOST_SHOWN else ""
    return f"{one.title}, against `{base}`: not within the bound, from the worst: {shown}{more}."


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
        f"{sum(one.verdict == verdict for *_, one in found)} {verdict}"
        for verdict in (predictions.HELD, predictions.FAILED, predictions.OPEN)
    ]
    before = f"[declared before](../{DECLARED})" if declared else "declared before"
    yield paragraph(
        f"Made from a model, and {before} anything was measured. One holds or fails where the corrected 95 % intervals "
        f"say so; else nothing can be said. {listed(counts)} ({len(found)} in all). The rule of the GPU, and who "
        "shares a multiprocessor: [answers](answers.md)."
    )
    rows = [(name, text, f"**{one.verdict}**", one.numbers) for name, text, one in found]
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
            "The rule of this GPU is `hold`. What was declared before for that case: priority, order, the blocks of "
            "communication and multiprocessors left to it lead, and shaping is an option for experts."
        )
    elif rule is not None:
        yield f"The rule of this GPU is `{rule}`: shaping to let communication in early stays a control of its own."


def _follows(one: Set) -> Iterator[str]:
    primary = one.run.primary
    found = [
        (name, change) for name in comparing.controls(one.run) if (change := against(primary, name, PLAIN)) is not None
    ]
    whole = [(name, change) for name, change in found if len(change.changes) == len(primary)]
    if not whole:
        return
    name, lead = min(whole, key=lambda pair: pair[1].median)
    yield (
        f"{one.title}: of the controls that every primary cell has, `{name}` leads: {percent(lead.median)} in the "
        f"median against plain, {percent(lead.worst.median)} at worst ({lead.worst.cell.name})."
    )
    safe = [(name, change) for name, change in whole if not change.unbounded]
    if not safe:
        least = min(whole, key=lambda pair: pair[1].worst.median)
        yield (
            f"{one.title}: none of them rules out a loss above {BOUND_PERCENT:g} % in every cell; the smallest worst "
            f"case has `{least[0]}`, {percent(least[1].worst.median)}."
        )
    elif (best_safe := min(safe, key=lambda pair: pair[1].median))[0] != name:
        yield (
            f"{one.title}: of those that rule out a loss above {BOUND_PERCENT:g} % in every cell, `{best_safe[0]}` "
            f"leads: {percent(best_safe[1].median)} in the median."
        )
    shaping = against(primary, overlap_tables.BEST_RAISED, PRIORITY, pick=_best_raised)
    if shaping is not None:
        yield (
            f"{one.title}: the best shape with priority, chosen in each cell, is surely better than priority alone in "
            f"{shaping.count(-1)} of {len(shaping.changes)} cells and surely worse in {shaping.count(1)}."
        )
