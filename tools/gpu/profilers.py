"""Do profilers and the library run beside each other, in which order, and does each see what the other does?

    overlap env --policy profiled.yaml >env && . ./env && unset LD_PRELOAD     # when: always, blocks_per_sm: 1, highest
    python -m tools.gpu.profilers FOLDER OUTPUT.json [--limit SECONDS]         # 1: a result is not as expected

One program, NCCL's SendRecv to itself beside matrix products (self_sendrecv.py), under the default policy or, with
the first line, one that changes both. Each arm is one way to wrap it. The output is written after each arm; one whose
tool is not here, or that time was too short for, says so (`not_measured`)."""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.gpu.build import NotBuilt, build
from tools.gpu.processes import ended

HERE = Path(__file__).resolve().parent
PROGRAM = [sys.executable, str(HERE / "self_sendrecv.py")]
COUNTER, INJECTED = HERE / "count_kernels.py", "libinjection.so"
ARM = 90.0  # seconds of an arm, at most
NCU = ["ncu", "--clock-control", "none", "--target-processes", "all"]
NCU += ["--section", "LaunchStats", "--csv", "--page", "raw"]
SANITIZER = ["compute-sanitizer", "--target-processes", "all"]


def arms(folder: Path, report: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Command and variables of each."""
    ours = ["overlap-run", "--report", str(report)]
    ncu = [*NCU, "--log-file", str(report) + ".csv"]
    injected = {"CUDA_INJECTION64_PATH": str(folder / INJECTED), "INJECTION_OUTPUT": str(report) + ".json"}
    counted = [sys.executable, str(COUNTER), str(report) + ".kernels", *PROGRAM[1:]]
    return {
        "bare": (PROGRAM, {}),
        "overlap-run": ([*ours, *PROGRAM], {}),
        "torch.profiler": (counted, {}),
        "overlap-run, torch.profiler": ([*ours, *counted], {}),
        "CUDA_INJECTION64_PATH": (PROGRAM, injected),
        "overlap-run, CUDA_INJECTION64_PATH": ([*ours, *PROGRAM], injected),
        "ncu": ([*ncu, *PROGRAM], {}),
        "ncu overlap-run": ([*ncu, *ours, *PROGRAM], {}),
        "overlap-run ncu": ([*ours, *ncu, *PROGRAM], {}),
        "compute-sanitizer": ([*SANITIZER, *PROGRAM], {}),
        "compute-sanitizer overlap-run": ([*SANITIZER, *ours, *PROGRAM], {}),
        "overlap-run compute-sanitizer": ([*ours, *SANITIZER, *PROGRAM], {}),
    }


def profiled(report: Path) -> dict[str, Any]:
    """Return what the profiler of an arm wrote."""
    found: dict[str, Any] = {}
    injected, kernels, rows = (Path(str(report) + ending) for ending in (".json", ".kernels", ".csv"))
    if injected.exists():
        found = json.loads(injected.read_text())
    if kernels.exists():
        traced = json.loads(kernels.read_text())
        found = {
            "launches": traced["kernels"],
            "communication": sum(count for name, count in traced["by_name"].items() if name.startswith("nccl")),
        }
    if rows.exists():
        lines = [line for line in rows.read_text().splitlines() if line.startswith('"')]
        table = [row for row in csv.DictReader(lines) if row["ID"]]
        sizes = [row.get("launch__shared_mem_per_block_dynamic", "0") for row in table]
        found = {
            "launches": len(table),
            "communication": sum("nccl" in row["Kernel Name"] for row in table),
            "with_dynamic": sum(float(size.replace(",", "")) > 0 for size in sizes),
        }
    return found


def counted(report: Path) -> dict[str, Any]:
    if not report.exists():
        return {}
    done = subprocess.run(["overlap", "report", str(report), "--json"], stdout=subprocess.PIPE, check=False)
    totals = json.loads(done.stdout)["totals"]
    return {name: totals[name] for name in ("launches", "communication", "shaped", "raised", "refused")}


def read(report: Path) -> dict[str, Any]:
    """Return what both say; `unread`: why one of them could not be read."""
    found: dict[str, Any] = {"library": {}, "profiler": {}}
    for who, reader in (("library", counted), ("profiler", profiled)):
        try:
            found[who] = reader(report)
        except (OSError, ValueError, KeyError, AttributeError) as error:
            found["unread"] = f"{who}: {error!r}"
    return found


def unexpected(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each result that differs from docs/how-to/profile.md.

    A profiler sees every launch. The library sees every launch too, but under Nsight Compute only some.
    """
    measured = [row for row in rows if "not_measured" not in row]
    every = next((row["profiler"].get("launches", 0) for row in measured if row["arm"] == "torch.profiler"), 0)
    for row in measured:
        arm, seen = row["arm"], row["library"].get("launches", 0)
        if row["exit_status"]:
            yield f"{arm}: exit status {row['exit_status']}"
        if "unread" in row:
            yield f"{arm}: {row['unread']}"
        if row["profiler"] and row["profiler"]["launches"] != every:
            yield f"{arm}: the profiler saw {row['profiler']['launches']} of {every} launches"
        least = 1 if "ncu" in arm else every
        if "overlap-run" in arm and not least <= seen <= every:
            yield f"{arm}: the library saw {seen} of {every} launches"


def missing(command: Sequence[str], variables: dict[str, str], built: str) -> str:
    """Why an arm cannot be measured here, or ''."""
    absent = [tool for tool in ("ncu", "compute-sanitizer") if tool in command and not shutil.which(tool)]
    if absent:
        return f"{absent[0]} is not in PATH"
    return built if "CUDA_INJECTION64_PATH" in variables else ""


def measured(folder: Path, until: float) -> Iterator[dict[str, Any]]:
    """A row of each arm."""
    folder.mkdir()
    built = ""
    try:
        build([INJECTED], folder, "native")
    except NotBuilt as error:
        built = str(error)
    for number, arm in enumerate(arms(folder, folder)):
        report = folder / f"report{number}"
        command, variables = arms(folder, report)[arm]
        left = until - time.monotonic()
        lacks = missing(command, variables, built) or ("out of time" if left <= 0 else "")
        if lacks:
            yield {"arm": arm, "not_measured": lacks}
            continue
        environment = {**os.environ, "ELEMENTS": str(1 << 20), **variables}
        if "overlap-run" not in arm:
            environment.pop("OVERLAP_TABLE", None)
        work = folder / f"work{number}"
        work.mkdir()
        done = ended(command, environment, min(ARM, left), work)
        row: dict[str, Any] = {"arm": arm, "exit_status": done.status, "seconds": done.seconds}
        errors = re.findall(r"ERROR SUMMARY: (\d+)", done.output + done.errors)
        if errors:
            row["sanitizer_errors"] = [int(error) for error in errors]
        if done.status:
            row["said"] = (done.output + done.errors)[-1500:]
        yield {**row, **read(report)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a new one, for reports")
    parser.add_argument("output", type=Path)
    parser.add_argument("--limit", type=float, default=240, help="seconds")
    options = parser.parse_args(arguments)
    until, rows = time.monotonic() + options.limit, list[dict[str, Any]]()
    for row in measured(options.folder.absolute(), until):
        rows.append(row)
        print(row, flush=True)
        options.output.write_text(
            "[\n" + ",\n".join("  " + json.dumps(one) for one in rows) + "\n]\n", encoding="utf-8"
        )
    wrong = list(unexpected(rows))
    wrong += [f"{row['arm']}: not measured: {row['not_measured']}" for row in rows if "not_measured" in row]
    print("\n".join(wrong) or "as docs/how-to/profile.md says", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
