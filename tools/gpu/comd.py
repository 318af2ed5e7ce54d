"""What does CoMD pay and gain? A molecular dynamics miniapp that nobody here wrote, with and without the library.

    python3 -m tools.gpu.comd --build CHECKOUT DIR                  # of github.com/NVIDIA/CoMD-CUDA: DIR/own and DIR/plain
    python3 -m tools.gpu.comd --programs DIR --out FILE [--sizes 30:200 70:200] [--processes 7] [--arms ARM=POLICY ...]

`own` is CoMD as published: its authors give the stream of boundary cells the greatest priority. `plain` creates the same
streams without priorities. Each process is one arm at one size, N^3 cells of the lattice and so many steps; all take
turns. `bare` is measured twice as two arms, whose difference is the noise. The figure is nanoseconds an atom and step:
1,000 over CoMD's own "Average atom rate". DIR holds CoMD's folder `pots`, too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.files import write

SIZES = ("30:200", "49:200", "70:200", "100:200", "30:4000")
POLICIES = {"observe": "observe", "default": "default"}
RATE = re.compile(r"Average atom rate:\s+([0-9.]+) atoms/us")
PLAIN = re.compile(r"cudaStreamCreateWithPriority\(&flat->([a-z_]*), 0, -?[01]\)")
# What newer compilers and GPUs want: votes and shuffles with a mask of threads, and CUB of the toolkit.
COMPAT = """#ifdef __CUDACC__
#include <cuda_runtime.h>
#include <cub/cub.cuh>
#define __ballot(p) __ballot_sync(__activemask(), (p))
#define __any(p) __any_sync(__activemask(), (p))
#ifdef __CUDA_ARCH__
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#endif
#endif
"""
FLAGS = "-DMAXATOMS=64 -DCOMD_DOUBLE -O2 -DNDEBUG -lineinfo -arch=sm_90 -std=c++17 -I../cub -include compat.h"


def build(checkout: Path, out: Path, cuda: str) -> None:
    """Make own, then plain, from a checkout whose files are changed for that. cuda: the toolkit's folder."""
    out.mkdir(parents=True, exist_ok=True)
    source = checkout / "src-mpi"
    cub = next(path for path in (Path(cuda) / "include/cccl/cub", Path(cuda) / "include/cub") if path.is_dir())
    (checkout / "cub").mkdir(exist_ok=True)
    (checkout / "cub/cub").unlink(missing_ok=True)
    (checkout / "cub/cub").symlink_to(cub)
    (source / "compat.h").write_text(COMPAT, encoding="utf-8")
    shutil.copy(source / "Makefile.EAM", source / "Makefile")
    command = ["make", "CC=gcc -fcommon", "DO_MPI=OFF", f"CUDA_HOME={cuda}", f"NVCC_FLAGS={FLAGS}"]
    streams = source / "gpu_utility.c"
    for name in ("own", "plain"):
        if name == "plain":
            text = streams.read_text(encoding="utf-8")
            streams.write_text(PLAIN.sub(r"cudaStreamCreate(&flat->\1)", text), encoding="utf-8")
        subprocess.run(["make", "clean"], cwd=source, check=True)
        subprocess.run(command, cwd=source, check=True)
        shutil.copy(checkout / "bin/CoMD-cuda", out / name)
    shutil.copytree(checkout / "pots", out / "pots", dirs_exist_ok=True)


def once(programs: Path, arm: str, policy: str | None, size: str) -> float | None:
    """Run one process; return nanoseconds an atom and step, or None if it failed."""
    n, steps = size.split(":")
    program = "./own" if arm == "own" else "./plain"
    before = ["overlap-run", "--policy", policy, "--"] if policy else []
    command = [*before, program, "-e", "-a", "1", "-x", n, "-y", n, "-z", n, "-m", "thread_atom", "-N", steps]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, check=False)
    found = RATE.search(done.stdout)
    return round(1000 / float(found[1]), 4) if found and not done.returncode else None


def cells(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By size and arm: median, least, greatest, and the change of the median against both bare arms together."""
    made = []
    for size in dict.fromkeys(row["size"] for row in rows):
        taken: dict[str, list[float]] = {}
        for row in rows:
            if row["size"] == size and row["ns"]:
                taken.setdefault(row["arm"], []).append(row["ns"])
        bare = statistics.median([*taken.get("bare", []), *taken.get("bare2", [])])
        for arm, ns in taken.items():
            middle = statistics.median(ns)
            change = round(middle / bare - 1, 4)
            made.append({"size": size, "arm": arm, "ns": middle, "range": [min(ns), max(ns)], "change": change})
    return made


def table(found: Sequence[dict[str, Any]]) -> str:
    """One line a size: ns an atom and step of each arm, and its change."""
    lines = []
    for size in dict.fromkeys(cell["size"] for cell in found):
        said = [f"{c['arm']} {c['ns']:.3f} ({c['change']:+.1%})" for c in found if c["size"] == size]
        lines.append(f"{size:8} {'  '.join(said)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", nargs=2, type=Path, metavar=("CHECKOUT", "DIR"))
    parser.add_argument("--cuda", default=os.environ.get("CUDA_HOME", "/usr/local/cuda"), help="the toolkit's folder")
    parser.add_argument("--programs", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="N:STEPS")
    parser.add_argument("--processes", type=int, default=7, help="of each arm at each size")
    parser.add_argument("--arms", nargs="+", default=[], metavar="ARM=POLICY", help="further arms")
    parser.add_argument("--limit", type=float, default=560, help="seconds after which no round is begun")
    options = parser.parse_args(arguments)
    if options.build:
        build(*options.build, options.cuda)
        return 0
    if not options.programs or not options.out:
        parser.error("needed: --programs and --out, or --build")
    begun = time.monotonic()
    arms: dict[str, str | None] = {"bare": None, **POLICIES, "own": None, "bare2": None}
    arms.update(one.split("=", 1) for one in options.arms)
    made = {"version": 1, "set": "comd", "machine": machine.describe(), "arms": arms}
    rows: list[dict[str, Any]] = []
    for number in range(options.processes):
        for size in options.sizes:
            if time.monotonic() - begun > options.limit:
                break
            for arm, policy in arms.items():
                rows.append({"size": size, "arm": arm, "ns": once(options.programs, arm, policy, size)})
        print(f"[{time.monotonic() - begun:.0f} s] process {number + 1} of each", file=sys.stderr, flush=True)
        write(options.out, {**made, "cells": cells(rows), "rows": rows})
    print(table(cells(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
