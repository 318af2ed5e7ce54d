"""How long `overlap report` takes over a large job, and how much it says.

Every rank is a real process with the library in it, on a simulated H100; only the host names are made up. The first
reading is not counted: it is the disk's. Prints a line, or one object with --json.

    python -m tools.bench.job [--processes N] [--per-host N] [--keep DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyshim.launch import plan
from pyshim.launch.environment import environment

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

POLICY = "h100-paper"
LAUNCHES = 4
ROUNDS = 5


def build(folder: Path) -> Path:
    """Build the program that is a rank, and return its path."""
    program, host = folder / "rank", folder / "librankhost.so"
    command = [os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE"]
    subprocess.run([*command, "-shared", "-fPIC", str(HERE / "rank_host.c"), "-o", str(host)], check=True)
    linked = [str(HERE / "rank.c"), plan.SIMULATED_DRIVER, str(host), f"-Wl,-rpath,{folder}"]
    subprocess.run([*command, *linked, "-o", str(program)], check=True)
    return program


def surroundings(report: Path, gpus: int, policy: str = POLICY) -> dict[str, str]:
    """Return the environment that a site's prolog sets for every process; there is no overlap-run."""
    base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(report)}
    made = plan.make(plan.Request(policy=policy, simulate=f"h100,{gpus}"), base)
    return {**environment(base, made.settings._replace(quiet=True)), "OVERLAP_REPORT": str(report)}


def run(
    program: Path,
    base: Mapping[str, str],
    processes: int,
    per_host: int,
    otherwise: Mapping[int, Mapping[str, str]] | None = None,
    daemon: Sequence[str] = (),
) -> None:
    """Run all ranks of one job, a few at a time.

    otherwise: variables by rank; LAUNCHES is the program's argument. daemon: a command that starts its arguments."""
    running: list[subprocess.Popen[bytes]] = []
    for rank in range(processes):
        place = {"RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_RANK": str(rank % per_host)}
        env = {**base, **place, "HOST": f"node{rank // per_host:03}", **(otherwise or {}).get(rank, {})}
        words = [*daemon, str(program), env.get("LAUNCHES", str(LAUNCHES))]
        running.append(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL))
        while len(running) > 2 * (os.cpu_count() or 1) or (rank == processes - 1 and running):
            if running.pop(0).wait():
                raise SystemExit("job.py: a rank failed")


def read(*arguments: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    command = [sys.executable, "-m", "pyshim", "report", *arguments]
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return time.monotonic() - began, done


def main() -> int:
    parser = argparse.ArgumentParser(description="how long `overlap report` takes over a large job")
    parser.add_argument("--processes", type=int, default=1000, metavar="N")
    parser.add_argument("--per-host", type=int, default=8, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the pages there, and keep them")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        report = options.keep or Path(scratch) / "report"
        report.mkdir()
        began = time.monotonic()
        run(build(Path(scratch)), surroundings(report, options.per_host), options.processes, options.per_host)
        made = time.monotonic() - began
        texts = [read(str(report)) for _ in range(ROUNDS + 1)][1:]
        objects = [read(str(report), "--json") for _ in range(ROUNDS)]
    result = {
        "processes": len(json.loads(objects[0][1].stdout)["processes"]),
        "made_s": round(made, 2),
        "text_s": round(statistics.median(seconds for seconds, _ in texts), 3),
        "text_lines": texts[0][1].stderr.count("\n"),
        "json_s": round(statistics.median(seconds for seconds, _ in objects), 3),
        "json_bytes": len(objects[0][1].stdout),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"{result['processes']:,} processes, made in {result['made_s']} s: overlap report takes "
            f"{result['text_s']} s for {result['text_lines']} lines, with --json {result['json_s']} s for "
            f"{result['json_bytes']:,} bytes (medians of {ROUNDS})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
