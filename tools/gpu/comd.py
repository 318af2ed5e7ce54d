"""What does a miniapp that is not ours take by arm? CoMD-CUDA, NVIDIA's molecular dynamics; README.md: how to build it.

    python -m tools.gpu.comd CHECKOUT --out FILE.json [--processes 7] [--sizes 30 49 70 100] [--steps 200]
                             [--only ARM...] [--env ARM=FILE...] [--policy ARM=POLICY...] [--limit SECONDS]

CHECKOUT holds `pots/` and the binaries `plain` and `own`, which has the priorities that CoMD's authors give two streams
(--built: another folder). Each round runs every arm once, in random order; a process is one run. The figure is 1000 / X
of the line "Average atom rate: X atoms/us": nanoseconds an atom and step, less is better. `bare` and `bare2` are the
same, so their difference is noise. An arm whose name begins with `own` runs that binary. --env: lines NAME=VALUE that
overlap-run would set (`overlap env`), for a machine without it. Writes JSON, and beside it CSV: a row an arm, with its
median, range, and change from `bare` in per cent.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.files import write

SIZES = (30, 49, 70, 100)  # unit cells along an edge, of 4 atoms each
LONG = (30, 4000)  # one size with so many steps
ARMS = ("bare", "bare2", "observe", "default", "own")
POLICIES = {"observe": "observe", "default": "default"}
RATE = re.compile(r"Average atom rate:\s*([\d.]+) atoms/us")
LIMIT = 1500.0
ONE = 300.0  # seconds of patience with a process
HEADS = ("cells", "steps", "arm", "processes", "median_ns", "low_ns", "high_ns", "change_percent", "driver", "date")


def variables(file: Path) -> dict[str, str]:
    """Return the variables of a file with a NAME=VALUE on each line. Raises SystemExit on any other line."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.removeprefix("export ").strip().partition("=")
        if not equals and name:
            raise SystemExit(f"comd: {file}: not NAME=VALUE: {line[:80]}")
        if equals:
            found[name] = value.strip("'\"")
    return found


def command(arm: str, options: argparse.Namespace, cells: int, steps: int) -> list[str]:
    binary = str((options.built or options.checkout) / ("own" if arm.startswith("own") else "plain"))
    edge = str(cells)
    words = [binary, "-e", "-a", "1", "-x", edge, "-y", edge, "-z", edge, "-m", "thread_atom", "-N", str(steps)]
    if arm in options.environments or arm not in options.policies:
        return words
    return ["overlap-run", "--quiet", "--policy", options.policies[arm], "--", *words]


def run(arm: str, options: argparse.Namespace, cells: int, steps: int) -> dict[str, Any]:
    """Run one process; return its figure, or what was wrong."""
    row: dict[str, Any] = {"cells": cells, "steps": steps, "arm": arm}
    environment = {**os.environ, **options.environments.get(arm, {})}
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command(arm, options, cells, steps),
            cwd=options.checkout,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ONE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {**row, "failed": str(error)[:300]}
    rate = RATE.search(done.stdout)
    row["seconds"] = round(time.monotonic() - begun, 2)
    if done.returncode or not rate or not float(rate[1]):
        return {**row, "failed": f"status {done.returncode}: {(done.stderr or done.stdout)[-300:]}"}
    return {**row, "ns": round(1000 / float(rate[1]), 4)}


def jobs(options: argparse.Namespace) -> list[tuple[int, int, str]]:
    """Return (cells, steps, arm) of every process, in rounds; each round has every arm of every size once."""
    mixed, made = random.Random(options.seed), list[tuple[int, int, str]]()
    sizes = [(cells, options.steps) for cells in options.sizes]
    if LONG[0] in options.sizes and options.long:
        sizes.append(LONG)
    for _ in range(options.processes):
        for cells, steps in sizes:
            made += [(cells, steps, arm) for arm in mixed.sample(options.arms, len(options.arms))]
    return made


