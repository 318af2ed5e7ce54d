"""Programs on real GPUs: of other authors, whole programs on one and on two GPUs, one kernel beside one collective."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from pathlib import Path

from tools.answers.table import MISSING, Table, Value, percent, span

FOREIGN = Path("tools/gpu/results/foreign.csv")
TWO, ONE = Path("docs/data/whole-programs.csv"), Path("tools/gpu/results/whole-one.csv")
CELLS = Path("docs/data/overlap.csv")
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
    """Programs of other authors: bare, and the change of each arm's time from it."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows(root, FOREIGN):
        found.setdefault(row["program"], {})[row["arm"]] = row
    made: list[list[Value]] = []
    for name, arms in found.items():
        bare, changes = arms["bare"], (arms.get(arm, {}).get("change_percent") for arm in AUTHORS)
        words = (percent(float(change)) if change else MISSING for change in changes)
        number, gpu = bare["gpus"], bare["gpu"].split()[1]  # NVIDIA H100 80GB HBM3
        place = gpu if number == "1" else f"{number} {gpu}"
        made.append([name, place, f"{float(bare['median']):,.4g} {bare['unit']}", *words])
    heads = ("program", "GPU", "bare", "noise: bare again, %", "default, %", "own priorities, %", "`observe`, %")
    return Table(heads, made, words=2)


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
    heads = (
        "program",
        "bare again, %",
        "`observe`, %",
        "default, %",
        "own priorities, %",
        "published, %",
        "possible, %",
    )
    return Table(heads, ranges(root, TWO, ("again", *ARMS, "published", "possible")))


def whole_one(root: Path) -> Table:
    """The same on one GPU."""
    return Table(("program", *HEADS), ranges(root, ONE, (*ARMS, "published", "possible")))


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
