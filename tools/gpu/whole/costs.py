"""What does the start of a process of a stencil take, and how much memory has it, by arm?

    python -m tools.gpu.whole.costs --built BIN --nccl LIBNCCL [--rounds N]

A line of JSON each: seconds from the start of `overlap-run`, or of the bare program, until it has opened both GPUs and
NCCL, and MiB that are then resident. Arms alternate, one process at a time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tools.gpu.overlap.turns import Ranks
from tools.gpu.whole.measure import ARMS, START
from tools.gpu.whole.programs import Cell, Place

COMPARED = ("bare", "observe", "default", "trial")
CELL = Cell("halo-stream", "", "", 128)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=Path, required=True)
    parser.add_argument("--nccl", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    place = Place(options.built, options.nccl, "")
    for number in range(options.rounds):
        for arm in COMPARED:
            policy, folder = ARMS[arm], tempfile.mkdtemp(prefix="costs-")
            before = ["overlap-run", "--quiet", "--policy", policy, "--report", folder, "--"] if policy else []
            begun = time.monotonic()
            ranks = Ranks(arm, place.command(CELL, False, before), {}, 1, 29100)
            answer = ranks.answers(START)[0]
            seconds = time.monotonic() - begun
            memory = psutil.Process(ranks.processes[0].pid).memory_info().rss / 2**20
            ranks.end()
            row = {"round": number, "arm": arm, "start_s": round(seconds, 4), "resident_mib": round(memory, 2)}
            print(json.dumps({**row, "ready": bool(answer)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
