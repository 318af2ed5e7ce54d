"""Thousands of kernels as a few rows: how many share a family, an architecture, a shape and a launch bound."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from pyshim.footprints.families import EMPTY, Family, Library
from pyshim.footprints.footprint import Footprint

_Key = tuple[str, str, Optional[str], Optional[int]]


def rows(found: Iterable[Footprint], library: Library) -> list[dict[str, Any]]:
    groups: dict[_Key, list[Footprint]] = {}
    totals: Counter[tuple[str, str]] = Counter()
    for kernel in dict.fromkeys(found):  # one that is in several images counts once
        family = family_of(kernel.kernel, library.families)
        if not family or not any(fnmatch.fnmatchcase(kernel.architecture, glob) for glob in library.architectures):
            continue
        name = family.name + (" (empty)" if kernel.registers <= EMPTY else "")
        threads = kernel.required_threads or kernel.max_threads
        groups.setdefault((name, kernel.architecture, family.shape_of(kernel.kernel), threads), []).append(kernel)
        totals[name, kernel.architecture] += 1
    kept = {key: group for key, group in groups.items() if len(group) >= library.least_share * totals[key[:2]]}
    return [_row(key, kept[key]) for key in sorted(kept, key=_order)]


def family_of(kernel: str, families: Sequence[Family]) -> Family | None:
    return next((family for family in families if re.search(family.pattern, kernel)), None)


def _order(key: _Key) -> tuple[Any, ...]:
    """Sort names by the value of numbers in them: sm_80 before sm_100, 64x64 before 128x64."""
    name, architecture, shape, threads = key
    return name, _natural(architecture), _natural(shape or ""), threads or 0


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(digits), "") if digits else (-1, other) for digits, other in re.findall(r"(\d+)|(\D+)", text)]


def _row(key: _Key, group: list[Footprint]) -> dict[str, Any]:
    name, architecture, shape, threads = key
    usual, count = Counter(map(_numbers, group)).most_common(1)[0]
    example = min(kernel.kernel for kernel in group if _numbers(kernel) == usual)
    row: dict[str, Any] = {"family": name, "architecture": architecture}
    if shape:
        row["shape"] = shape
    return {
        **row,
        "threads": threads,
        "kernels": len(group),
        "registers": _spread([kernel.registers for kernel in group]),
        "static_shared_memory": _spread([kernel.static_shared_memory for kernel in group]),
        "usual": {**dict(usual), "kernels": count, "example": example if len(example) <= 100 else example[:97] + "..."},
    }


def _numbers(kernel: Footprint) -> tuple[tuple[str, int], ...]:
    facts = {
        "registers": kernel.registers,
        "static_shared_memory": kernel.static_shared_memory,
        "barriers": kernel.barriers,
        "cluster": kernel.cluster,
        "accumulators": kernel.accumulators,
        "scalars": kernel.scalars,
    }
    return tuple((name, value) for name, value in facts.items() if value is not None)


def _spread(values: list[int]) -> dict[str, int]:
    values.sort()
    return {"least": values[0], "median": values[len(values) // 2], "most": values[-1]}
