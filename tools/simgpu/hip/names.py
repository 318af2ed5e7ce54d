"""Reads the names of api.def, and writes the version script of the runtime.

python tools/simgpu/hip/names.py > libamdhip64.so.7.map
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

AT = r"(\d+), ([\d.]+), "
TYPED = re.compile(rf"^(?:OTHER|OUTSIDE)\({AT}[^,]+, (\w+),", re.M)
OTHERS = re.compile(rf"^(?:HIP|ENGINE|CALL)(?:_BOTH)?\({AT}(?:{AT})?(\w+),", re.M)


class Name(NamedTuple):
    name: str
    node: str
    position: int = 0  # in HipDispatchTable; 0: not there


def read() -> list[Name]:
    text = (Path(__file__).resolve().parent / "api.def").read_text(encoding="ascii")
    found = [Name(name, f"hip_{node}", int(position)) for position, node, name in TYPED.findall(text)]
    for position, node, position_spt, node_spt, name in OTHERS.findall(text):
        found.append(Name(name, f"hip_{node}", int(position)))
        if node_spt:
            found.append(Name(f"{name}_spt", f"hip_{node_spt}", int(position_spt)))
    return found


def version_script() -> str:
    nodes: dict[str, list[str]] = defaultdict(list)
    for one in read():
        nodes[one.node].append(one.name)
    text, before = "", ""
    for node in sorted(nodes, key=lambda node: [int(part) for part in node[4:].split(".")]):
        hidden = "" if before else " local: *;"
        text += f"{node} {{ global: {'; '.join(sorted(nodes[node]))};{hidden} }}{before};\n"
        before = f" {node}"
    return text


if __name__ == "__main__":
    print(version_script(), end="")
