#!/usr/bin/env python3
"""Writes the lists in this folder from an unpacked HIP runtime and its headers. Only maintainers run it.

    python tools/simgpu/hip/read_runtime.py symbols libamdhip64.so.6.4.43484 > tools/simgpu/hip/symbols-6.4.txt
    python tools/simgpu/hip/read_runtime.py table include/hip/amd_detail/hip_api_trace.hpp symbols-*.txt \\
        > tools/simgpu/hip/dispatch-table.txt

The first needs readelf. Names of functions are facts of the interface; nothing else of the library is kept.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TABLES = {"hip": "HipDispatchTable", "hip_compiler": "HipCompilerDispatchTable"}
STEP_OR_MEMBER = re.compile(r"STEP_VERSION\s*==?\s*(\d+)|\bt_\w+\s+(\w+?)_fn;")
# Where the version node of a step's functions does not say it: hip_6.5 was released as 7.0.
RELEASES = {"6.5": "7.0"}
HEAD = """\
# Members of the tables that ROCm hands to profilers, in order, behind a size_t with the bytes of the table.
# Written by read_runtime.py from hip_api_trace.hpp. Members are only appended: a runtime has a prefix of this list.
# `step`: HIP_RUNTIME_API_TABLE_STEP_VERSION; `rocm`: the first release with it, by the version nodes of its functions
# (`after 7.2`: in development then)."""


def symbols(library: Path) -> list[str]:
    """name@node of every exported function."""
    command = ["readelf", "-W", "--dyn-syms", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and words[3] == "FUNC" and words[6] != "UND":
            found.append(words[7].replace("@@", "@"))
    return sorted(found)


def table(header: str, struct: str) -> list[tuple[int, list[str]]]:
    """(step, its members) in order."""
    start = header.index(f"struct {struct} {{")
    steps: list[tuple[int, list[str]]] = [(0, [])]
    for match in STEP_OR_MEMBER.finditer(header, start, header.index("\n};", start)):
        if match[2]:
            steps[-1][1].append(match[2])
        elif int(match[1]) > steps[-1][0]:
            steps.append((int(match[1]), []))
    return [step for step in steps if step[1]]


def releases(steps: list[tuple[int, list[str]]], nodes: dict[str, tuple[int, ...]]) -> list[str]:
    """The release of each step: never before that of the step before it."""
    first: tuple[int, ...] = (6, 1)
    found: list[str] = []
    for _, members in steps:
        newest = max((nodes[name] for name in members if name in nodes), default=(0,))
        says = len(found) == 0 or newest >= first
        first = max(first, newest)
        written = ".".join(map(str, first))
        found.append(RELEASES.get(written, written) if says else "")
    for i in reversed(range(len(found))):  # a step without a node came with the next one at the latest
        if not found[i]:
            found[i] = found[i + 1] if i + 1 < len(found) else "after 7.2"
    return found


def main() -> None:
    if sys.argv[1] == "symbols":
        print(*symbols(Path(sys.argv[2])), sep="\n")
        return
    header = Path(sys.argv[2]).read_text()
    lines = [line for path in sys.argv[3:] for line in Path(path).read_text().split()]
    pairs = [line.split("@hip_") for line in lines]
    nodes = {name: tuple(map(int, node.split("."))) for name, node in pairs}
    print(HEAD)
    for name, struct in TABLES.items():
        print(f"table {name}")
        steps = table(header, struct)
        for (step, members), release in zip(steps, releases(steps, nodes)):
            print(f"step {step} rocm {release}", *members, sep="\n")


if __name__ == "__main__":
    main()
