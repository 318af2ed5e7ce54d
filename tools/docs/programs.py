"""What was measured on real GPUs: CoMD, whole programs, one kernel beside one collective, a launch; promises tested."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path
from typing import Any

from tools.docs.table import MISSING, Table, Value, percent, span

COMD = Path("tools/gpu/results/comd.csv")
WHOLE = Path("docs/data/whole-programs.csv")
CELLS = Path("docs/data/overlap.csv")
RESULTS = Path("tools/gpu/results")
LATENCY = Path("docs/data/launch-latency.csv")
CARVEOUTS = ("carveout -1", "carveout 100")  # preferred: the driver's choice, the largest
ROUNDS = 10  # programs with fewer are not in a range of a family
ARMS = ("observe", "default", "own")
SETS = ("two GPUs, NCCL", "one GPU, NCCL to itself", "one GPU, stand-ins")
SHOWN = {"observe": "noise: `observe`", "priority": "priority alone", "published": "the published method"}


def rows(root: Path, file: Path) -> list[dict[str, str]]:
    with (root / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def comd(root: Path) -> Table:
    """CoMD: nanoseconds an atom and step of each arm, and its change from the bare one."""
    found = {(int(row["cells"]), int(row["steps"]), row["arm"]): row for row in rows(root, COMD)}
    made: list[list[Value]] = []
    for cells, steps in dict.fromkeys((cells, steps) for cells, steps, _ in found):
        row: list[Value] = [f"{cells}³, {steps:,}", f"{float(found[cells, steps, 'bare']['median_ns']):.2f}"]
        for arm in ("bare2", *ARMS):
            one = found[cells, steps, arm]
            row.append(f"{float(one['median_ns']):.2f} ({percent(float(one['change_percent']))})")
        made.append(row)
    return Table(("cells, steps", "ns, bare", "bare again (%)", *(f"{arm} (%)" for arm in ARMS)), made)


def number(row: dict[str, str], name: str) -> float | None:
    return float(row[name]) if row[name] else None


def whole(root: Path) -> Table:
    """Ranges over the programs and sizes of a family."""
    found = [row for row in rows(root, WHOLE) if int(row["rounds"]) >= ROUNDS]
    columns = [f"{arm}_percent" for arm in (*ARMS, "published", "possible")]
    families = sorted({row["family"] for row in found}, key=lambda name: ("128³" in name, order(found, name)))
    made: list[list[Value]] = [
        [name, *(span(number(row, column) for row in found if row["family"] == name) for column in columns)]
        for name in families
    ]
    heads = ("program", "noise, %", "default, %", "own priorities, %", "published, %", "possible, %")
    return Table(heads, made)


def order(found: list[dict[str, str]], family: str) -> float:
    """The family whose own priorities gain most comes first."""
    gains = [number(row, "own_percent") for row in found if row["family"] == family]
    return statistics.median(gain for gain in gains if gain is not None)


def shaping(root: Path) -> Table:
    """Change of the primary cells against plain streams: worst, median, best."""
    found = [row for row in rows(root, CELLS) if row["primary"] == "1"]
    made: list[list[Value]] = []
    for arm, words in SHOWN.items():
        line: list[Value] = [words]
        for name in SETS:
            changes = sorted(float(row["change_percent"]) for row in found if (row["arm"], row["set"]) == (arm, name))
            spread = (changes[-1], statistics.median(changes), changes[0]) if changes else ()
            line.append(", ".join(map(percent, spread)) or MISSING)
        made.append(line)
    return Table(("worst, median, best of 24 cells, %", *SETS), made)


def read(root: Path, name: str) -> dict[str, Any]:
    """Return the whole file. Raises SystemExit if it is missing."""
    path = root / RESULTS / f"{name}.json"
    if not path.exists():
        raise SystemExit(f"write: {path.relative_to(root)} is missing: `tools/gpu/run {name}` measures it")
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
