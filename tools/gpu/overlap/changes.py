"""What each arm changes against `plain`, one line a cell; and how far a simulated run is from a real one."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.gpu.overlap.arms import blocks_of
from tools.gpu.overlap.servers import Failed

NOT_COMPARED = ("plain", "computation", "communication")
UNLIKE = ("memcpy", "copy-engine")  # the simulated GPU copies in its own way


def write(file: Path, real: Path | None) -> int:
    runs = _runs(file)
    if real:
        measured = {cell["cell"]: of(cell) for cell in _runs(real)[0]["cells"]}
        lines = [f"{run['rule']}: {line}" for run in runs for line in _apart(run, measured)]
    else:
        lines = [
            f"{run['rule'] or 'measured'}: {cell['cell']}: "
            + ", ".join(f"{arm} {x:+.1f}" for arm, x in of(cell).items())
            for run in runs
            for cell in run["cells"]
        ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def of(cell: Mapping[str, Any]) -> dict[str, float]:
    """Per cent by arm, medians of ratios. Arms are paired by index (README.md)."""
    plain = cell["arms"].get("plain", {}).get("ms", [])
    return {
        arm: statistics.median(mine / base for mine, base in zip(row["ms"], plain)) * 100 - 100
        for arm, row in cell["arms"].items()
        if plain and arm not in NOT_COMPARED
    }


def _apart(run: Mapping[str, Any], measured: Mapping[str, Mapping[str, float]]) -> list[str]:
    """By arm, all sizes of a shape together: the mean distance over the primary cells, in points of per cent."""
    distances: dict[str, list[float]] = {}
    for cell in run["cells"]:
        for arm, change in of(cell).items():
            if cell["primary"] and arm not in UNLIKE and arm in measured.get(cell["cell"], {}):
                blocks = blocks_of(arm)
                name = arm if blocks is None else arm.replace(f"-{blocks}", "", 1)
                distances.setdefault(name, []).append(abs(change - measured[cell["cell"]][arm]))
    return [f"{arm} {statistics.mean(found):.1f}" for arm, found in distances.items()]


def _runs(file: Path) -> list[Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["runs"]
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror}", None, 2) from None
    except (ValueError, KeyError, TypeError):
        raise Failed(f"{file}: no results of the suite", "standins.py run --out FILE", 2) from None
    return list(found)
