"""The part of docs/overlap.md that holds the simulated GPU against the real one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from arms import blocks_of

from answers import overlap_pictures
from answers.agreement import LEAST_RANK, MOST_ERROR, Agreement, Ratio, best, compare
from answers.markdown import paragraph, table
from answers.suite import Suite

MOST_SHOWN = 8
DIFFER_POINTS = 1.0


def sentence(every: Sequence[Agreement]) -> str:
    found = best(every)
    rank = "none" if found.rank is None else f"{found.rank:.2f}"
    others = ", ".join(f"`{one.rule}` {one.error:.1f}" for one in every if one is not found)
    return (
        f"The simulated GPU fits best under `{found.rule}`: mean absolute error {found.error:.1f} points of T"
        f"{f' ({others})' if others else ''}, rank correlation {rank} over {len(found.ratios)} ratios; the target (at "
        f"most {MOST_ERROR:g}, at least {LEAST_RANK:g}) is {'met' if found.good else 'not met'}."
    )


def agreements(measured: Sequence[Suite], simulated: Suite) -> list[Agreement]:
    runs = [run for one in measured for run in one.runs]
    found = (compare(run, runs) for run in simulated.runs)
    return [one for one in found if one is not None]


def rules_differ(found: Sequence[Agreement]) -> set[tuple[str, str, float]]:
    """Cells and arms of which the rules say other things."""
    said: dict[tuple[str, str, float], list[float]] = {}
    for ratio in (ratio for one in found for ratio in one.ratios):
        said.setdefault((ratio.cell, ratio.arm, ratio.measured), []).append(100 * ratio.simulated)
    return {key for key, values in said.items() if max(values) - min(values) > DIFFER_POINTS}


def parts(found: Sequence[Agreement], pictures: dict[str, str]) -> Iterator[str]:
    fitting = best(found)
    name = "overlap-model.svg"
    pictures[name] = overlap_pictures.of_model(fitting)
    cells = len({ratio.cell for ratio in fitting.ratios})
    yield paragraph(
        f"The same cells on the simulated GPU, under each dispatch rule: T of an arm over T of plain, in {cells} "
        "primary cells, against the measured one. What kernels take alone, as launched and with fewer resident blocks, "
        "is an input of the simulated run (tools/gpu/overlap/costs.yaml); what they take together is the model's. "
        f"{sentence(found)}"
    )
    yield f"![Simulated against measured](pictures/{name})"
    differing = rules_differ(found)
    rows = [
        (
            f"`{one.rule}`",
            str(len(one.ratios)),
            f"{one.error:.1f}",
            _mean(abs(ratio.error) for ratio in one.ratios if (ratio.cell, ratio.arm, ratio.measured) in differing),
            "–" if one.rank is None else f"{one.rank:.2f}",
            "met" if one.good else "not met",
        )
        for one in found
    ]
    where = f"in the {len(differing)} where rules differ by {DIFFER_POINTS:g}"
    yield table(("simulated under", "ratios", "mean absolute error, points", where, "rank correlation", "target"), rows)
    yield f"By arm, mean absolute error in points, and mean of simulated less measured under `{fitting.rule}`:"
    arms = list(dict.fromkeys(_shown(ratio.arm) for ratio in fitting.ratios))
    heads = ("arm", "ratios", *(f"`{one.rule}`" for one in found), "simulated less measured")
    yield table(heads, [_arm_errors(arm, found, fitting) for arm in arms])
    yield f"Farthest apart under `{fitting.rule}`, T over T of plain:"
    far = [
        (ratio.cell, f"`{ratio.arm}`", f"{ratio.simulated:.3f}", f"{ratio.measured:.3f}", f"{ratio.error:+.1f}")
        for ratio in fitting.farthest[:MOST_SHOWN]
    ]
    yield table(("cell", "arm", "simulated", "measured", "points"), far, left=2)


def _shown(arm: str) -> str:
    """Shapes are one row, or two."""
    return f"`{arm}`" if blocks_of(arm) is None else f"all `shape-K{'+priority' if arm.endswith('+priority') else ''}`"


def _arm_errors(arm: str, found: Sequence[Agreement], fitting: Agreement) -> tuple[str, ...]:
    def of(one: Agreement) -> list[Ratio]:
        return [ratio for ratio in one.ratios if _shown(ratio.arm) == arm]

    chosen = of(fitting)
    errors = (_mean(abs(ratio.error) for ratio in of(one)) for one in found)
    return (arm, str(len(chosen)), *errors, _mean((ratio.error for ratio in chosen), "+"))


def _mean(values: Iterable[float], sign: str = "") -> str:
    found = list(values)
    mean = round(statistics.fmean(found), 1) if found else 0.0
    return (f"{mean:{sign}.1f}" if mean else "0.0") if found else "–"
