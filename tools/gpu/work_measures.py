"""Which measure of a kernel is nearest to its time? From traces in the format of torch.profiler (and of trace.c).

    python -m tools.gpu.work_measures TRACE... > results/work-measures.csv
    python -m tools.gpu.work_measures --streams TRACE... > results/work-shares.csv

A row a trace of five and more kernels of computation: by what factor time differs from the measure in the standard
deviation, weighted by time, where the measure is threads times a power of the registers of a thread. 1: it tells the
time exactly. --streams: a row a stream of 20 and more launches: its share of its GPU by threads, by work (the square,
as shim/core/judge.h counts) and by time.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

POWERS = (0, 1, 1.5, 2, 2.5)


class Kernel(NamedTuple):
    name: str
    place: tuple[int, int]  # device, stream
    threads: int
    registers: int
    us: float


def kernels(path: Path) -> Iterator[Kernel]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        trace: Any = json.load(file)
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        of = event.get("args") or {}
        if event.get("cat", "").lower() != "kernel" or "nccl" in event["name"].lower() or not event.get("dur"):
            continue
        grid, block, registers = of.get("grid"), of.get("block"), of.get("registers per thread")
        if grid and block and registers:
            threads = math.prod(grid) * math.prod(block)
            yield Kernel(event["name"], (of["device"], of["stream"]), threads, registers, float(event["dur"]))


def miss(found: list[Kernel], power: float) -> float:
    """By what factor time differs from threads * registers ** power."""
    groups: defaultdict[tuple[str, int], list[Kernel]] = defaultdict(list)
    for one in found:
        groups[one.name, one.threads].append(one)
    whole = sum(one.us for one in found)
    sums = [(sum(one.us for one in group), sum(one.threads * one.registers**power for one in group))
            for group in groups.values()]  # fmt: skip
    points = [(us / whole, math.log(us / work)) for us, work in sums]
    mean = sum(weight * value for weight, value in points)
    return math.exp(math.sqrt(sum(weight * (value - mean) ** 2 for weight, value in points)))


def shares(found: list[Kernel]) -> Iterator[list[object]]:
    measures = [[one.threads, one.threads * one.registers**2, one.us] for one in found]
    for place in sorted({one.place for one in found}):
        own = [of for one, of in zip(found, measures) if one.place == place]
        every = [of for one, of in zip(found, measures) if one.place[0] == place[0]]
        if len(own) >= 20:
            percents = (100 * sum(part) / sum(whole) for part, whole in zip(zip(*own), zip(*every)))
            yield [*place, len(own), *(f"{percent:.1f}" for percent in percents)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE")
    parser.add_argument("--streams", action="store_true")
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    heads = ["device", "stream", "launches", "threads_percent", "work_percent", "time_percent"]
    table.writerow(["trace", *(heads if options.streams else ["kernels", *(f"power_{power}" for power in POWERS)])])
    for path in options.traces:
        try:
            found = list(kernels(path))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            parser.error(f"{path} is no trace in JSON that can be read: {error}")
        different = len({(one.name, one.threads) for one in found})
        if options.streams:
            table.writerows([path.name, *row] for row in shares(found))
        elif different >= 5:
            table.writerow([path.name, different, *(f"{miss(found, power):.2f}" for power in POWERS)])


if __name__ == "__main__":
    main()
