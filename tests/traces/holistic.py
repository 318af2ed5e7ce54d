"""What Holistic Trace Analysis itself says of traces of ours. To ask it again, where it is installed:

pip install HolisticTraceAnalysis==0.5.0 && python tests/traces/holistic.py
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from made import K, kineto, kineto_events, step

# By rank, microseconds: idle_time, compute_time, kernel_time; comp_comm_overlap_pctg.
ANSWERS = {
    "before": [(528.0, 24335.0, 29687.0, 75.27), (528.0, 23016.0, 28368.0, 75.02)],
    "after": [(528.0, 24002.0, 25754.0, 92.48), (528.0, 25255.0, 27007.0, 92.34)],
}


def make(folder: Path) -> None:
    """Two ranks each, twelve steps that nothing marks, so that HTA too takes all from first to last."""
    made = random.Random(1)
    for name, late in (("before", 400), ("after", 100)):
        (folder / name).mkdir()
        for rank in range(2):
            kernels: list[K] = []
            now = 1000
            for _ in range(12):
                gemms = [made.randint(50, 150) for _ in range(20)]
                busy = sum(gemms)
                reduces = [(300, made.randint(400, 600)), (busy - 700, 700 + late)]
                kernels += [K(None, now - 2, 2), *step(now, gemms, reduces)]
                now += busy + late + 50
            kineto(folder / name / f"rank{rank}.json", with_calls(kineto_events(kernels)), rank=rank)


def with_calls(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """HTA wants the host's call to everything that ran, and arguments everywhere."""
    calls = [
        {
            **event,
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 90,
            "tid": 90,
            "ts": event["ts"] - 10,
            "dur": 3,
        }
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy")
    ]
    for call in calls:
        call["args"] = {"correlation": call["args"]["correlation"]}
    return [{"args": {}, **event} for event in (*events, *calls)]


def main() -> int:
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for name in ANSWERS:
            files = {rank: f"{folder}/{name}/rank{rank}.json" for rank in range(2)}
            asked = TraceAnalysis(trace_files=files, trace_dir=f"{folder}/{name}", include_last_profiler_step=True)
            for table in (asked.get_temporal_breakdown(visualize=False), asked.get_comm_comp_overlap(visualize=False)):
                print(name, table.to_string(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
