"""What the library costs a launch on an H200, and which of its promises were tested there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.answers.programs import rows
from tools.answers.table import Table, Value

RESULTS = Path("tools/gpu/results")
LATENCY = Path("docs/data/launch-latency.csv")
CARVEOUTS = ("carveout -1", "carveout 100")  # preferred: the driver's choice, the largest


def read(root: Path, name: str) -> dict[str, Any]:
    """Return the whole file. Raises SystemExit if it is missing."""
    path = root / RESULTS / f"{name}.json"
    if not path.exists():
        raise SystemExit(f"answers: {path.relative_to(root)} is missing: `tools/gpu/run {name}` measures it")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def launch_costs(root: Path) -> Table:
    """cuLaunchKernel: runs that have two bare arms, from the quietest."""
    by: dict[str, dict[str, float]] = {}
    for row in rows(root, LATENCY):
        by.setdefault(row["run"], {})[row["arm"]] = float(row["median_ns"])
    found = [(abs(one["bare, again"] - one["bare"]), one["bare"], one["default"] - one["bare"]) for one in by.values()]
    shown = [[f"{noise:.0f}", f"{bare:,.0f}", f"{more:+.0f}"] for noise, bare, more in sorted(found)]
    return Table(("two bare arms differ by, ns", "launch, bare, ns", "default policy adds, ns"), shown, words=0)


def checks(root: Path) -> Table:
    """How often was a promise of the product tested on a GPU, and how often was it broken?"""
    correctness = read(root, "correctness")
    runs, occupancy, planner = correctness["rows"], correctness["occupancy"], correctness["occupancy"]["planner"]
    launches = sum(row["launches"] or 0 for row in runs)
    samples, different = (sum(occupancy[key].get(name, 0) for name in CARVEOUTS) for key in ("samples", "different"))
    promises, broken = (sum(planner[key].values()) for key in ("promises", "broken"))
    made: list[list[Value]] = [
        [
            f"{len({row['program'] for row in runs})} programs give the same results as without the library",
            f"{len(runs)} runs, {launches:,} launches",
            sum(bool(row["faults"]) for row in runs),
        ],
        ["computed occupancy is the driver's", f"{samples:,} samples", different],
        ["sizes leave as many blocks as the planner says", f"{promises:,} answers", broken],
    ]
    return Table(("promise", "tested", "broken"), made, words=2)
