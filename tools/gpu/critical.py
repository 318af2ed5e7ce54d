"""What do streams that are waited for gain by being raised? The stencils and training steps of whole/.

    python -m tools.gpu.critical run --program BIN/stencil --nccl LIBNCCL --out FILE [--rounds N] [--starts N]
    python -m tools.gpu.critical table FILE

A process is one arm of one program with one n. All processes of a stage are started at once and take turns in random
order, so that what drifts hits all arms alike. A process often keeps a speed of its own, so stages are measured again
with new processes: `--starts` times, later ones with half the rounds.
`default` is the shipped policy, or what CRITICAL_DEFAULT names. In the table a change is the median over turns of the
arm's time against that of `bare` in the same round; `share` is the part of the gain of `raised` (the program raises
its own streams) that the default policy gets. Intervals are of 90 %, by resampling starts, and rounds of each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.gpu import machine
from tools.gpu.files import write
from tools.gpu.overlap.turns import END, Ranks

HERE = Path(__file__).resolve().parent

ITERATIONS = {192: 150, 256: 120, 384: 60, 512: 30}  # of a batch, by n: 10 to 25 ms; even, as streams may change roles
STENCILS = ("halo-stream", "computing-stream", "third-stream", "host-stream", "host-event", "host-polling", "host-copy")
TRAPS = ("warmed", "one-stream", "synchronised", "swapped", "equal")
STEPS = ("ddp", "fsdp", "tensor")
POLICIES = {"observe": "observe", "default": os.environ.get("CRITICAL_DEFAULT", "default"), "paper": "h200-paper"}
ALL, NO_RAISED, TWO = (
    ("bare", "raised", "observe", "default", "paper"),
    ("bare", "observe", "default"),
    ("bare", "default"),
)
LEARNT = 40  # iterations of a process before its first turn that counts
BATCHES = 3
START, TURN, LEAST = (
    60.0,
    20.0,
    15.0,
)  # seconds: patience with all starts and with a turn; less is too little for a stage
SHARE, HARM, RESAMPLED = 0.9, 0.01, 1000


@dataclass(frozen=True)
class Stage:
    """Cells that are measured in the same minute."""

    programs: tuple[str, ...]
    sizes: tuple[int, ...]  # 0: has none
    arms: tuple[str, ...]
    rounds: int


def stages(rounds: int, sizes: tuple[int, ...], starts: int) -> list[Stage]:
    """Most important first: what is cut is a later start."""
    made: list[Stage] = []
    for start in range(starts):
        fewer = (rounds + 1) // 2 if start else rounds
        made += [Stage(STENCILS, (n,), ALL, fewer) for n in sizes]
        made.append(Stage(TRAPS, sizes[1:2] or sizes, NO_RAISED, fewer))
        if not start:
            made.append(Stage(STEPS, (0,), TWO, 2 * rounds))
    return made


def chosen(stage: Stage, programs: Sequence[str] | None, arms: Sequence[str] | None) -> Stage:
    return replace(
        stage,
        programs=tuple(name for name in stage.programs if not programs or name in programs),
        arms=(*(arm for arm in stage.arms if not arms or arm in arms), *(arm for arm in POLICIES if arm not in ALL)),
    )


# ---- measuring ----


class Measured:
    """One arm of one program: its processes, and its row."""

    def __init__(self, program: str, n: int, arm: str, start: int, command: list[str], port: int) -> None:
        before = ["overlap-run", "--policy", POLICIES[arm], "--"] if arm in POLICIES else []
        self.ranks = Ranks(f"{program} {n} {arm}", [*before, *command], {}, 1 if n else 2, port)
        self.request = ["whole", BATCHES, ITERATIONS.get(n, 10)] if n else ["whole", 1, 6]
        self.row: dict[str, Any] = {"program": program, "n": n, "arm": arm, "start": start, "ms": []}

    def turn(self) -> None:
        answer = self.ranks.ask(self.request, TURN)[0]
        self.row["ms"].append(answer["ms"] if answer else None)
        if not answer:  # what hangs on a GPU disturbs the others
            for process in self.ranks.processes:
                process.kill()

    def end(self) -> dict[str, Any]:
        statuses = self.ranks.end()
        said = [line.rstrip() for line in self.ranks.errors[0]]
        if any(statuses) or self.ranks.broken:
            self.row.update(broken=self.ranks.broken, statuses=statuses)
        return {**self.row, **(self.ranks.last[0] or {}), "said": said[-6:]}


def measured(stage: Stage, start: int, program: str, nccl: str, end: float) -> tuple[list[dict[str, Any]], Any]:
    """Rows of a stage, and what a process says of its versions. Rounds end at `end`."""
    arms: list[Measured] = []
    ready = None
    for n in stage.sizes:
        for kind in stage.programs:
            for arm in stage.arms:
                command = [program, nccl, kind, str(n), str(int(arm == "raised"))]
                if not n:
                    command = [sys.executable, "-m", "tools.gpu.whole.rank", kind]
                arms.append(Measured(kind, n, arm, start, command, 29700 + len(arms)))
    patience = time.monotonic() + START
    for one in arms:
        ready = one.ranks.answers(max(1.0, patience - time.monotonic()))[0] or ready
    for one in arms:
        one.ranks.ask(["whole", 1, LEARNT if one.row["n"] else 2], TURN)
    mixed = random.Random(start)
    for number in range(stage.rounds):
        if time.monotonic() > end and number:
            break
        for one in mixed.sample(arms, len(arms)):
            one.turn()
    for one in arms:
        one.ranks.tell(END)
    return [one.end() for one in arms], ready


def run(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    end = begun + options.limit
    rows: list[dict[str, Any]] = []
    made: dict[str, Any] = {"version": 1, "set": "critical", "machine": machine.describe(), "policies": POLICIES}
    for start, every in enumerate(stages(options.rounds, tuple(options.sizes), options.starts)):
        stage = chosen(every, options.only, options.arms)
        if not stage.programs:
            continue
        name = f"stage {start + 1}, {stage.programs[0]} to {stage.programs[-1]}, n {stage.sizes}"
        if time.monotonic() > end - LEAST:
            made.setdefault("not_measured", []).append(name)
            continue
        found, ready = measured(stage, start, options.program, options.nccl, end)
        rows += found
        if stage.sizes[0]:
            made["program"] = ready
        seconds = round(time.monotonic() - begun)
        print(f"[{seconds} s] {name}: {len(found[0]['ms'])} rounds", file=sys.stderr, flush=True)
        write(options.out, {**made, "seconds": seconds, "cells": cells(rows), "rows": rows})
    write(options.out, {**made, "seconds": round(time.monotonic() - begun), "cells": cells(rows), "rows": rows})
    print(table(cells(rows)), end="")
    return 0


# ---- what it says ----


def times(row: dict[str, Any]) -> list[float | None]:
    """Of each turn."""
    return [statistics.median(batches) if batches else None for batches in row["ms"]]


def changes(base: Sequence[float], other: Sequence[float]) -> list[float]:
    return [mine / theirs - 1 for theirs, mine in zip(base, other)]


def interval(found: Sequence[float]) -> list[float]:
    """Of the 5th to the 95th percentile."""
    ordered = sorted(found)
    return [ordered[int(part * (len(ordered) - 1))] for part in (0.05, 0.95)] if ordered else []


def share_of(bare: Sequence[float], raised: Sequence[float], default: Sequence[float]) -> float | None:
    gain = statistics.median(changes(bare, raised))
    return statistics.median(changes(bare, default)) / gain + 0.0 if gain else None  # no negative zero


def cells(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each program and n, with changes against bare, the share, and what was found wrong."""
    of: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        of.setdefault((row["program"], row["n"]), {}).setdefault(row["arm"], []).append(row)
    return [cell(program, n, arms) for (program, n), arms in of.items()]


