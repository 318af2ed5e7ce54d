"""Programs on real GPUs: those of other authors, whole programs on two GPUs, and one kernel beside one collective."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

from tools.answers.table import MISSING, Table, Value, percent, span

FOREIGN = Path("tools/gpu/results/foreign.csv")
WHOLE = Path("docs/data/whole-programs.csv")
CELLS = Path("docs/data/overlap.csv")
ROUNDS = 10  # programs with fewer are not in a range of a family
ARMS = ("observe", "default", "own")
AUTHORS = ("again", "default", "own", "observe")
SETS = ("two GPUs, NCCL", "one GPU, NCCL to itself", "one GPU, stand-ins")
SHOWN = {"observe": "noise: `observe`", "priority": "priority alone", "published": "the published method"}


def rows(root: Path, file: Path) -> list[dict[str, str]]:
    with (root / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def foreign(root: Path) -> Table:
    """Programs of other authors: bare, and the change of each arm's time from it."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows(root, FOREIGN):
        found.setdefault(row["program"], {})[row["arm"]] = row
    made: list[list[Value]] = []
    for name, arms in found.items():
        bare, changes = arms["bare"], (arms.get(arm, {}).get("change_percent") for arm in AUTHORS)
        words = (percent(float(change)) if change else MISSING for change in changes)
        made.append([name, f"{float(bare['median']):,.4g} {bare['unit']}", *words])
    heads = ("program", "bare", "noise: bare again, %", "default, %", "own priorities, %", "`observe`, %")
    return Table(heads, made)


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
