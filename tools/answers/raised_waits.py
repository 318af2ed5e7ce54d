"""Which control shortens the wait of communication, and what the grid before it pays: raised.json."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from answers import facts
from answers.markdown import paragraph, table

FILE = "raised"
BLOCKS, LIMIT, ALONE = 32, "shared memory", "alone"
PRIORITY, SHAPE, BOUND = "priority", "shape", ", bound by "
Found = dict[str, dict[int, tuple[float, float]]]  # by arm and blocks a multiprocessor: us, times alone


def found(root: Path) -> Found:
    """Until the last of 32 blocks of communication starts, and the grid's time over its time alone; medians."""
    last: dict[tuple[str, int], list[float]] = {}
    grid: dict[tuple[str, int], list[float]] = {}
    for one in facts.rows(root, FILE):
        if one.get("mode") == "controls" and one["limit"] == LIMIT:
            grid.setdefault((_arm(one), one["k"]), []).append(one["grid_us"])
            if one["c"] == BLOCKS and "last_us" in one:
                last.setdefault((_arm(one), one["k"]), []).append(one["last_us"])
    made: Found = {}
    for (arm, k), waits in last.items():
        alone = statistics.median(grid[ALONE, k])
        made.setdefault(arm, {})[k] = statistics.median(waits), statistics.median(grid[arm, k]) / alone
    return made


def _arm(one: dict[str, Any]) -> str:
    """A shaped block that takes as long as before, or shorter as it has more of the multiprocessor."""
    return f"{one['arm']}{BOUND}{one['work']}" if one["shaped"] else str(one["arm"])


def summary(root: Path) -> tuple[str, str] | None:
    """At the most blocks a multiprocessor that were measured with priority alone."""
    arms = {arm: by for arm, by in found(root).items() if arm != "equal priority"}
    if PRIORITY not in arms:
        return None
    k = max(arms[PRIORITY])
    there: dict[str, list[tuple[float, float]]] = {}
    for arm, by in arms.items():
        if k in by:
            there.setdefault(arm.partition(BOUND)[0], []).append(by[k])
    best, free = (
        min(some, key=lambda arm: max(there[arm])) for some in (there, [arm for arm in there if SHAPE not in arm])
    )
    parts = [f"{arm}: {max(there[arm])[0]:.0f} us, the grid {_costs(there[arm])}" for arm in (PRIORITY, free, best)]
    words = f"**{best}**, at a price; without shaping **{free}**" if SHAPE in best else f"**{best}**"
    return words, f"behind {k} blocks a multiprocessor: {'; '.join(dict.fromkeys(parts))}"


def _costs(found: list[tuple[float, float]]) -> str:
    """By what bounds the grid."""
    costs = sorted({f"{cost:.2f}" for _, cost in found}, key=float)
    return f"{' to '.join((costs[0], costs[-1])) if len(costs) > 1 else costs[0]} times"


def parts(root: Path) -> Iterator[str]:
    arms = found(root)
    if not arms:
        return
    counts = sorted({k for by in arms.values() for k in by})
    yield "## Wait of communication, and what the grid pays, by control"
    yield paragraph(
        f"us until the last of {BLOCKS} blocks like NCCL's starts behind a long grid of so many blocks a multiprocessor"
        f" (200 us each, give or take a half; limited by {LIMIT}) / the grid's time over its time alone. `raised.cu`."
    )
    rows = [
        (arm, *(f"{by[k][0]:,.0f} / {by[k][1]:.2f}" if k in by else "–" for k in counts)) for arm, by in arms.items()
    ]
    yield table(("control", *map(str, counts)), rows)
