"""Reads the names of api.def, and writes the version script of one runtime.

python tools/simgpu/hip/names.py 7 > libamdhip64.so.7.map
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

AT = r"(\d+), ([\d.]+), (\d+), "
ROW = re.compile(rf"^([A-Z_]+)\({AT}(?:{AT})?(?:[\w *]+, )?(\w+)[,)]", re.M)


class Name(NamedTuple):
    name: str
    position: int  # in HipDispatchTable; 0: not there
    node: str
    releases: str


def read() -> list[Name]:
    made = []
    for kind, *both, name in ROW.findall((Path(__file__).resolve().parent / "api.def").read_text(encoding="ascii")):
        for (position, node, releases), suffix in ((both[:3], ""), (both[3:], "_spt")):
            if node:
                made.append(Name(name + suffix, 0 if kind == "COMPILER" else int(position), f"hip_{node}", releases))
    return made


def exported(version: int) -> list[tuple[str, str]]:
    """(name, version node) of a runtime."""
    return [(one.name, one.node) for one in read() if str(version) in one.releases]


def version_script(version: int) -> str:
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, node in exported(version):
        nodes[node].append(name)
    text, before = "", ""
    for node in sorted(nodes, key=lambda node: [int(part) for part in node[4:].split(".")]):
        hidden = "" if before else " local: *;"
        text += f"{node} {{ global: {'; '.join(sorted(nodes[node]))};{hidden} }}{before};\n"
        before = f" {node}"
    return text


if __name__ == "__main__":
    print(version_script(int(sys.argv[1])), end="")
