"""The rows of a vendor's driver.def as the compiler reads them: also macros that are two rows, and what it includes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DRIVER_DEF = ROOT / "shim" / "cuda" / "driver.def"
# The macros of which one line is two entry points -> their endings, by vendor.
ENDINGS = {
    "cuda": {"BOTH": ("", "_ptsz"), "COPY_HOST": ("", "_ptds")},
    "hip": {"BOTH": ("", "_spt"), "LAUNCH_BOTH": ("", "_spt")},
}


class Row(NamedTuple):
    name: str
    parameters: str  # with their parentheses
    kind: str  # the macro
    base: str  # what the line names


def parameters_of(row: str) -> str:
    """(CUevent event, CUstream stream) of 2, CUevent, event, CUstream, stream."""
    count, *words = (word.strip() for word in row.split(","))
    pairs = list(zip(words[::2], words[1::2], strict=True))
    if int(count) != len(pairs):
        raise ValueError(f"driver.def: {count} parameters, and {len(pairs)} are listed: {row}")
    return "(" + ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{name}" for kind, name in pairs) + ")"


def rows(path: Path = DRIVER_DEF) -> list[Row]:
    text = path.read_text(encoding="utf-8")
    shared = dict(re.findall(r"^#define (\w+_PARAMETERS) (\d+, .*)$", text, re.M))
    found = []
    for line in text.splitlines():
        include = re.match(r'#include "(\w+\.def)"', line)
        if include:
            found += rows(path.with_name(include[1]))
        row = re.match(r"([A-Z_]+)\((\w+)(?:, \w+)*?(?:, (\w+_PARAMETERS|\d+, .*))?\)$", line)
        if not row:
            continue
        kind, base, written = str(row[1]), str(row[2]), row[3]
        parameters = parameters_of(shared.get(written, written)) if written else "(void)"
        endings = ENDINGS[path.parent.name].get(kind, ("",))
        found += [Row(base + ending, parameters, kind, base) for ending in endings]
    return found
