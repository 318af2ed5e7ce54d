"""Bare against shimmed: python -m tools.gpu.correctness --out FILE [--only TEXT ...] [--jobs N] [--build DIR]

A row for each program and policy: {program, policy, same, exit_bare, exit_shimmed, launches, shaped, raised, refused,
seen_by_profiler, compared, itself, faults}. `itself`: results that differ between two bare runs;
they are not compared.
Besides, our occupancy and the planner's promises against the driver's answers. `not_run`: what --limit left no time
for. Exit status: 0 no fault and all was run, else 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.gpu import compare_occupancy, machine, needs, product
from tools.gpu.build import build
from tools.gpu.correctness.compare import Bench
from tools.gpu.correctness.programs import POLICIES, Program, table
from tools.gpu.files import write

GPU = Path(__file__).resolve().parents[1]

OCCUPANCY = "occupancy"
INJECTED = "libinjection.so"
SAMPLES, PLANS = 2500, 30000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="programs with one of these in their name"
    )
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4), metavar="N")
    parser.add_argument("--build", type=Path, metavar="DIR", default=Path("build/gpu/bin"))
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS", help="for all of it")
    options = parser.parse_args()
    until = time.monotonic() + options.limit
    chosen = [one for one in table() if not options.only or any(text in one.name for text in options.only)]
    lacking = {one.name: needs.missing((*one.needs, "nvcc", "overlap-run")) for one in chosen}
    for name, lacks in lacking.items():
        if lacks:
            print(f"correctness: {name}: skipped: it needs {'; '.join(lacks)}", file=sys.stderr)
    chosen = [one for one in chosen if not lacking[one.name]]
    occupancy = not options.only or OCCUPANCY in options.only
    if not needs.gpus():
        return 1
    prepare(chosen, occupancy, options.build.resolve())
    made: dict[str, Any] = {
        "version": 1,
        "set": "correctness",
        "machine": machine.describe(),
        "settings": {
            "policies": {
                arm: os.path.relpath(said, product.ROOT) if os.path.isabs(said) else said
                for arm, said in POLICIES.items()
            },
            "jobs": options.jobs,
        },
        "skipped": {name: lacks for name, lacks in lacking.items() if lacks},
        "not_run": [],
        "occupancy": None,
        "rows": [],
    }
    faults = bool(made["skipped"])
    if occupancy:
        said = compare_occupancy.compare(str(options.build.resolve() / OCCUPANCY), None, SAMPLES, PLANS)
        made["occupancy"] = said
        write(options.out, made)
        faults = faults or compare_occupancy.wrong(said)
        samples, promised = sum(said["samples"].values()), sum(said["planner"]["promises"].values())
        different = {"arithmetic": said["different"], "planner": said["planner"]["broken"]}
        print(f"correctness: {samples} samples, {promised} promises, different: {different}", file=sys.stderr)
    begun, told = time.monotonic(), 0

    def finished(rows: list[dict[str, Any]]) -> None:
        nonlocal told
        for row in rows[told:]:
            verdict = "; ".join(row["faults"]) or "same"
            print(
                f"correctness: [{time.monotonic() - begun:.0f}s] {row['program']}, {row['policy']}: {verdict}",
                file=sys.stderr,
            )
        told, made["rows"], made["not_run"] = len(rows), rows, bench.not_run
        write(options.out, made)

    with tempfile.TemporaryDirectory(prefix="overlap-correctness-") as folder:
        bench = Bench(options.build.resolve(), Path(folder), product.environment(Path(folder) / "commands"), until)
        rows = bench.all(chosen, options.jobs, finished)
    write(options.out, made)
    for name in bench.not_run:
        print(f"correctness: not run, out of time: {name}", file=sys.stderr)
    faults = faults or bool(bench.not_run) or any(row["faults"] for row in rows)
    wrong = sum(bool(row["faults"]) for row in rows)
    print(f"correctness: {len(rows)} rows, {wrong} with faults", file=sys.stderr)
    return 1 if faults else 0


def prepare(programs: list[Program], occupancy: bool, built: Path) -> None:
    """Build what the programs need."""
    targets = [name for one in programs for name in one.builds]
    targets += [INJECTED] * any(one.counted == "cupti" for one in programs) + [OCCUPANCY] * occupancy
    build(targets, built, needs.gpus()[0][1])


if __name__ == "__main__":
    sys.exit(main())
