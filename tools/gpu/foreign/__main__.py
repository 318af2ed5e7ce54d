"""Programs of other authors by arm: what does the default change, what do their authors' priorities, what does it cost?

    python -m tools.gpu.foreign FOLDER --out FILE.json [--only PROGRAM ...] [--skip PROGRAM ...] [--part 1/2]
                                [--gpus 0,1] [--processes 7] [--limit SECONDS] [--trace libtrace.so] [--keep FOLDER]

FOLDER has a folder for each program, with its binaries; programs.py lists the programs. Each round runs every arm of
every program once, in random order; a process is one run. `bare` and `again` are the same, so their difference is
noise; `own` has the priorities that authors give their streams, and the other arms have none. Before its first round, a
program runs once under the default, unmeasured, for the report's counts; with --trace (../trace.c) also once bare, for
what `overlap explain` expects, and --keep keeps these traces. Writes JSON, and beside it CSV, after each process: a row
an arm, with the median, its 90 % interval (the range, of up to 7 processes), and the change of time from `bare` in per
cent: of medians, with an interval by resampling processes. Negative is faster.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import os
import random
import re
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.gpu import machine, product
from tools.gpu.files import write
from tools.gpu.foreign.programs import PROGRAMS, Program
from tools.gpu.processes import ended
from tools.gpu.runner import ASSIGNED

HERE = Path(__file__).resolve().parent
ARMS = ("bare", "again", "observe", "default", "own")
POLICIES = ("observe", "default")
LIMIT = 600.0
ONE = 60.0  # seconds of patience with a process
FAILURES = 2  # of a program, after which no process of it is begun
RESAMPLED = 1000
SAID = (
    "span_us",
    "waited_us",
    "saves_us",
    "saves_at_most",
    "still_us",
    "inversions",
    "minor",
    "major",
)  # by explain of a process
CHANGE = ("change_percent", "change_low", "change_high")
COUNTS = ("launches", "raised", "streams_created_raised")
HEAD = ("program", "gpus", "unit", "more", "arm", "processes", "median", "low", "high")
EXPLAINED = "explained_percent"
HEADS = (*HEAD, *CHANGE, *COUNTS, EXPLAINED, "gpu", "driver", "commit", "date")


@dataclass
class Measured:
    """One program: its processes, and what the report of one under the default says."""

    program: Program
    arms: tuple[str, ...]
    rows: list[dict[str, Any]]
    counts: dict[str, Any]

    def values(self, arm: str) -> list[float]:
        return [row["value"] for row in self.rows if row["arm"] == arm and "value" in row]

    def times(self, arm: str) -> list[float]:
        return [1 / value if self.program.more else value for value in self.values(arm)]

    def change(self, arm: str) -> list[float] | None:
        """Of time against bare in per cent, and the 5th and 95th percentile of resampled processes, if any."""
        bare, other = self.times("bare"), self.times(arm)
        if not bare or not other:
            return None
        mixed = random.Random(1)
        drawn = sorted(
            statistics.median(mixed.choices(other, k=len(other))) / statistics.median(mixed.choices(bare, k=len(bare)))
            for _ in range(RESAMPLED)
        )
        found = [statistics.median(other) / statistics.median(bare), drawn[RESAMPLED // 20], drawn[-RESAMPLED // 20]]
        if len(bare) + len(other) == 2:
            del found[1:]  # one process of each tells no interval
        return [round(100 * (value - 1), 2) for value in found]

    @property
    def failures(self) -> int:
        return sum("failed" in row for row in (*self.rows, self.counts.get("first", {})))

    def medians(self, head: dict[str, Any]) -> list[dict[str, Any]]:
        made = []
        for arm in self.arms:
            values = sorted(self.values(arm))
            if not values:
                continue
            cut = interval(len(values))
            row = {
                "program": self.program.name,
                "gpus": self.program.gpus,
                "unit": self.program.unit,
                "more": int(self.program.more),
                "arm": arm,
                "processes": len(values),
                "median": statistics.median(values),
                "low": values[cut],
                "high": values[-1 - cut],
            }
            row.update(zip(CHANGE, self.change(arm) or ()))
            if arm == "default":
                row.update(
                    {**self.counts.get("totals", {}), EXPLAINED: self.counts.get("explained", {}).get("percent")}
                )
            gpus = head.get("gpus") or [{}]
            row.update(gpu=gpus[0].get("name"), driver=head.get("driver"), commit=head.get("commit"))
            made.append({**row, "date": str(head.get("begun"))[:10]})
        return made


def interval(count: int) -> int:
    """How many of the least and of the greatest values an interval of the median leaves out, with 90 % and more.

    >>> [interval(count) for count in (3, 7, 8, 11)]
    [0, 0, 1, 2]
    """
    cut, chance, term = 0, 0.0, 0.5**count
    while chance + term <= 0.05:
        chance, cut = chance + term, cut + 1
        term *= (count - cut + 1) / cut
    return max(0, cut - 1)


class Runner:
    """Where programs are, and how they run."""

    def __init__(
        self, folder: Path, gpus: Sequence[str], work: Path, trace: Path | None = None, keep: Path | None = None
    ) -> None:
        self.folder, self.gpus, self.work, self.trace, self.keep = folder, gpus, work, trace, keep
        self.environment = product.environment(work / "bin")
        self.number = 0

    def lacks(self, program: Program) -> str:
        """Why it cannot run here, or the empty string."""
        if program.gpus > len(self.gpus):
            return f"needs {program.gpus} GPUs"
        if not program.source:
            missing = importlib.util.find_spec(program.folder) is None
            return f"the Python module {program.folder}" if missing else ""
        place = self.folder / program.folder
        if place.is_dir() and ("{binary}" not in program.command or list(place.glob("plain*"))):
            return ""
        return (
            f"no {place / 'plain' if place.is_dir() else place}: of {program.source}; programs.py says what is changed"
        )

    def has_own(self, program: Program) -> bool:
        return "{binary}" in program.command and (self.folder / program.folder / "own").exists()

    def run(
        self, program: Program, arm: str, patience: float, report: Path | None = None, variables: Mapping[str, str] = {}
    ) -> dict[str, Any]:
        """One process: its number and results, or what was wrong."""
        self.number += 1
        work = self.work / str(self.number)
        work.mkdir()
        folder = self.folder / program.folder
        if not folder.is_dir():
            folder = work
        places = {
            "folder": str(folder),
            "binary": str(folder / ("own" if arm == "own" else "plain")),
            "here": str(HERE),
            "python": sys.executable,
            "libraries": os.pathsep.join(libraries(folder)),
            "work": str(work),
        }
        words = [word.format_map(places) for word in shlex.split(program.command)]
        variables = {**variables, "CUDA_VISIBLE_DEVICES": ",".join(self.gpus[: program.gpus])}
        while match := ASSIGNED.fullmatch(words[0]):
            variables[match[1]] = match[2]
            del words[0]
        words = ["env", *(f"{name}={value}" for name, value in variables.items()), *words]
        if arm in POLICIES:
            kept = ("--report", str(report)) if report else ()
            words = ["overlap-run", "--quiet", "--policy", arm, *kept, "--", *words]
        words = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *words]
        done = ended(words, self.environment, patience, work)
        row: dict[str, Any] = {"program": program.name, "arm": arm, "seconds": done.seconds}
        output = f"{done.output}\n{done.errors}"
        numbers, results = re.findall(program.number, output), re.findall(program.check, output)
        if done.status or not numbers or not results or not float(numbers[-1]):
            wrong = "its check failed" if numbers and not results else f"status {done.status}"
            said = " ".join(output.split())
            return {**row, "failed": f"{wrong}: {said[-300:]}"}
        return {**row, "value": float(numbers[-1]), "result": sorted(set(results))}  # ranks print in any order

    def counted(self, program: Program, patience: float) -> dict[str, Any]:
        """What `overlap report` says of one process under the default. It also fills caches of the first run."""
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            row = self.run(program, "default", patience, Path(name, "report"))
            done = ended(["overlap", "report", "--json", f"{name}/report"], self.environment, 60, Path(name))
        try:
            report = json.loads(done.output)
        except ValueError:
            return {"failed": row.get("failed") or done.errors[-300:], "first": row}
        totals = {name: report["totals"][name] for name in COUNTS}
        streams = [
            {"device": one["device"], "status": one["status"], "share": one["share"]}
            for process in report["processes"]
            for one in process["streams"]
        ]
        kernels = [{key: one[key] for key in ("kernel", "launches", "raised")} for one in report["kernels"]]
        told = {"verdict": report["verdict"], "findings": report["findings"], "streams": streams, "kernels": kernels}
        return {"totals": totals, **told, "first": row}

    def explained(self, program: Program, patience: float) -> dict[str, Any]:
        """What `overlap explain` says of a trace of one bare process. percent: of its time, that raising would save."""
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            inject = {"CUDA_INJECTION64_PATH": str(self.trace), "TRACE_OUTPUT": f"{name}/trace"}
            row = self.run(program, "bare", patience, variables=inject)
            done = ended(["overlap", "explain", "--json", name], self.environment, patience, Path(name))
            for number, written in enumerate(sorted(Path(name).glob("trace*"))):
                self.kept(written, f"{program.name}.{number}.json.gz")
        try:
            answer = json.loads(done.output)
        except ValueError:
            return {"failed": row.get("failed") or (done.output + done.errors)[-300:]}
        worst = answer["processes"][answer["worst"]]
        percent = round(-100 * worst["saves_us"] / worst["span_us"], 2)
        return {
            **{key: worst[key] for key in SAID},
            "percent": percent,
            "untold": answer["untold"],
            "gpus": answer["gpus"],
        }

    def kept(self, trace: Path, name: str) -> None:
        if self.keep is None:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        compressed = trace.read_bytes() if trace.suffix == ".gz" else gzip.compress(trace.read_bytes(), 5)
        (self.keep / name).write_bytes(compressed)


def libraries(folder: Path) -> list[str]:
    """Return the program's folder, those of NVIDIA's libraries that came with PyTorch, and what is searched anyway."""
    spec = importlib.util.find_spec("nvidia")
    installed = (spec.submodule_search_locations or ()) if spec else ()
    found = [str(library) for place in installed for library in sorted(Path(place).glob("*/lib"))]
    return [str(folder), *found, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))]


def wrong_results(found: Sequence[Measured]) -> list[str]:
    """Programs whose processes do not agree."""
    results = {one.program.name: {tuple(row["result"]) for row in one.rows if "result" in row} for one in found}
    return [f"{name}: results differ: {sorted(seen)}" for name, seen in results.items() if len(seen) > 1]


def keep(out: Path, made: dict[str, Any], found: Sequence[Measured]) -> list[dict[str, Any]]:
    medians = [row for one in found for row in one.medians(made["machine"])]
    counts = [{"program": one.program.name, **one.counts} for one in found if one.counts]
    write(
        out,
        {**made, "wrong": wrong_results(found), "counts": counts, "rows": [row for one in found for row in one.rows]},
    )
    with out.with_suffix(".csv").open("w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, HEADS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(medians)
    return medians


def _interval(row: Mapping[str, Any]) -> str:
    return f"[{row['change_low']:+.2f} {row['change_high']:+.2f}]" if CHANGE[1] in row else "of one process"


def share(text: str) -> slice:
    """Of a list: `2/3` is every third element, beginning with the second."""
    match = re.fullmatch("([1-9][0-9]*)/([1-9][0-9]*)", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"not K/N, such as 1/2: {text}")
    return slice(int(match[1]) - 1, None, int(match[2]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("FOREIGN")
    parser.add_argument("folder", type=Path, nargs="?" if folder else None, default=folder and Path(folder))
    parser.add_argument("--out", type=Path, required=True)
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="+", default=names, metavar="PROGRAM", choices=names, help=", ".join(names))
    parser.add_argument("--skip", nargs="+", default=[], metavar="PROGRAM", choices=names)
    parser.add_argument(
        "--part", type=share, default="1/1", metavar="K/N", help="every N-th of these, beginning with the K-th"
    )
    parser.add_argument("--gpus", default=os.environ.get("CUDA_VISIBLE_DEVICES") or "0", help="such as 0,1")
    parser.add_argument("--processes", type=int, default=7, help="of each arm (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which no process is begun")
    parser.add_argument("--trace", type=Path, metavar="libtrace.so", help="of trace.c: run explain beforehand, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --trace: for the traces")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if wrong := _wrong(options):
        parser.error(wrong)
    with tempfile.TemporaryDirectory(prefix="overlap-foreign-") as work:
        trace = options.trace and options.trace.resolve()  # programs run in folders of their own
        return measure(
            options, Runner(options.folder.resolve(), options.gpus.split(","), Path(work), trace, options.keep)
        )


def _wrong(options: argparse.Namespace) -> str:
    """What would be found out only after a process has run; or the empty string."""
    if not options.out.parent.is_dir():
        return f"--out: no folder {options.out.parent}"
    if options.processes < 1:
        return "--processes: 1 at least"
    if not re.fullmatch(r"\d+(,\d+)*", options.gpus):
        return f"--gpus: not numbers with commas, such as 0,1: {options.gpus}"
    if options.trace and not options.trace.is_file():
        return f"--trace: no file {options.trace}: tools/gpu/trace.c says how it is built"
    return "--keep: needs --trace" if options.keep and not options.trace else ""


def measure(options: argparse.Namespace, runner: Runner) -> int:
    begun, mixed = time.monotonic(), random.Random(options.seed)
    made: dict[str, Any] = {"version": 1, "set": "foreign", "machine": machine.describe(), "not_measured": []}
    if not made["machine"]["gpus"]:
        print("foreign: no GPU: nvidia-smi -L lists none", file=sys.stderr)
        return 1
    found: list[Measured] = []
    chosen = [program for program in PROGRAMS if program.name in options.only and program.name not in options.skip]
    for program in chosen[options.part]:
        if lacks := runner.lacks(program):
            made["not_measured"].append(f"{program.name}: {lacks}")
            continue
        found.append(Measured(program, ARMS if runner.has_own(program) else ARMS[:-1], [], {}))
    late = False
    for turn in range(options.processes):
        for one in found:
            if not turn and time.monotonic() - begun < options.limit:
                one.counts = runner.counted(one.program, ONE)
                if options.trace:
                    one.counts["explained"] = runner.explained(one.program, ONE)
            for arm in mixed.sample(one.arms, len(one.arms)):
                late = late or time.monotonic() - begun > options.limit
                if not late and one.failures < FAILURES:
                    one.rows.append(runner.run(one.program, arm, ONE))
                    made["seconds"] = round(time.monotonic() - begun)
                    keep(options.out, made, found)
            print(f"[{made.get('seconds', 0)} s] {turn + 1}: {one.program.name}", file=sys.stderr, flush=True)
    if late:
        made["not_measured"].append("out of time: see `processes` of each arm")
    medians = keep(options.out, made, found)
    for row in medians:
        print(f"{row['program']:22} {row['arm']:8} {row['processes']} {row['median']:12.6g} {row['unit']:9}"
              f" {row.get('change_percent', 0):+7.2f} % {_interval(row)}"
              f" {row.get('launches', '')} {row.get('raised', '')}")  # fmt: skip
    said = [
        f"{one.program.name}, {row['arm']}: {row['failed']}"
        for one in found
        for row in (one.counts.get("first", {}), *one.rows)
        if "failed" in row
    ]
    said += wrong_results(found) + made["not_measured"]
    print(*(f"foreign: {line}" for line in said), sep="\n", file=sys.stderr)
    return 1 if said or not medians else 0


if __name__ == "__main__":
    sys.exit(main())
