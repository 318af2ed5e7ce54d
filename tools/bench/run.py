"""`make bench`: what the library costs, against a driver that does nothing. Prints the tables of the budgets.

Every figure is the median over rounds in which the same binary runs in turn without and with the library; a round is
one process of each kind. Times of launches are processor time of the launching thread. Instructions are counted by
callgrind (skipped where valgrind is not installed) over whole processes that differ only in the number of launches.

    python -m tools.bench.run [--rounds N] [--threads 1,2,4,8,16] [--start] [--case TEXT] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.policy.layout import encode
from pyshim.policy.table import compile_table
from pyshim.start.chosen import load
from tools.bench import start
from tools.bench.cases import CASES, DEFAULT, Case

HERE = Path(__file__).resolve().parent


def compile_all(folder: Path) -> None:
    """Compile the programs, and the drivers that do nothing, into one folder."""
    common = [os.environ.get("CC", "cc"), "-O2", "-std=c11", "-D_GNU_SOURCE"]
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic"]
    start.compile_all(folder)

    def make(output: str, source: Path, *options: str) -> None:
        subprocess.run([*common, str(source), *options, "-o", str(folder / output)], check=True)

    for program, *libraries in (
        ("launch", ("libcuda.so.1", "null_driver.c"), ("libcudart.so.13", "null_runtime.c")),
        ("launch_hip", ("libamdhip64.so.6", "null_hip.c")),
    ):
        for library, source in libraries:
            make(library, HERE / source, *shared, f"-Wl,-soname,{library}", "-ldl")
        behind = [str(folder / library) for library, _ in libraries]
        make(program, HERE / f"{program}.c", *behind, "-ldl", "-pthread", f"-Wl,-rpath,{folder}")
    make(
        "libcaller0.so", HERE / "null_caller.c", *shared, str(folder / "libcudart.so.13"), "-Wl,--allow-shlib-undefined"
    )
    for number in range(1, 8):  # LIBRARIES of launch.c; copies, because the loader opens a file only once
        shutil.copy(folder / "libcaller0.so", folder / f"libcaller{number}.so")


def armed(folder: Path, policy: str = DEFAULT) -> dict[str, str]:
    """Return the variables that overlap-run would set."""
    file = folder / "bench.yaml"
    file.write_text(policy)
    return {"OVERLAP_TABLE": encode(compile_table(load(str(file), {}))), "OVERLAP_QUIET": "1"}


def ask(command: list[str], extra: dict[str, str]) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "LD_PRELOAD"))}
    done = subprocess.run(command, env={**environment, **extra}, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def interleaved(commands: dict[str, tuple[list[str], dict[str, str]]], rounds: int) -> dict[str, float]:
    """Return the median of each command over the rounds, in which the commands run in turn."""
    seen: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, extra) in commands.items():
            seen[name].append(ask(command, extra))
    return {name: statistics.median(values) for name, values in seen.items()}


def instructions(folder: Path, case: Case, extra: dict[str, str]) -> float:
    """Return the instructions of one call of one thread: the difference of two runs that differ in length only."""
    few, many = 20_000, 60_000
    counted = []
    for launches in (few, many):
        out = folder / "callgrind.out"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OVERLAP_")}
        environment.pop("LD_PRELOAD", None)
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={out}",
                str(folder / case.program),
                case.way,
                case.call,
                case.kernel,
                str(case.threads or 1),
                str(launches),
                *case.more,
            ],
            env={**environment, **extra},
            check=True,
            capture_output=True,
            text=True,
        )
        counted.append(int(next(line for line in done.stderr.splitlines() if "Collected" in line).split()[-1]))
    return (counted[1] - counted[0]) / (many - few) / (case.threads or 1)


def launches(folder: Path, rounds: int, threads: list[int], chosen: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for case in (case for case in CASES if chosen in case.name):
        shim = {**armed(folder, case.policy), "LD_PRELOAD": str(_native.SHIM)}
        row: dict[str, object] = {
            "case": case.name,
            "budget_ns": case.nanoseconds and round(case.nanoseconds, 1),
        }
        for count in [case.threads] if case.threads else threads[:1] if case.kernels > 1 else threads:
            command = [
                str(folder / case.program),
                case.way,
                case.call,
                case.kernel,
                str(count),
                str(case.calls),
                *case.more,
            ]
            found = interleaved(
                {"bare": (command, dict(case.driver)), "shim": (command, {**dict(case.driver), **shim})}, rounds
            )
            row[f"threads_{count}"] = round(found["shim"] - found["bare"], 2)
            row.setdefault("bare_ns", round(found["bare"], 2))
        if shutil.which("valgrind") and case.kernels <= 1 and case.streams < 1000:
            row["instructions"] = round(
                instructions(folder, case, {**dict(case.driver), **shim})
                - instructions(folder, case, dict(case.driver)),
                1,
            )
        rows.append(row)
    return rows


def show(title: str, rows: list[dict[str, object]]) -> None:
    print(f"\n{title}")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = [columns, *[["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        print(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))
            )
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--start", action="store_true", help="only what the start of a process costs")
    parser.add_argument("--case", default="", metavar="TEXT", help="only calls whose row holds this text, and no start")
    parser.add_argument("--json", action="store_true", help="one object instead of tables")
    options = parser.parse_args()
    threads = [int(text) for text in options.threads.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_all(folder)
        result: dict[str, Any] = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
            "rounds": options.rounds,
        }
        if not options.case:
            result["start"] = start.rows(folder, options.rounds)
        if not options.start:
            result["launch"] = launches(folder, options.rounds, threads, options.case)
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"{result['machine']}; medians of {options.rounds} interleaved rounds; against a driver that does nothing")
    for title, name in (
        ("Added to a launch: nanoseconds by number of threads, and instructions", "launch"),
        ("Start, end and memory of a program that uses no GPU", "start"),
    ):
        if name in result:
            show(title, result[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
