"""Writes the version script of one runtime from names.def.

python tools/simgpu/hip/names.py 7 > libamdhip64.so.7.map
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROW = re.compile(r"^(?:MEMBER|COMPILER|OUTSIDE)\((\w+), ([\d.]+), (\d+)", re.M)


def exported(version: int) -> list[tuple[str, str]]:
    """(name, version node) of a runtime."""
    rows = ROW.findall((Path(__file__).resolve().parent / "names.def").read_text(encoding="ascii"))
    return [(name, f"hip_{node}") for name, node, releases in rows if str(version) in releases]


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
