"""Whole programs on two GPUs, and training-like steps by arm: whole.json and two-gpus.json."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tools.answers import results
from tools.answers.table import Table, Value, percent, rounded, span
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.table import best

# Rows of the pages: the programs of tools/gpu/whole/programs.py that wait in the same way, and what else the default
# would have to do to gain more.
FAMILIES = {
    "stencils, halo by NCCL": ("halo-stream", "computing-stream", "third-stream", "warmed"),
    "stencils, through host memory": ("host-stream", "host-event", "host-polling"),
    "stencils, blocking copies": ("host-copy",),
    "stencils, ranks of MPI": ("mpi-stencil",),
    "stencils that cannot overlap more": ("swapped", "one-stream", "synchronised", "equal"),
    "conjugate gradient": ("solver",),
    "transpose of an FFT, in chunks": ("transpose",),
    "recommender (DLRM), training": ("recommender",),
    "mixture of experts, Triton": ("experts",),
    "one token, tensor parallel": ("token",),
    "the same, as a graph": ("token-graph",),
    "DDP step": ("ddp",),
    "FSDP2 step": ("fsdp",),
    "tensor-parallel step": ("tensor",),
    "pipeline step": ("pipeline",),
    "HuggingFace Llama, DDP": ("llama",),
    "JAX, pmap": ("pmap",),
}
ARMS = ("observe", "default", "trial", "streams", "communication", "own", "published")
BARE, ITSELF, WORST = "bare", "bare, against itself", 1.0
ROUND = 8  # steps of two_gpus_cases.py between two turns of an arm
# Arms that are shown; every arm is in training-steps.csv.
POLICIES = {
    "h200": "the default policy",
    "highest": "`priority: highest`",
    "paper": "the published method",
    "room": "`make_room`, `when: always`",
    "room in windows": "`make_room`, `when: overlapping`",
}


@functools.cache
def cells(root: Path) -> list[dict[str, Any]]:
    """Of whole.json, those with an answer."""
    return [cell for cell in put_together(results.read(root, "whole")) if "ms" in cell]


def of_family(root: Path, name: str) -> list[dict[str, Any]]:
    return [cell for cell in cells(root) if cell["program"] in FAMILIES[name]]


def changes(found: Iterable[dict[str, Any]], arm: str) -> list[float]:
    """In per cent."""
    return [100 * cell["change"][arm][0] for cell in found if cell["change"].get(arm)]


def whole(root: Path) -> Table:
    """Ranges over the programs and sizes of a family."""
    rows: list[list[Value]] = []
    for name in FAMILIES:
        found = of_family(root, name)
        if not found:
            continue
        possible = span(100 * cell["possible"] for cell in found if cell.get("possible") is not None)
        single = span(100 * value for value in map(best, found) if value is not None)
        said = (span(changes(found, arm)) for arm in ("observe", "default", "trial"))
        rows.append([name, *said, single, span(changes(found, "published")), possible])
    heads = ("program", "noise, %", "default, %", "trial, %", "best single control, %", "published, %", "possible, %")
    return Table(heads, rows)


def every_whole(root: Path) -> Table:
    rows: list[list[Value]] = []
    for cell in cells(root):
        parts = (cell.get(key) for key in ("computation_ms", "communication_ms", "possible", "predicted"))
        row: list[Value] = [cell["program"], cell["n"] or None, cell["bits"] if cell["n"] else None]
        row += [cell["waits"], cell["expected"], cell["rounds"], cell["starts"], cell["ms"], *parts]
        for arm in ARMS:
            row += [rounded(100 * value) for value in cell["change"].get(arm) or ()] or [None] * 3
        row += [{None: "unsettled", "": "nothing"}.get(cell.get("kept"), cell.get("kept")), cell.get("trial_first")]
        rows.append([*row, "; ".join(cell["wrong"]) or None])
    ends = (f"{arm}{part}" for arm in ARMS for part in ("_percent", "_low", "_high"))
    heads: tuple[str, ...] = (
        "program",
        "points",
        "bits",
        "waits",
        "expected",
        "rounds",
        "starts",
        "bare_ms",
        "computation_ms",
    )
    heads += ("communication_ms", "possible", "predicted")
    return Table((*heads, *ends, "trial_kept", "trial_first", "wrong"), rows)


def by_size(root: Path) -> Table:
    """Stencils in double precision, by exchange and size."""
    rows: list[list[Value]] = []
    for words, name in (("NCCL", "stencils, halo by NCCL"), ("host memory", "stencils, through host memory")):
        double = [cell for cell in of_family(root, name) if cell["bits"] == 64 and cell["program"] != "warmed"]
        for n in sorted({cell["n"] for cell in double}):
            own = [cell for cell in double if cell["n"] == n]
            middle = statistics.median(cell["ms"] for cell in own)
            said = (span(changes(own, arm)) for arm in ("observe", "default", "own", "published"))
            possible = span(100 * cell["possible"] for cell in own if cell.get("possible") is not None)
            rows.append([f"{words}, {n}³", f"{middle:.3f}", *said, possible])
    heads = ("exchange, points a GPU", "ms, bare", "noise, %", "default, %", "own priorities, %", "published, %")
    return Table((*heads, "possible, %"), rows)


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


def by_arm(root: Path) -> Table:
    rows: list[list[Value]] = []
    found = training(root)
    for arm, words in {ITSELF: "noise: bare against itself", **POLICIES}.items():
        rows.append([words, *spread(step.change for step in found if step.arm == arm)])
    return Table(("what runs", "cases", "best, %", "median, %", "worst, %", f"lose over {WORST:g} %"), rows)


def spread(changes: Iterable[float]) -> list[Value]:
    """Count, best, median, worst, and how many lose more than WORST."""
    found = sorted(changes)
    middle = (found[0], statistics.median(found), found[-1])
    return [len(found), *map(percent, middle), sum(value > WORST for value in found)]


def every_step(root: Path) -> Table:
    rows = [[step.run, step.case, step.arm, rounded(step.change)] for step in training(root)]
    return Table(("run", "case", "arm", "change_percent"), rows)
