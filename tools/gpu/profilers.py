"""Do profilers and the library run beside each other, in which order, and does each see what the other does?

    overlap env --policy profiled.yaml >env && . ./env && unset LD_PRELOAD     # when: always, blocks_per_sm: 1, highest
    python -m tools.gpu.profilers run FOLDER  # on the GPU; overlap-run, nvcc, ncu and compute-sanitizer in PATH
    python -m tools.gpu.profilers read FOLDER OUTPUT.json  # overlap in PATH; anywhere. 1: a result is not as expected

One program, NCCL's SendRecv to itself beside matrix products (self_sendrecv.py 0), under a policy that changes both.
Each arm is one way to wrap it."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.gpu.build import build

HERE = Path(__file__).resolve().parent
PROGRAM = [sys.executable, str(HERE / "self_sendrecv.py"), "0"]
NCU = ["ncu", "--clock-control", "none", "--target-processes", "all"]
NCU += ["--section", "LaunchStats", "--csv", "--page", "raw"]
SANITIZER = ["compute-sanitizer", "--target-processes", "all"]


def arms(folder: Path, report: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Command and variables of each."""
    ours = ["overlap-run", "--report", str(report)]
    ncu = [*NCU, "--log-file", str(report) + ".csv"]
    injected = {"CUDA_INJECTION64_PATH": str(folder / "libinjection.so"), "INJECTION_OUTPUT": str(report) + ".json"}
    counted = [sys.executable, str(HERE / "count_kernels.py"), str(report) + ".kernels", *PROGRAM[1:]]
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


def unexpected(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each result that differs from docs/how-to/profile.md.

    A profiler sees every launch. The library sees every launch too, but under Nsight Compute only some.
    """
    every = next((row["profiler"]["launches"] for row in rows if row["arm"] == "torch.profiler"), 0)
    for row in rows:
        arm, seen = row["arm"], row["library"].get("launches", 0)
        if row["exit_status"]:
            yield f"{arm}: exit status {row['exit_status']}"
        if row["profiler"] and row["profiler"]["launches"] != every:
            yield f"{arm}: the profiler saw {row['profiler']['launches']} of {every} launches"
        least = 1 if "ncu" in arm else every
        if "overlap-run" in arm and not least <= seen <= every:
            yield f"{arm}: the library saw {seen} of {every} launches"


def run(folder: Path) -> None:
    folder.mkdir()
    build(["libinjection.so"], folder, "native")
    rows = []
    for number, arm in enumerate(arms(folder, folder)):
        report = folder / f"report{number}"
        command, variables = arms(folder, report)[arm]
        environment = {**os.environ, "ELEMENTS": str(1 << 20), **variables}
        if "overlap-run" not in arm:
            environment.pop("OVERLAP_TABLE", None)
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
            status, said = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            status, said = 124, str(late.stdout or b"", "utf-8", "replace")
        rows.append({"arm": arm, "report": report.name, "exit_status": status})
        errors = re.findall(r"ERROR SUMMARY: (\d+)", said)
        if errors:
            rows[-1]["sanitizer_errors"] = [int(error) for error in errors]
        if status:
            rows[-1]["said"] = said[-1500:]
        print(rows[-1], profiled(report), flush=True)
    (folder / "arms.json").write_text(json.dumps(rows))


def main() -> int:
    folder = Path(sys.argv[2])
    if sys.argv[1] == "run":
        run(folder)
        return 0
    rows = json.loads((folder / "arms.json").read_text())
    for row in rows:
        report = folder / row.pop("report")
        row.update({"library": counted(report), "profiler": profiled(report)})
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    Path(sys.argv[3]).write_text(f"[\n{lines}\n]\n")
    wrong = list(unexpected(rows))
    print("\n".join(wrong) or "as docs/how-to/profile.md says", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
