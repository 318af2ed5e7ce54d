"""Whole programs, each under every arm: what does a step take, and what could it take at best?

    python -m tools.gpu.whole.measure --built BIN --nccl LIBNCCL --out FILE [--only PROGRAM...] [--limit SECONDS]
    python -m tools.gpu.whole.table FILE

A process is one arm of one cell (programs.py). All processes of a stage are started at once and take turns in random
order, so that what drifts hits all arms alike. `bare` is also asked for its computation and its communication alone.
Programs are started again as long as time is left, because a process often keeps a speed of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.files import write
from tools.gpu.turns import END, Ranks
from tools.gpu.whole.programs import DEEPER, Cell, Place, cells

BARE, AGAIN, OWN, DEFAULT, PUBLISHED = "bare", "again", "own", "default", "published"
ARMS = {
    BARE: None,
    AGAIN: None,  # as bare: what two equal arms differ by
    OWN: None,  # the program's own priorities: streams that it creates, or TORCH_NCCL_HIGH_PRIORITY
    "observe": "observe",
    DEFAULT: os.environ.get("WHOLE_DEFAULT", "default"),
    PUBLISHED: "{gpu}-paper",  # h100, h200
}
GATHERS = {"copies": {}, "nccl": {"NCCL_CTA_POLICY": "2"}}  # further arms, with `+default` also behind it: gathers.py
VARIABLES = {"OMP_NUM_THREADS": "1"}
PROCESSES, GIB = 48, 48.0  # of a stage, at most: of one H100's memory, 80 GB
COMPILED, PYTHON = (40, 15.0, 2), (2, 200.0, 1)  # steps to learn, ms of a batch, batches
START, TURN, END_OF, LEAST = 120.0, 60.0, 30.0, 5.0  # seconds of patience; the last: after the limit


@dataclass
class Running:
    """One arm of a cell: its processes, and its row."""

    cell: Cell
    arm: str
    ranks: Ranks
    folder: Path
    row: dict[str, Any] = field(default_factory=dict)
    until: float = float("inf")  # when patience ends

    @property
    def habits(self) -> tuple[int, float, int]:
        return COMPILED if self.cell.is_compiled else PYTHON

    def ask(self, part: str, batches: Any, steps: int) -> list[float]:
        """Return milliseconds of a step, by batch; nothing if there is no answer, and the processes are ended."""
        patience = min(TURN, max(LEAST, self.until - time.monotonic()))
        answer = self.ranks.ask([part, batches, steps], patience)[0]
        if answer is None:
            self.row.setdefault("cut", time.monotonic() > self.until)
            for process in self.ranks.processes:  # what hangs on a GPU disturbs the others
                process.kill()
        return list((answer or {}).get("ms", []))


def even(steps: float, least: int = 2) -> int:
    """Streams may change roles from step to step."""
    return max(least, 2 * round(steps / 2))


def start(cell: Cell, arm: str, place: Place, port: int, number: int) -> Running:
    folder = Path(tempfile.mkdtemp(prefix="whole-"))
    gathers, _, policy = arm.partition("+") if arm not in ARMS else ("", "", arm)
    policy = (ARMS.get(policy) or "").format(gpu=place.gpu)
    before = ["overlap-run", "--quiet", "--policy", policy, "--report", str(folder), "--"] if policy else []
    variables = dict(VARIABLES)
    if gathers:
        variables |= {"WHOLE_GATHERS": gathers, **GATHERS[gathers]}
    if arm == OWN and not cell.is_compiled:
        variables["TORCH_NCCL_HIGH_PRIORITY"] = "1"
    command = place.command(cell, arm == OWN, before)
    row = {"program": cell.program, "n": cell.n, "bits": cell.bits, "arm": arm, "start": number, "ms": []}
    return Running(cell, arm, Ranks(f"{cell.name} {arm}", command, variables, cell.ranks, port), folder, row)


def gpu_of(head: dict[str, Any]) -> str:
    """The word of its policies: h100 of NVIDIA H100 80GB HBM3. head: as of machine.describe()."""
    name = head["gpus"][0]["name"] if head["gpus"] else ""
    return next((word.lower() for word in name.split() if word[1:].isdigit()), "h200")


def learn(running: Running) -> None:
    """Steps that do not count; sets how long batches are."""
    learnt, ms, _ = running.habits
    running.ask("whole", 1, learnt)
    took = running.ask("whole", 1, even(learnt / 2))
    running.row["steps"] = even(ms / took[0]) if took else 2


def parts(running: Running) -> None:
    for part in ("computation", "communication"):
        running.row[part] = [round(ms, 5) for ms in running.ask(part, 4, running.row["steps"])]


def end(running: Running) -> dict[str, Any]:
    running.row.setdefault("cut", time.monotonic() > running.until)
    statuses = running.ranks.end(max(LEAST, min(END_OF, running.until - time.monotonic())))
    if any(statuses) or running.ranks.broken:
        said = [line.rstrip() for line in running.ranks.errors[0]][-6:]
        running.row.update(broken=running.ranks.broken, statuses=statuses, said=said)
    running.row["digest"] = (running.ranks.last[0] or {}).get("digest")
    return running.row


def report(running: Running) -> None:
    """What overlap says of the run: counters and streams."""
    words = ["overlap", "report", str(running.folder), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout) if done.stdout else {}
    totals = said.get("totals", {})
    kept = ("launches", "communication", "raised", "shaped", "reasons")
    running.row["totals"] = {key: totals[key] for key in kept if key in totals}
    running.row["streams"] = [process.get("streams") for process in said.get("processes", [])]


def stage(
    group: Sequence[Cell], arms: Sequence[str], place: Place, number: int, rounds: int, until: float
) -> list[dict[str, Any]]:
    """Return rows of cells that are measured in the same minute; number: of the start, from 0."""
    base = 20000 + 997 * number
    made = [(cell, arm) for cell in group for arm in arms]
    all_ = [start(cell, arm, place, base + 7 * at + random.randrange(7), number) for at, (cell, arm) in enumerate(made)]
    for one in all_:
        one.until = until
    patience = min(time.monotonic() + START, until)
    for one in all_:
        one.row["ready"] = one.ranks.answers(max(1.0, patience - time.monotonic()))[0]
    for one in all_:
        learn(one)
    steps = {one.cell: one.row["steps"] for one in all_ if one.arm == BARE}
    for one in all_:
        one.row["steps"] = steps[one.cell]
        if one.arm == BARE and number == 0:
            parts(one)
    mixed = random.Random(number)
    for turn in range((rounds + 1) // 2 if number else rounds):
        if turn and time.monotonic() > until:
            break
        for one in mixed.sample(all_, len(all_)):
            one.row["ms"].append([round(ms, 5) for ms in one.ask("whole", one.habits[2], one.row["steps"])])
    for one in all_:
        one.ranks.tell(END)
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(end, all_))
        list(pool.map(report, (one for one in all_ if one.arm in ("observe", DEFAULT))))
    return rows


def grouped(found: Sequence[Cell]) -> list[list[Cell]]:
    """Stages: Python's programs by themselves, compiled ones as many as fit."""
    made: list[list[Cell]] = []
    for cell in found:
        last = made[-1] if made else []
        fits = last and cell.is_compiled and last[0].is_compiled
        fits = fits and (len(last) + 1) * len(ARMS) <= PROCESSES
        fits = fits and len(ARMS) * sum(one.gib for one in (*last, cell)) <= GIB
        if fits:
            last.append(cell)
        else:
            made.append([cell])
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--nccl", required=True, help="the library")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=400, help="seconds after which no stage or round is begun")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    parser.add_argument("--skip", nargs="+", default=[], metavar="PROGRAM")
    named = [*ARMS, *(f"{name}{behind}" for name in GATHERS for behind in ("", f"+{DEFAULT}"))]
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=named, metavar="ARM", help=", ".join(named))
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N")
    parser.add_argument("--rounds", type=int, default=10, help="of the first start; later ones have half")
    parser.add_argument("--starts", type=int, default=3, help="of compiled programs, at most; of all with --arms")
    options = parser.parse_args(arguments)
    return run(options)


