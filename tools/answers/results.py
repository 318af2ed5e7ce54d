"""The files of tools/gpu/results, read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path("tools/gpu/results")


@functools.cache
def read(root: Path, name: str) -> dict[str, Any]:
    """Return the whole file. Raises SystemExit if it is missing."""
    path = root / FOLDER / f"{name}.json"
    if not path.exists():
        raise SystemExit(f"answers: {path.relative_to(root)} is missing: `tools/gpu/run {name}` measures it")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def samples(root: Path, name: str) -> list[Any]:
    """Return one row for each repetition.

    A file holds `rows`, or `samples` (repetitions packed into lists by tools/gpu/pack.py), or, as tools/gpu/run writes
    it, the lines of `steps`; those get the step's name.
    """
    found = read(root, name)
    if "rows" in found:
        return list(found["rows"])
    if "samples" in found:
        return [row for sample in found["samples"] for row in _unpacked(sample)]
    lines = ((step["step"], line) for step in found["steps"] for line in step["lines"])
    return [{"step": step, **line} for step, line in lines if isinstance(line, dict)]


def _unpacked(sample: Any) -> Iterator[Any]:
    """Values behind "repetitions" are lists of one element a repetition, or a number that all repetitions share."""
    if not isinstance(sample, dict) or "repetitions" not in sample:
        yield sample
        return
    keys = list(sample)
    measured = set(keys[keys.index("repetitions") + 1 :])
    for at in range(sample["repetitions"]):
        row = {
            key: value[at] if key in measured and isinstance(value, list) else value for key, value in sample.items()
        }
        yield {"repetition": at, **{key: value for key, value in row.items() if value is not None}}
