"""What the virtual clock of the simulated GPU says of a program, against the model by which the library is judged:
kernels that ran at the same time were not in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.windows.compare import model_of
from tests.windows.model import Model
from tests.windows.operations import Program
from tests.windows.things import EAGER

Row = dict[str, Any]


def calls_of(timeline: Path) -> Iterator[list[Row]]:
    """The kernels of each call that ran some, in the order of the calls, from the file that an ended process has left.
    Every call takes time of the host, so its kernels are those that were queued at one instant."""
    rows = sorted(map(json.loads, timeline.read_text(encoding="utf-8").splitlines()), key=queued)
    return (list(group) for _, group in groupby(rows, queued))


def disagreements(program: Program, results: Sequence[int], calls: Iterator[list[Row]]) -> tuple[list[str], int]:
    """Pairs of computation and communication that ran at the same time although the model has them in order, in words;
    and how many ran at the same time. Takes the calls of this program."""
    model = model_of(program, results)
    closure, communication = model.closure(), nodes_of(model)
    ran = {operation: next(calls) for operation in sorted(model.ran_kernels)}
    found, beside = [], 0
    for launch in model.launches:
        if launch.operation not in ran:
            continue
        here = ran[launch.operation][0]
        for other, nodes in communication.items():
            if any(overlap(here, row) for row in ran[other] if row["communication"]):
                beside += 1
                if all((closure[launch.node] >> node | closure[node] >> launch.node) & 1 for node in nodes):
                    found.append(f"operations {launch.operation} and {other} ran at the same time, but are in order")
    return found, beside


def nodes_of(model: Model) -> dict[int, list[int]]:
    """The communication that each operation ran, as nodes."""
    found: dict[int, list[int]] = {}
    for number, node in enumerate(model.nodes):
        if node.world == EAGER and node.communication:
            found.setdefault(node.operation, []).append(number)
    return found


def queued(row: Row) -> float:
    return float(row["queued_us"])


def overlap(one: Row, other: Row) -> bool:
    return bool(one["start_us"] < other["end_us"] and other["start_us"] < one["end_us"])