def run(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    until = begun + options.limit
    head = machine.describe()
    place = Place(options.built, options.nccl, gpu_of(head))
    chosen = [cell for cell in cells() if not options.only or cell.program in options.only]
    skipped = options.skip or ([] if options.only else [DEEPER])
    chosen = [cell for cell in chosen if cell.program not in skipped]
    chosen = [cell for cell in chosen if not cell.n or not options.sizes or cell.n in options.sizes]
    rows: list[dict[str, Any]] = []
    made: dict[str, Any] = {"version": 1, "set": "whole", "machine": head}
    made["arms"] = ARMS
    made["not_measured"] = [f"{cell.name}: {place.lacks(cell)}" for cell in chosen if place.lacks(cell)]
    chosen = [cell for cell in chosen if not place.lacks(cell)]
    for number in range(options.starts):
        for group in grouped([cell for cell in chosen if cell.is_compiled or not number or options.arms != list(ARMS)]):
            names = ", ".join(cell.name for cell in group)
            if time.monotonic() > until:
                made["not_measured"].append(f"{names}: start {number + 1}, out of time")
                continue
            rows += stage(group, options.arms, place, number, options.rounds, until)
            print(f"[{time.monotonic() - begun:.0f} s] start {number + 1}: {names}", file=sys.stderr, flush=True)
            write(options.out, {**made, "rows": rows})
    made["seconds"] = round(time.monotonic() - begun)
    write(options.out, {**made, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
