"""What was measured on real GPUs: programs of others and ours, one kernel beside one collective, a launch; promises."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.docs.table import MISSING, Table, Value, percent, span

ESTIMATES = Path("docs/data/estimates.csv")
FOREIGN = Path("tools/gpu/results/foreign.csv")
TWO, ONE = Path("docs/data/whole-programs.csv"), Path("tools/gpu/results/whole-one.csv")
CELLS = Path("docs/data/overlap.csv")
RESULTS = Path("tools/gpu/results")
LATENCY = Path("docs/data/launch-latency.csv")
CARVEOUTS = ("carveout -1", "carveout 100")  # preferred: the driver's choice, the largest
NOISY = 3.0  # per cent between two bare arms: no change is told
ROUNDS = 10  # programs with fewer are not in a range of a family
ARMS = ("observe", "default", "own")
AUTHORS = ("again", "default", "own", "observe")
HEADS = ("`observe`, %", "default, %", "own priorities, %", "published, %", "possible, %")
SETS = ("two GPUs, NCCL", "one GPU, NCCL to itself", "one GPU, stand-ins")
SHOWN = {"observe": "noise: `observe`", "priority": "priority alone", "published": "the published method"}


def rows(root: Path, file: Path) -> list[dict[str, str]]:
    with (root / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def foreign(root: Path) -> Table:
    """Programs of other authors: bare, and the change of each arm's time from it; where bare arms differ, none."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows(root, FOREIGN):
        found.setdefault(row["program"], {})[row["arm"]] = row
    made: list[list[Value]] = []
    for name, arms in found.items():
        bare, changes = arms["bare"], (arms.get(arm, {}).get("change_percent") for arm in AUTHORS)
        noise, *words = (percent(float(change)) if change else MISSING for change in changes)
        if abs(float(arms["again"]["change_percent"])) > NOISY:
            words = ["too noisy to tell", *[MISSING] * (len(AUTHORS) - 2)]
        place = f"{bare['gpu'].split()[1]}, {bare['processes']}"
        made.append([name, place, f"{float(bare['median']):,.4g} {bare['unit']}", noise, *words])
    heads = ("program", "GPU, processes", "bare", "bare again, %", "default, %", "own priorities, %", "`observe`, %")
    return Table(heads, made, words=3)


def estimates(root: Path) -> Table:
    """What was expected of programs from a trace of a bare process, and what the default then changed."""
    made: list[list[Value]] = [
        [
            row["program"],
            row["verdict"] or MISSING,
            *(percent(float(row[f"{what}_percent"])) for what in ("expected", "gained")),
        ]
        for row in rows(root, ESTIMATES)
        if row["estimate"] == "about"
    ]
    return Table(("program", "verdict of `overlap explain`", "expected, %", "default, %"), made, words=2)


def number(row: dict[str, str], name: str) -> float | None:
    return float(row[name]) if row[name] else None


def families(root: Path, file: Path) -> dict[str, list[dict[str, str]]]:
    """Programs with all rounds by family: those whose own priorities gain most first, the smallest sizes last."""
    made: dict[str, list[dict[str, str]]] = {}
    for row in rows(root, file):
        if int(row["rounds"]) >= ROUNDS:
            made.setdefault(row["family"], []).append(row)
    return dict(sorted(made.items(), key=lambda item: ("128\u00b3" in item[0], order(item[1]))))


def changes(found: list[dict[str, str]], arm: str) -> list[float]:
    """In per cent, of the cells where the arm was measured."""
    values = (number(row, f"{arm}_percent") for row in found if f"{arm}_percent" in row)
    return [value for value in values if value is not None]


def ranges(root: Path, file: Path, arms: Sequence[str]) -> list[list[Value]]:
    return [[name, *(span(changes(own, arm)) for arm in arms)] for name, own in families(root, file).items()]


def whole(root: Path) -> Table:
    """Ranges over the programs and sizes of a family, on two GPUs."""
    return Table(("program", "bare again, %", *HEADS), ranges(root, TWO, ("again", *ARMS, "published", "possible")))


def whole_one(root: Path) -> Table:
    """The same on one GPU."""
    return Table(("program", *HEADS[:-1]), ranges(root, ONE, (*ARMS, "published")))


def order(found: list[dict[str, str]]) -> float:
    """The family whose own priorities gain most comes first."""
    return statistics.median(changes(found, "own"))


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
