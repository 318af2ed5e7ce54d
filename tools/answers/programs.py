"""Programs on real GPUs: CoMD, whole programs on two GPUs, and one kernel beside one collective."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

from tools.answers.table import MISSING, Table, Value, percent, span

COMD = Path("tools/gpu/results/comd.csv")
WHOLE = Path("docs/data/whole-programs.csv")
CELLS = Path("docs/data/overlap.csv")
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