def cell(program: str, n: int, arms: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    starts = [
        [round_ for round_ in zip(*map(times, same)) if None not in round_] for same in zip(*arms.values())
    ]  # rounds by start, a time of each arm
    whole = list(itertools.chain.from_iterable(starts))
    made: dict[str, Any] = {"program": program, "n": n, "turns": len(whole), "wrong": []}
    digests = {str(row.get("digest")) for found in arms.values() for row in found if row.get("digest")}
    if any("broken" in row for found in arms.values() for row in found) or not whole:
        made["wrong"].append("a process failed")
    if not whole:
        return made
    took = {arm: [ms for ms in column if ms] for arm, column in zip(arms, zip(*whole))}
    made["ms"] = {arm: round(statistics.median(ms), 5) for arm, ms in took.items()}
    by_start = [{str(row.get("digest")) for row in same} for same in zip(*arms.values())]
    if any(len(same) > 1 for same in by_start) or not digests:
        made["wrong"].append(f"digests differ: {sorted(digests)}")
    bare = took["bare"]
    change: dict[str, list[float]] = {}
    mixed = random.Random(n)
    samples = [resampled_rounds([len(rounds) for rounds in starts if rounds], mixed) for _ in range(RESAMPLED)]
    for arm, ms in took.items():
        found = changes(bare, ms)
        resampled = [statistics.median(found[at] for at in sample) for sample in samples]
        change[arm] = [statistics.median(found), *interval(resampled)]
    made["change"] = {arm: [round(value, 4) for value in values] for arm, values in change.items() if arm != "bare"}
    middle = statistics.median(bare)
    made["noise"] = round(statistics.median(abs(ms / middle - 1) for ms in bare), 4)
    if "raised" in took:
        made.update(share(bare, took["raised"], took["default"], samples, change["raised"]))
        if made["share"] is not None and made["share"] < SHARE:
            made["wrong"].append(f"the default gets {made['share']:.0%} of what raising gains")
    elif change["default"][0] > HARM:
        made["wrong"].append(f"the default costs {change['default'][0]:.1%}")
    if "observe" in took and change["observe"][1] > max(HARM, made["noise"]):
        made["wrong"].append(f"observe costs {change['observe'][0]:.1%}")
    return made


def resampled_rounds(lengths: Sequence[int], mixed: random.Random) -> list[int]:
    """Places of rounds: starts are drawn, and rounds of each, because those of one process are alike."""
    ends = list(itertools.accumulate(lengths))
    drawn = mixed.choices(range(len(lengths)), k=len(lengths))
    return [
        mixed.randrange(ends[start] - lengths[start], ends[start]) for start in drawn for _ in range(lengths[start])
    ]


def share(
    bare: list[float], raised: list[float], default: list[float], samples: list[list[int]], gain: list[float]
) -> dict[str, Any]:
    """None: raising gains nothing here that could be told from noise."""
    if gain[2] >= 0:
        return {"share": None}
    resampled = []
    for sample in samples:
        found = share_of(*([times[at] for at in sample] for times in (bare, raised, default)))
        resampled.append(0.0 if found is None else found)
    middle = share_of(bare, raised, default)
    return {
        "share": None if middle is None else round(middle, 3),
        "share_interval": [round(value, 3) for value in interval(resampled)],
    }


def table(found: Sequence[dict[str, Any]]) -> str:
    """One line a cell."""
    lines = [f"{'program':17} {'n':>4} {'bare ms':>9} {'raised':>8} {'observe':>8} {'default':>8} {'paper':>8}  share"]
    for one in found:
        change = one.get("change", {})
        said = [f"{change[arm][0]:+.1%}" if arm in change else "" for arm in ("raised", "observe", "default", "paper")]
        part = "" if "share" not in one else "nothing to gain"
        if one.get("share") is not None:
            part = f"{one['share']:.0%} [{one['share_interval'][0]:.0%}, {one['share_interval'][1]:.0%}]"
        bare = one.get("ms", {}).get("bare", float("nan"))
        words = " ".join(f"{word:>8}" for word in said)
        line = f"{one['program']:17} {one['n'] or '':>4} {bare:9.4f} {words}  {part}  {'; '.join(one['wrong'])}"
        lines.append(line.rstrip())
    wrong = sum(bool(one["wrong"]) for one in found)
    return "".join(f"{line}\n" for line in [*lines, f"{len(found)} cells, {wrong} not as they must be"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--program", required=True, help="whole/stencil.cu, built")
    runs.add_argument("--nccl", required=True, help="the library")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--rounds", type=int, default=10)
    runs.add_argument("--limit", type=float, default=400, help="seconds after which no round is begun")
    runs.add_argument("--sizes", type=int, nargs="+", default=list(ITERATIONS), metavar="N")
    runs.add_argument("--only", nargs="+", choices=(*STENCILS, *TRAPS, *STEPS), metavar="PROGRAM")
    runs.add_argument("--arms", nargs="+", choices=ALL, metavar="ARM", help="bare and default are needed for changes")
    runs.add_argument("--starts", type=int, default=4)
    runs.add_argument("--more", nargs="+", default=[], metavar="ARM=POLICY", help="further arms")
    commands.add_parser("table").add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "run":
        POLICIES.update(one.split("=", 1) for one in options.more)
        return run(options)
    print(table(cells(json.loads(options.file.read_text(encoding="utf-8"))["rows"])), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
