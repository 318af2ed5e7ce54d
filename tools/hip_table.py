"""Writes shim/vendor/hip/dispatch_table.def: where our entry points are in the table of functions that HIP hands out.

    python tools/hip_table.py [--check]

The order is that of tools/simgpu/hip/dispatch-table.txt, the rows are those of driver.def. --check: 1 where the
file differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import driver_table

ROOT = Path(__file__).resolve().parent.parent
ORDER = ROOT / "tools/simgpu/hip/dispatch-table.txt"
HIP = ROOT / "shim/vendor/hip"
HEAD = """\
/* Where the entry points of driver.def are in the table of functions that HIP hands out once (ROCm 6.1 and newer):
 * TABLE(name, place), counted in members of 8 bytes from the beginning, where the size of the table stands. Members are
 * only ever appended (hip_api_trace.hpp of ROCm's clr asserts it). Made from tools/simgpu/hip/dispatch-table.txt by
 * tools/hip_table.py.
 */
"""


def places(text: str) -> dict[str, int]:
    """Name -> place, of the table called hip."""
    found: dict[str, int] = {}
    inside = False
    for line in text.splitlines():
        if line.startswith("table "):
            inside = line == "table hip"
        elif inside and line and not line.startswith(("#", "step ")):
            found[line] = len(found) + 1
    return found


def written(order: dict[str, int], names: list[str]) -> str:
    return HEAD + "".join(f"TABLE({name}, {order[name]})\n" for name in names if name in order)


def main() -> int:
    names = [row.name for row in driver_table.rows(HIP / "driver.def")]
    text = written(places(ORDER.read_text(encoding="utf-8")), names)
    file = HIP / "dispatch_table.def"
    if sys.argv[1:] != ["--check"]:
        file.write_text(text, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != text:
        print("hip_table: dispatch_table.def is not what tools/hip_table.py writes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
