"""What docs/overlap.md says of a set in words: its answer, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from answers import comparing, default_losses
from answers.comparing import BOUND_PERCENT, Against, Choice, against
from answers.markdown import percent
from answers.overlap_tables import BEST_RAISED, CHOICES
from answers.suite import DEFAULT, PLAIN, PRIORITY, Cell, Run

best_raised = CHOICES[BEST_RAISED]
COMPARED: tuple[tuple[str, str, Choice | None], ...] = (
    ("the default", DEFAULT, None),
    ("priority", PRIORITY, None),
    ("the best shape with priority", BEST_RAISED, best_raised),
)


def gains(title: str, run: Run) -> Iterator[str]:
    primary = run.primary
    parts = [
        f"{words}{_of(found, primary)} {_span(found)}"
        for words, arm, choice in COMPARED
        if (found := against(primary, arm, PLAIN, choice)) is not None
    ]
    if lead := _lead(run):
        parts.append(f"of the controls that all cells have, `{lead.arm}` leads: {_span(lead)}")
    if parts:
        yield f"**{title}**, {len(primary)} cells (worst, median, best): {'; '.join(parts)}."


def losses(title: str, run: Run) -> Iterator[str]:
    parts = [
        f"against {base} {ruled(found)}"
        for base in (PLAIN, PRIORITY)
        if (found := against(run.primary, DEFAULT, base)) is not None
    ]
    if parts:
        yield f"{title}, a loss of the default above {BOUND_PERCENT:g} %: {'; '.join(parts)}."
    if more := [said for said in (default_losses.secondary(run), default_losses.noise(run)) if said]:
        yield f"{title}, {'; '.join(more)}."


ANSWER = (gains, losses)


def _span(found: Against) -> str:
    return ", ".join(map(percent, (found.worst.median, found.median, found.best.median)))


def _of(found: Against, cells: Sequence[Cell]) -> str:
    return f" (in {len(found.changes)} cells)" if len(found.changes) < len(cells) else ""


def ruled(found: Against) -> str:
    """Of a loss above the bound."""
    over, every = len(found.unbounded), len(found.changes)
    surely = sum(change.loss == 1 for change in found.changes)
    if found.too_few(1):
        return comparing.TOO_FEW
    if not over:
        return f"ruled out in all {every} cells"
    return f"not ruled out in {over} of {every} cells (sure in {surely})"


def _whole(run: Run) -> list[Against]:
    """The controls that every primary cell has, against plain."""
    primary = run.primary
    found = [against(primary, name, PLAIN) for name in comparing.controls(run)]
    return [change for change in found if change is not None and len(change.changes) == len(primary)]


def _lead(run: Run) -> Against | None:
    return min(_whole(run), key=lambda found: found.median, default=None)


def follows(title: str, run: Run) -> Iterator[str]:
    whole, lead = _whole(run), _lead(run)
    if lead is None:
        return
    yield (
        f"{title}: of the controls that every primary cell has, `{lead.arm}` leads: {percent(lead.median)} in the "
        f"median against plain, {percent(lead.worst.median)} at worst ({lead.worst.cell.name})."
    )
    safe = [found for found in whole if not found.unbounded]
    if not safe:
        least = min(whole, key=lambda found: found.worst.median)
        yield (
            f"{title}: none of them rules out a loss above {BOUND_PERCENT:g} % in every cell; the smallest worst "
            f"case has `{least.arm}`, {percent(least.worst.median)}."
        )
    elif (best_safe := min(safe, key=lambda found: found.median)).arm != lead.arm:
        yield (
            f"{title}: of those that rule out a loss above {BOUND_PERCENT:g} % in every cell, `{best_safe.arm}` "
            f"leads: {percent(best_safe.median)} in the median."
        )
    shaping = against(run.primary, BEST_RAISED, PRIORITY, best_raised)
    if shaping is not None and shaping.too_few(2):
        yield f"{title}: the best shape with priority, against priority alone: {comparing.TOO_FEW}."
    elif shaping is not None:
        yield (
            f"{title}: the best shape with priority, chosen in each cell, is surely better than priority alone in "
            f"{shaping.count(-1)} of {len(shaping.changes)} cells and surely worse in {shaping.count(1)}."
        )
