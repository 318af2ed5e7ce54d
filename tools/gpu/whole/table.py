"""Whole programs: python -m tools.gpu.whole.table FILE... [--csv FILE]

Prints a line for each cell. Of a cell in several files the last counts. --csv: writes a row for each cell, what
is kept; times in ms a step, changes and their 90 % intervals in per cent.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.gpu.whole.cells import put_together

FAMILIES = {
    "stencils, halo by NCCL": ("halo-stream", "computing-stream", "third-stream", "warmed"),
    "stencils, through host memory": ("host-stream", "host-event", "host-polling"),
    "stencils, blocking copies": ("host-copy",),
    "stencils in one order": ("swapped", "one-stream", "synchronised", "equal"),
    "conjugate gradient": ("solver",),
    "transpose of an FFT, in chunks": ("transpose",),
    "training steps with cuBLAS": ("ddp", "fsdp", "fsdp-8", "tensor", "pipeline"),
    "recommender, training": ("recommender",),
    "mixture of experts, Triton": ("experts",),
    "loop that priority speeds up": ("gaining-loop-alone",),
    "loop that priority slows down": ("losing-loop",),
}
SMALL, SMALLEST = 128, "any of these with 128\u00b3 points"  # the host is slower than the GPU
COLUMNS = ("again", "observe", "default", "own", "published", "copies", "copies+default", "nccl", "nccl+default")


def arms(found: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Those that were measured."""
    return tuple(arm for arm in COLUMNS if any(one.get("change", {}).get(arm) for one in found))


def said(value: Any) -> str:
    return "" if value is None else f"{100 * (value[0] if isinstance(value, list) else value):+.1f}"


def line(one: dict[str, Any], columns: Sequence[str] = COLUMNS) -> str:
    if "ms" not in one:
        return f"{one['program']:18} {one['n'] or '':>4} {'; '.join(one['wrong'])}"
    size = f"{one['n']:>4} {one['bits']:>3}" if one["n"] else " " * 8
    words = [said(one["change"].get(arm)) for arm in columns] + [said(one.get("possible"))]
    rest = "; ".join(one["wrong"])
    return f"{one['program']:18} {size} {one['ms']:9.4f} " + " ".join(f"{word:>7}" for word in words) + f"  {rest}"


def table(found: Sequence[dict[str, Any]]) -> str:
    columns = arms(found)
    heads = (*(arm[:7] for arm in columns), "possibl")
    lines = [f"{'program':18} {'n':>4} {'fp':>3} {'bare ms':>9} " + " ".join(f"{head:>7}" for head in heads)]
    lines += (line(one, columns) for one in found)
    lines.append(f"{len(found)} cells, {sum(bool(one['wrong']) for one in found)} wrong")
    return "".join(f"{one}\n" for one in lines)


def family(one: dict[str, Any]) -> str:
    if one["n"] == SMALL:
        return SMALLEST
    return next(name for name, programs in FAMILIES.items() if one["program"] in programs)


def head(made: dict[str, Any]) -> dict[str, Any]:
    """On what it was measured."""
    machine = made["machine"]
    gpus = machine["gpus"]
    found = {"gpu": gpus[0]["name"] if gpus else ""}
    return {**found, **{key: machine[key] for key in ("driver", "nccl", "torch")}, "date": machine["begun"][:10]}


def row(one: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    found = {"program": one["program"], "points": one["n"] or "", "bits": one["bits"] if one["n"] else ""}
    found.update(family=family(one), waits=one["waits"], starts=one["starts"], rounds=one.get("rounds", 0))
    found.update(bare_ms=one.get("ms", ""), possible_percent=percent(one.get("possible")))
    for arm in columns:
        values = one.get("change", {}).get(arm) or (None, None, None)
        for name, value in zip(("percent", "low", "high"), values):
            found[f"{arm}_{name}"] = percent(value)
    return {**found, "raised": one["raised"], "launches": one["launches"], "wrong": "; ".join(one["wrong"])}


def percent(value: float | None) -> float | str:
    return "" if value is None else round(100 * value, 2)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    files = [json.loads(file.read_text(encoding="utf-8")) for file in options.files]
    by_cell = {}
    for made in files:
        for one in put_together(made):
            by_cell[one["program"], one["n"], one["bits"]] = one, head(made)
    found = [one for one, _ in by_cell.values()]
    rows = [{**row(one, arms(found)), **measured} for one, measured in by_cell.values()]
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(table(found), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
