"""Write shim/hip/dispatch_table.def: the positions of our entry points in HIP's dispatch table.

    python -m tools.generate.hip_table [--check]

The order is that of tools/simgpu/hip/names.def, the rows are those of driver.def. --check: 1 where the
file differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.generate import driver_table

ROOT = Path(__file__).resolve().parents[2]
ORDER = ROOT / "tools/simgpu/hip/names.def"
HIP = ROOT / "shim/hip"
HEAD = """\
/* Positions of the entry points of driver.def in HIP's dispatch table (ROCm 6.1 and newer): TABLE(name, position), in
 * members of 8 bytes. Member 0 is the size of the table. Members are only ever appended, as hip_api_trace.hpp of
 * ROCm's clr asserts. Generated from tools/simgpu/hip/names.def by tools/generate/hip_table.py.
 */
"""


def positions(text: str) -> dict[str, int]:
    """Return the position of each member of HipDispatchTable."""
    return {name: number for number, name in enumerate(re.findall(r"^MEMBER\((\w+)", text, re.M), 1)}


def written(order: dict[str, int], names: list[str]) -> str:
    return HEAD + "".join(f"TABLE({name}, {order[name]})\n" for name in names if name in order)


def main() -> int:
    names = [row.name for row in driver_table.rows(HIP / "driver.def")]
    text = written(positions(ORDER.read_text(encoding="utf-8")), names)
    file = HIP / "dispatch_table.def"
    if sys.argv[1:] != ["--check"]:
        file.write_text(text, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != text:
        print("hip_table: dispatch_table.def is not what tools/generate/hip_table.py writes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
