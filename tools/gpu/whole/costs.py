"""What do a start, memory, launches and waits of the host cost by arm?

    python -m tools.gpu.whole.costs --built BIN --nccl LIBNCCL --out FILE [--rounds N] [--limit SECONDS] [--only PART]

start   seconds from the start of `overlap-run`, or of the bare stencil, until it has opened its GPUs and NCCL, and MiB
        that are then resident
calls   nanoseconds that launch_latency.cu's calls take the host: launches, events, waits

Arms alternate, one process at a time. The file is written after each row; what could not be measured is in its list
`not_measured`, with why, and ends nothing. Exit status 1: nothing was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from tools.gpu import machine, steps
from tools.gpu.files import write
from tools.gpu.overlap.turns import Ranks
from tools.gpu.processes import Ended, ended
from tools.gpu.whole.measure import ARMS, START, VARIABLES
from tools.gpu.whole.programs import Cell, Place

Row = dict[str, Any]
COMPARED = ("bare", "observe", "default")
CELL = Cell("halo-stream", "", "", 128)
CALLS, ONE = 1000, 30.0  # of each kind; seconds for a process


class NotMeasured(Exception):
    """Why."""


class Costs:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.until: float = time.monotonic() + options.limit

    def left(self, most: float) -> float:
        """Seconds for one process. Raises NotMeasured."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise NotMeasured("out of time")
        return min(most, left)

    def least(self, most: float) -> float:
        """The same, for what must be waited for: at least a second."""
        return max(1.0, min(most, self.until - time.monotonic()))

    def turns(self) -> Iterator[tuple[int, str, list[str]]]:
        """Round, arm, and what its program stands behind."""
        for number in range(self.options.rounds):
            for arm in COMPARED:
                policy = ARMS[arm]
                with tempfile.TemporaryDirectory(prefix="costs-") as folder:
                    before = ["overlap-run", "--quiet", "--policy", policy, "--report", folder, "--"] if policy else []
                    yield number, arm, before

    def start(self) -> Iterator[Row]:
        place = Place(self.options.built, self.options.nccl, "")
        for number, arm, before in self.turns():
            patience, begun = self.left(START), time.monotonic()
            ranks = Ranks(arm, place.command(CELL, False, before), VARIABLES, 1, 29100 + number)
            try:
                ready = ranks.answers(patience)[0]
                row: Row = {"round": number, "arm": arm, "start_s": round(time.monotonic() - begun, 4)}
                try:
                    row["resident_mib"] = round(psutil.Process(ranks.processes[0].pid).memory_info().rss / 2**20, 2)
                except psutil.Error as error:
                    row["failed"] = str(error)
            finally:
                status = ranks.end(self.least(ONE) if ready else 1.0)[0]
            if not ready or status:
                row["failed"] = f"status {status}: {''.join(ranks.errors[0])[-300:]}"
            yield row

    def calls(self) -> Iterator[Row]:
        program = [str(self.options.built / "launch_latency"), str(self.options.built / steps.CUBIN), str(CALLS)]
        for number, arm, before in self.turns():
            done = run([*before, *program], self.left(ONE))
            found: dict[str, list[int]] = {}
            for line in done.output.splitlines():
                said = json.loads(line)
                found.setdefault(said["case"], []).append(said["median_ns"])
            row = {"round": number, "arm": arm, "median_ns": found}
            yield {**row, "failed": failure(done)} if done.status else row


def run(words: Sequence[str], limit: float) -> Ended:
    with tempfile.TemporaryDirectory(prefix="costs-") as folder:
        return ended(words, dict(os.environ), limit, Path(folder))


def failure(done: Ended) -> str:
    return f"status {done.status}: {(done.errors or done.output)[-500:]}"


PARTS: dict[str, Callable[[Costs], Iterator[Row]]] = {"start": Costs.start, "calls": Costs.calls}


def table(rows: Sequence[Row]) -> str:
    """Medians by arm; of calls, nanoseconds more than bare."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        named = {key: [row[key]] for key in ("start_s", "resident_mib") if key in row}
        for name, values in {**named, **row.get("median_ns", {})}.items():
            found.setdefault((name, row["arm"]), []).extend(values)
    lines = [f"{'median':44}" + "".join(f"{arm:>10}" for arm in COMPARED)]
    for name in dict.fromkeys(name for name, _ in found):
        of = [found.get((name, arm)) for arm in COMPARED]
        lines.append(
            f"{name:44}" + "".join(f"{statistics.median(values):10.6g}" if values else " " * 10 for values in of)
        )
    return "".join(f"{line}\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=Path, required=True)
    parser.add_argument("--nccl", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=150, help="seconds")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    options = parser.parse_args(arguments)
    begun, rows, not_measured = time.monotonic(), list[Row](), list[str]()
    made: dict[str, Any] = {"version": 1, "set": "whole-costs", "machine": machine.describe()}
    made["settings"] = {"rounds": options.rounds, "calls": CALLS, "arms": {arm: ARMS[arm] for arm in COMPARED}}
    costs = Costs(options)
    for name in options.only:
        try:
            for row in PARTS[name](costs):
                rows.append({"part": name, **row})
                if "failed" in row:
                    not_measured.append(f"{name}, {row['arm']}: {row['failed']}")
                write(options.out, {**made, "not_measured": not_measured, "rows": rows})
        except (NotMeasured, OSError, ValueError, KeyError) as error:  # ValueError: what should be JSON is not
            not_measured.append(f"{name}: {error}" if isinstance(error, NotMeasured) else f"{name}: {error!r}")
        made["seconds"] = {**made.get("seconds", {}), name: round(time.monotonic() - begun)}
        write(options.out, {**made, "not_measured": not_measured, "rows": rows})
        print(f"[{time.monotonic() - begun:.0f} s] {name}", file=sys.stderr, flush=True)
    print(table(rows), *(f"not measured: {why}\n" for why in not_measured), sep="", end="")
    return 0 if any("failed" not in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
