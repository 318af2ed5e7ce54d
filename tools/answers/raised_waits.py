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
PRIORITY = "priority"
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
    return f"{one['arm']}, bound by {one['work']}" if one["shaped"] else str(one["arm"])


def summary(root: Path) -> tuple[str, str] | None:
    """At the most blocks a multiprocessor that all arms have."""
    arms = {arm: by for arm, by in found(root).items() if arm != "equal priority"}
    if PRIORITY not in arms:
        return None
    k = max(arms[PRIORITY])
    there = {arm: by[k] for arm, by in arms.items() if k in by}
    best = min(there, key=lambda arm: there[arm][0])
    free = min((arm for arm in there if "shape" not in arm), key=lambda arm: there[arm][0])
    parts = [f"{arm}: {there[arm][0]:.0f} us, the grid {there[arm][1]:.2f} times" for arm in (PRIORITY, free, best)]
    return (
        f"**{best}**; without shaping **{free}**",
        f"behind {k} blocks a multiprocessor: {'; '.join(dict.fromkeys(parts))}",
    )


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
