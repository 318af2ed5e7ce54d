"""Stencils and whole programs on two GPUs: critical.json, whole.json and two-gpus.json."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tools.answers import results
from tools.answers.table import Table, Value, percent, rounded, span
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.table import arms, by_family

# Exchange of a stencil's boundary planes: programs of tools/gpu/critical.cu.
EXCHANGES = {
    "NCCL": ("halo-stream", "computing-stream", "third-stream"),
    "host memory": ("host-stream", "host-event", "host-polling"),
}
ARMS = ("raised", "observe", "default", "paper")
WHOLE = ("observe", "default", "own")
BARE, ITSELF = "bare", "bare, against itself"
ROUND = 8  # steps of two_gpus_cases.py between two turns of an arm


def _cells(root: Path) -> list[dict[str, Any]]:
    return list(results.read(root, "critical")["cells"])


def _change(cell: dict[str, Any], arm: str) -> float | None:
    return 100 * cell["change"][arm][0] if arm in cell["change"] else None


def stencils(root: Path) -> Table:
    """Ranges over the programs that exchange in the same way."""
    rows: list[list[Value]] = []
    for exchange, programs in EXCHANGES.items():
        cells = [cell for cell in _cells(root) if cell["program"] in programs]
        for n in sorted({cell["n"] for cell in cells}):
            own = [cell for cell in cells if cell["n"] == n]
            bare = sorted(cell["ms"]["bare"] for cell in own)
            changes = (span(_change(cell, arm) for cell in own) for arm in ("observe", "default", "raised", "paper"))
            rows.append([f"{exchange}, {n}³", f"{statistics.median(bare):.3f}", *changes])
    heads = ("exchange, points a GPU", "ms, bare", "noise, %", "default, %", "own priorities, %", "published, %")
    return Table(heads, rows)


def comd(root: Path) -> Table:
    """CoMD: nanoseconds an atom and step of each arm, and its change from the bare one."""
    found = {(row["cells"], row["steps"], row["arm"]): row for row in results.read(root, "comd")["medians"]}
    rows: list[list[Value]] = []
    for cells, steps in dict.fromkeys((cells, steps) for cells, steps, _ in found):
        row: list[Value] = [f"{cells}³, {steps:,}", f"{found[cells, steps, BARE]['median_ns']:.2f}"]
        for arm in ("bare2", *WHOLE):
            one = found[cells, steps, arm]
            row.append(f"{one['median_ns']:.2f} ({percent(one['change_percent'])})")
        rows.append(row)
    return Table(("cells, steps", "ns, bare", "bare again (%)", *(f"{arm} (%)" for arm in WHOLE)), rows)


def whole(root: Path) -> Table:
    """Ranges over the programs and sizes of a family."""
    rows: list[list[Value]] = []
    for name, own in by_family(put_together(results.read(root, "whole"))).items():
        changes = {arm: [100 * one["change"][arm][0] for one in own if one["change"].get(arm)] for arm in WHOLE}
        possible = span(100 * one["possible"] for one in own if one.get("possible") is not None)
        rows.append([name, *(span(changes[arm]) for arm in WHOLE), possible])
    heads = ("program", "noise, %", "default, %", "own priorities, %", "possible, %")
    return Table(heads, rows)


def every_whole(root: Path) -> Table:
    rows: list[list[Value]] = []
    cells = put_together(results.read(root, "whole"))
    for cell in cells:
        parts = (cell.get(key) for key in ("computation_ms", "communication_ms", "possible", "predicted"))
        row: list[Value] = [cell["program"], cell["n"] or None, cell["bits"] if cell["n"] else None]
        row += [cell["waits"], cell["expected"], cell["rounds"], cell["ms"], *parts]
        for arm in arms(cells):
            row += [rounded(100 * value) for value in cell["change"].get(arm) or ()] or [None] * 3
        rows.append(row)
    ends = (f"{arm}{part}" for arm in arms(cells) for part in ("_percent", "_low", "_high"))
    heads: tuple[str, ...] = ("program", "points", "bits", "waits", "expected", "rounds", "bare_ms", "computation_ms")
    heads += ("communication_ms", "possible", "predicted")
    return Table((*heads, *ends), rows)


def every_stencil(root: Path) -> Table:
    rows: list[list[Value]] = []
    for cell in _cells(root):
        share = cell.get("share_interval") or [None, None]
        row: list[Value] = [cell["program"], cell["n"] or None, cell["turns"], cell["ms"]["bare"]]
        for arm in ARMS:
            row += [rounded(100 * value) for value in cell["change"].get(arm, ())] or [None] * 3
        rows.append([*row, cell.get("share"), *share])
    changes = (f"{arm}{part}" for arm in ARMS for part in ("_percent", "_low", "_high"))
    heads = ("program", "points", "turns", "bare_ms", *changes, "default_share_of_raised", "share_low", "share_high")
    return Table(heads, rows)


# ---- Training steps with real collectives, by arm ----


@dataclass(frozen=True)
class Step:
    """The median step of a case under an arm, against the bare one of the same run."""

    run: int
    case: str  # kind and ratio of computation to communication
    arm: str
    change: float  # per cent; negative is faster


def training(root: Path) -> list[Step]:
    """Every arm against bare, and the odd rounds of bare against its even ones: the noise."""
    found, all_samples = [], results.read(root, "two-gpus")["samples"]
    bare = {_case(one): one for one in all_samples if one["arm"] == BARE}
    for one in all_samples:
        if one["arm"] == BARE:
            found += list(_itself(one))
        elif _case(one) in bare:
            change = 100 * (one["median_step_ms"] / bare[_case(one)]["median_step_ms"] - 1)
            found.append(Step(one["run"], _name(one), one["arm"], change))
    return found


def _itself(one: dict[str, Any]) -> Iterator[Step]:
    all_steps = one["ranks"][0]["steps_ms"]
    rounds = [all_steps[at : at + ROUND] for at in range(0, len(all_steps), ROUND)]
    if len(rounds) >= 2:
        odd, even = (statistics.median(chain.from_iterable(rounds[start::2])) for start in (0, 1))
        yield Step(one["run"], _name(one), ITSELF, 100 * (even / odd - 1))


def _case(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["run"], one["kind"], one["ratio"], one["size"]


def _name(one: dict[str, Any]) -> str:
    return f"{one['kind']} {one['ratio']}"


def every_step(root: Path) -> Table:
    rows = [[step.run, step.case, step.arm, rounded(step.change)] for step in training(root)]
    return Table(("run", "case", "arm", "change_percent"), rows)
