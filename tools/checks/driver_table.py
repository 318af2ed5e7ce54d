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


def rows(path: Path = DRIVER_DEF) -> list[Row]:
    text = re.sub(r"\\\n", " ", path.read_text(encoding="utf-8"))
    shared = dict(re.findall(r"^#define (\w+_PARAMETERS)\s+(\(.*\))\s*$", text, re.M))
    found = []
    for line in text.splitlines():
        include = re.match(r'#include "(\w+\.def)"', line)
        if include:
            found += rows(path.with_name(include[1]))
        row = re.match(r"([A-Z_]+)\((\w+)(?:, \w+)*?(?:, (\w+_PARAMETERS|\(.*?\)), .*)?\)$", line)
        if not row:
            continue
        kind, base, written = str(row[1]), str(row[2]), str(row[3] or "(void)")
        parameters = shared.get(written, written)
        endings = ENDINGS[path.parent.name].get(kind, ("",))
        found += [Row(base + ending, parameters, kind, base) for ending in endings]
    return found
