#!/usr/bin/env python3
"""Writes names.def from the lists of names, dispatch-table.txt and api.def, and the version script of one runtime.

python tools/simgpu/hip/names.py > tools/simgpu/hip/names.def
python tools/simgpu/hip/names.py 7 > libamdhip64.so.7.map
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
RELEASES = {5: "5.7", 6: "6.4", 7: "7.2"}
ROW = re.compile(r"^(HIP|HIP_BOTH|ENGINE|ENGINE_BOTH|OTHER|COMPILER|OUTSIDE)\((.*)")
TYPED = ("OTHER", "COMPILER", "OUTSIDE")


def exported(version: int) -> list[tuple[str, str]]:
    """(name, version node) of a runtime."""
    lines = (HERE / f"symbols-{RELEASES[version]}.txt").read_text().split()
    return [(line.split("@")[0], line.split("@")[1]) for line in lines]


def simulated() -> set[str]:
    found = set()
    for line in (HERE / "api.def").read_text().splitlines():
        match = ROW.match(line)
        if match:
            words = match[2].split(", ")
            name = words[1] if match[1] in TYPED else words[0]
            found |= {name, f"{name}_spt"} if match[1].endswith("_BOTH") else {name}
    return found


def tables() -> Iterator[tuple[str, int, str]]:
    """(table, step, member) in order."""
    table, step = "", 0
    for line in (HERE / "dispatch-table.txt").read_text().splitlines():
        words = line.split()
        if words[0] == "table":
            table = words[1]
        elif words[0] == "step":
            step = int(words[1])
        elif words[0] != "#":
            yield table, step, words[0]


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


def main() -> None:
    if len(sys.argv) > 1:
        print(version_script(int(sys.argv[1])), end="")
        return
    members = list(tables())
    names = {name for version in RELEASES for name, _ in exported(version)} | {member for _, _, member in members}
    print("/* Names of HIP: what is not simulated, and the members of ROCm's tables. Written by names.py; do not edit.")
    print(" *   STUB(name)              answers hipErrorNotSupported, and says so once")
    print(" *   MEMBER(name, step)      of HipDispatchTable, in order; step: HIP_RUNTIME_API_TABLE_STEP_VERSION")
    print(" *   COMPILER_MEMBER(name)   of HipCompilerDispatchTable, in order */")
    print(*(f"STUB({name})" for name in sorted(names - simulated())), sep="\n")
    for table, step, member in members:
        print(f"MEMBER({member}, {step})" if table == "hip" else f"COMPILER_MEMBER({member})")


if __name__ == "__main__":
    main()
