"""Compares what a driver says of occupancy with the library's own arithmetic; one JSON object.

python tools/gpu/compare_occupancy.py OCCUPANCY.csv GPU    (the output of occupancy.cu; GPU: a key such as h100)
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from typing import Any

from pyshim import _native


def known(key: str) -> Any:
    library, gpu = _native.library(), _native.ffi.new("struct overlap_gpu *")
    index = 0
    while library.overlap_gpu_known(index, gpu):
        if _native.text(_native.ffi.cast("char *", gpu.key)) == key:
            return gpu
        index += 1
    raise SystemExit(f"{key}: no such GPU")


def main() -> int:
    library, gpu = _native.library(), known(sys.argv[2])
    footprint = _native.ffi.new("struct overlap_footprint *")
    samples: Counter[str] = Counter()
    different: Counter[str] = Counter()
    shown: list[dict[str, int]] = []
    registers, answers = set(), Counter()  # type: set[int], Counter[int]
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = {name: int(value) for name, value in line.items()}
            footprint.threads, footprint.registers = row["threads"], row["registers"]
            footprint.static_shared, footprint.dynamic_shared = row["static"], row["dynamic"]
            ours = library.overlap_occupancy_of(gpu, footprint).blocks
            name = f"carveout {row['carveout']}"
            samples[name] += 1
            registers.add(row["registers"])
            answers[row["blocks"]] += 1
            if ours != row["blocks"]:
                different[name] += 1
                if len(shown) < 40:
                    shown.append({**row, "ours": ours})
    result = {
        "gpu": sys.argv[2],
        "samples": samples,
        "different": different,
        "registers": sorted(registers),
        "blocks": dict(sorted(answers.items())),
        "examples": shown,
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
