"""Real collectives: were the launches that ran beside one in a window? From a profile and the trace of one process.

    python two_gpus.py OUT.json --rounds 1 --profile --launches --arm 'bare:' \\
        --arm 'room pairs: TWO_GPUS_KINDS=pairs overlap-run --policy P --report DIR --trace'
    overlap report DIR --launches --json > launches.txt
    python -m tools.gpu.windows_profile OUT.json 'room pairs' launches.txt

The profile is the last thing that rank 0 does, so its launches are the last ones of that process's trace.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

LEAST_US = 1.0  # that count as the same time


def compared(profile: list[list[Any]], trace: list[dict[str, Any]]) -> dict[str, Any]:
    trace = trace[-len(profile) :]
    mismatched = sum(
        (launch["blocks"], launch["threads"]) != (kernel[4], kernel[5])
        or ("nccl" in launch["kernel"]) != ("nccl" in kernel[0])
        for kernel, launch in zip(profile, trace)
    )
    beside: list[set[str]] = [set() for _ in profile]
    communication = [(at, *kernel[1:3]) for at, kernel in enumerate(profile) if "nccl" in kernel[0]]
    for at, (name, start, duration, *_) in enumerate(profile):
        if "nccl" in name:
            continue
        for other, other_start, other_duration in communication:
            if min(start + duration, other_start + other_duration) - max(start, other_start) >= LEAST_US:
                beside[at].add("launched before" if other > at else "launched after")
    counts: Counter[str] = Counter()
    wrong = []
    for at, (kernel, launch) in enumerate(zip(profile, trace)):
        if "nccl" in kernel[0]:
            continue
        said = "inside" if launch["overlapping"] else "outside"
        really = (
            "beside communication that was launched before it"
            if "launched after" in beside[at]
            else "beside communication that was launched after it"
            if beside[at]
            else "alone"
        )
        counts[f"{said}, {really}"] += 1
        if said == "outside" and really.endswith("before it"):
            wrong.append([at, *kernel, launch["reason"]])
    return {"launches": len(profile), "mismatched": mismatched, "computation": dict(counts), "wrong": wrong}


def main() -> int:
    output, arm, launches = sys.argv[1:]
    traces: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in Path(launches).read_text().splitlines():
        launch = json.loads(line)
        traces[launch["pid"]].append(launch)
    failed = False
    for case in json.loads(Path(output).read_text())["cases"]:
        profile = case["arms"].get(arm, {}).get("profile")
        if not profile or "launches" not in profile:
            continue
        found = min((compared(profile["launches"], its) for its in traces.values()), key=lambda one: one["mismatched"])
        failed |= bool(found["mismatched"] or found["wrong"])
        print(json.dumps({"kind": case["kind"], "ratio": case["ratio"], "arm": arm, **found}))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