def table(rows: Sequence[dict[str, Any]], head: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each size, number of steps and arm, in the order of their first process."""
    found: dict[tuple[int, int, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["cells"], row["steps"], row["arm"]), [])
        if "ns" in row:
            found[row["cells"], row["steps"], row["arm"]].append(row["ns"])
    made = []
    for cells, steps, arm in sorted(found, key=lambda key: (key[1], key[0], order(key[2]))):
        own, bare = found[cells, steps, arm], found.get((cells, steps, "bare"))
        if not own:
            continue
        median = statistics.median(own)
        change = round(100 * (median / statistics.median(bare) - 1), 2) if bare else None
        values = (cells, steps, arm, len(own), round(median, 4), min(own), max(own), change)
        made.append(dict(zip(HEADS, (*values, head.get("driver"), str(head.get("begun"))[:10]))))
    return made


def order(arm: str) -> int:
    return ARMS.index(arm) if arm in ARMS else len(ARMS)


def pairs(words: Sequence[str]) -> dict[str, str]:
    if wrong := [word for word in words if "=" not in word]:
        raise SystemExit(f"comd: not ARM=VALUE: {wrong[0]}")
    return dict(word.split("=", 1) for word in words)


def keep(options: argparse.Namespace, made: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = table(rows, made["machine"])
    write(options.out, {**made, "medians": found, "rows": rows})
    with options.out.with_suffix(".csv").open("w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, HEADS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("COMD")
    parser.add_argument("checkout", type=Path, nargs="?" if folder else None, default=folder and Path(folder))
    parser.add_argument("--built", type=Path, help="folder of `plain` and `own`, if it is not CHECKOUT")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=7, help="of each arm (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--no-long", dest="long", action="store_false", help=f"leave out {LONG[0]} with {LONG[1]} steps"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="ARM", help=f"of {', '.join(ARMS)}, and of --policy")
    parser.add_argument("--env", nargs="+", default=[], metavar="ARM=FILE")
    parser.add_argument(
        "--policy", nargs="+", default=[], metavar="ARM=POLICY", help="another policy, or a further arm"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which no process is begun")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.checkout = options.checkout.resolve()
    options.built = options.built.resolve() if options.built else None
    options.policies = {**POLICIES, **pairs(options.policy)}
    options.environments = {arm: variables(Path(file)) for arm, file in pairs(options.env).items()}
    further = [arm for arm in (*options.policies, *options.environments) if arm not in ARMS]
    options.arms = [arm for arm in (*ARMS, *dict.fromkeys(further)) if not options.only or arm in options.only]
    begun = time.monotonic()
    made: dict[str, Any] = {"version": 1, "set": "comd", "machine": machine.describe()}
    made["settings"] = {"processes": options.processes, "policies": options.policies, "arms": options.arms}
    rows: list[dict[str, Any]] = []
    all_ = jobs(options)
    for number, (cells, steps, arm) in enumerate(all_):
        if time.monotonic() - begun > options.limit:
            made["not_measured"] = f"{len(all_) - number} of {len(all_)} processes: out of time"
            break
        rows.append(run(arm, options, cells, steps))
        if number % len(options.arms) == len(options.arms) - 1:
            keep(options, made, rows)
            print(f"[{time.monotonic() - begun:.0f} s] {number + 1} of {len(all_)}", file=sys.stderr, flush=True)
    made["seconds"] = round(time.monotonic() - begun)
    found = keep(options, made, rows)
    for one in found:
        print(f"{one['cells']:>4} {one['steps']:>5} {one['arm']:10} {one['median_ns']:9.3f} ns"
              f" [{one['low_ns']:.3f} {one['high_ns']:.3f}] {one['change_percent'] or 0:+6.2f} %")  # fmt: skip
    failed = [row for row in rows if "failed" in row]
    for row in failed[:5]:
        print(f"comd: {row['arm']}, {row['cells']}: {row['failed']}", file=sys.stderr)
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
