"""Does a trial keep the right arm, after how long, and what does trying cost? The programs of critical.py.

    python -m tools.gpu.trial run --program BIN/stencil --nccl LIBNCCL --out FILE [--only PROGRAM...] [--sizes N...]
    python -m tools.gpu.trial table FILE

Each arm of policies/trial-h200.yaml runs by itself, in processes of their own and in random order; then the trial,
twice: the second one begins with what the first one knew. A trial is right if it kept the fastest arm, an arm within
WORTH of it, or none where none gains WORTH over the reference. `first` compares the first ITERATIONS iterations of the
trial with those of the reference: what trying costs. What `overlap report --json` says of the trial is kept whole.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.critical import STENCILS, STEPS, TRAPS
from tools.gpu.files import write
from tools.gpu.overlap.turns import END, Ranks

POLICIES = Path(__file__).resolve().parent / "policies"
REFERENCE, TRIAL = "observe", str(POLICIES / "trial-h200.yaml")
ARMS = {
    REFERENCE: REFERENCE,
    "critical-streams": "critical-streams",
    "raised-communication": "raised-communication",
    "h200": "h200",
    "published": str(POLICIES / "published.yaml"),
}
SIZES, TRAPS_N = (192, 256, 384), 256
ITERATIONS = 1000  # of which the cost is shown
WORTH = 0.01  # two arms closer than this are equally good: processes differ by as much
TRIAL_SECONDS = 6.0  # of a trial, about
START, TURN = 90.0, 60.0  # seconds of patience


@dataclass(frozen=True)
class Cell:
    program: str
    n: int  # 0: a training step, of two ranks

    @property
    def batch(self) -> int:
        return 100 if self.n else 2


def cells(only: Sequence[str] | None, sizes: Sequence[int]) -> list[Cell]:
    """Most important first: what is cut are the later ones."""
    made = [Cell(name, 256) for name in (*STENCILS, *TRAPS)] + [Cell(name, 0) for name in STEPS]
    made += [Cell(name, n) for n in sizes if n != TRAPS_N for name in STENCILS]
    return [cell for cell in made if not only or cell.program in only]


class Process:
    """A program behind overlap-run, with a report."""

    def __init__(self, cell: Cell, policy: str, options: argparse.Namespace, port: int) -> None:
        self.cell, self.folder = cell, tempfile.mkdtemp(prefix="trial-")
        program = [options.program, options.nccl, cell.program, str(cell.n), "0"]
        if not cell.n:
            program = [sys.executable, "-m", "tools.gpu.whole.rank", cell.program]
        command = ["overlap-run", "--quiet", "--policy", policy, "--report", self.folder, "--", *program]
        self.ranks = Ranks(f"{cell.program} {cell.n} {policy}", command, {}, 1 if cell.n else 2, port)
        self.ranks.answers(START)

    def batches(self, count: int) -> list[float]:
        """Return milliseconds of an iteration, by batch."""
        answer = self.ranks.ask(["whole", count, self.cell.batch], TURN)[0]
        return list(answer["ms"]) if answer else []

    def end(self) -> tuple[str, dict[str, Any]]:
        """Return the digest, and what the report says."""
        self.ranks.tell(END)
        self.ranks.end()
        said = subprocess.run(
            ["overlap", "report", self.folder, "--json"], capture_output=True, text=True, check=False
        ).stdout
        return str((self.ranks.last[0] or {}).get("digest")), json.loads(said or "{}")


def alone(cell: Cell, policy: str, options: argparse.Namespace, port: int) -> dict[str, Any]:
    process = Process(cell, policy, options, port)
    first = process.batches(ITERATIONS // cell.batch if cell.n else 5)
    more = process.batches(10)
    digest, _ = process.end()
    return {"first_ms": statistics.mean(first) if first else None, "ms": more, "digest": digest}


def tried(cell: Cell, options: argparse.Namespace, port: int, ms: float) -> dict[str, Any]:
    process = Process(cell, TRIAL, options, port)
    count = max(20, int(1e3 * TRIAL_SECONDS / (ms * cell.batch)))
    found = process.batches(count)
    digest, report = process.end()
    first = found[: ITERATIONS // cell.batch if cell.n else 5]
    return {
        "first_ms": statistics.mean(first) if first else None,
        "ms": [round(value, 5) for value in found],
        "last_ms": statistics.median(found[-len(found) // 5 :]) if found else None,
        "digest": digest,
        "trial": report.get("trial"),
    }


def measured(cell: Cell, options: argparse.Namespace, port: int) -> dict[str, Any]:
    order = list(ARMS.items())
    random.Random(f"{cell.program}{cell.n}").shuffle(order)
    arms = {name: alone(cell, policy, options, port + at) for at, (name, policy) in enumerate(order)}
    reference = statistics.median(arms[REFERENCE]["ms"] or [1.0])
    trials = [tried(cell, options, port + 10 + at, reference) for at in range(options.trials)]
    return {"program": cell.program, "n": cell.n, "arms": {name: arms[name] for name in ARMS}, "trials": trials}


def run(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    made: dict[str, Any] = {"version": 1, "set": "trial", "machine": machine.describe(), "rows": [], "not_measured": []}
    for number, cell in enumerate(cells(options.only, options.sizes)):
        if time.monotonic() > begun + options.limit:
            made["not_measured"].append(f"{cell.program} {cell.n}")
            continue
        made["rows"].append(measured(cell, options, 29800 + 20 * number))
        print(line(made["rows"][-1]), file=sys.stderr, flush=True)
        write(options.out, {**made, "seconds": round(time.monotonic() - begun)})
    print(table(made["rows"]), end="")
    return 0


# ---- what it says ----


def medians(row: dict[str, Any]) -> dict[str, float]:
    return {name: statistics.median(arm["ms"]) for name, arm in row["arms"].items() if arm["ms"]}


def kept_of(trial: dict[str, Any]) -> str | None:
    """Return the arm that all ranks have kept, the reference where they found that none gains; None: not settled."""
    outcomes = (trial.get("trial") or {}).get("outcomes", [])
    if len(outcomes) != 1:
        return None
    return {"kept": outcomes[0]["arm"], "nothing": REFERENCE}.get(outcomes[0]["outcome"])


def is_right(row: dict[str, Any], kept: str | None) -> bool:
    took = medians(row)
    best = min(took, key=lambda name: took[name])
    if kept is None:
        return False
    mine = took.get(kept, took[REFERENCE])
    return mine <= took[best] * (1 + WORTH)


def line(row: dict[str, Any]) -> str:
    took = medians(row)
    if REFERENCE not in took:
        return f"{row['program']} {row['n']}: a process failed"
    reference = took[REFERENCE]
    changes = " ".join(f"{name} {took[name] / reference - 1:+.1%}" for name in took if name != REFERENCE)
    said = []
    for trial in row["trials"]:
        kept = kept_of(trial)
        first, last = ((trial.get(key) or 0) / reference - 1 for key in ("first_ms", "last_ms"))
        word = "right" if is_right(row, kept) else "not settled" if kept is None else "WRONG"
        said.append(f"kept {kept} ({word}), first {first:+.1%}, last {last:+.1%}")
    digests = {one["digest"] for one in row["arms"].values()}
    wrong = f"; digests differ: {sorted(digests)}" if len(digests) > 1 else ""
    return f"{row['program']:16} {row['n'] or '':>3} {reference:9.4f} ms  {changes}  | {'; '.join(said)}{wrong}"


def table(rows: Sequence[dict[str, Any]]) -> str:
    trials = [(row, kept_of(trial)) for row in rows for trial in row["trials"]]
    right = sum(is_right(row, kept) for row, kept in trials)
    unsettled = sum(kept is None for _, kept in trials)
    lines = [line(row) for row in rows]
    lines.append(
        f"{len(trials)} trials: {right} right, {unsettled} not settled, {len(trials) - right - unsettled} wrong"
    )
    return "".join(f"{one}\n" for one in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--program", required=True, help="whole/stencil.cu, built")
    runs.add_argument("--nccl", required=True, help="the library")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--limit", type=float, default=400, help="seconds after which no cell is begun")
    runs.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    runs.add_argument("--only", nargs="+", choices=(*STENCILS, *TRAPS, *STEPS), metavar="PROGRAM")
    runs.add_argument("--trials", type=int, default=2, help="of each program")
    commands.add_parser("table").add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "run":
        return run(options)
    print(table(json.loads(options.file.read_text(encoding="utf-8"))["rows"]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
