"""Runs a Python program under torch's profiler and says, as one JSON line, how many kernels the GPU ran.

    python -m tools.gpu.count_kernels OUTPUT.json PROGRAM [ARG ...]

The report of a shimmed run of the same command must count as many launches as the profiler saw kernels that were
launched one by one; kernels of a replayed graph come with the call that launched the graph.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

FACTS = ("grid", "block", "registers per thread", "shared memory", "blocks per SM", "warps per SM")


def count(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Kernels by name, and by the call of the runtime or the driver that launched them."""
    kernels = [event for event in events if event.get("cat") == "kernel"]
    calls = {
        event["args"]["correlation"]: str(event["name"])
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
    }
    communication = {
        str(kernel["name"]): {key: kernel["args"][key] for key in FACTS if key in kernel["args"]}
        for kernel in kernels
        if str(kernel["name"]).startswith("nccl")
    }
    by_call = Counter(calls.get(kernel["args"].get("correlation"), "unknown") for kernel in kernels)
    return {
        "kernels": len(kernels),
        "by_call": dict(by_call.most_common()),
        "by_name": dict(Counter(str(kernel["name"]) for kernel in kernels).most_common(40)),
        "communication": communication,
        "calls": dict(Counter(calls.values()).most_common(60)),
    }


def main() -> int:
    output, program = sys.argv[1], sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, str(Path(program).resolve().parent))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
        with contextlib.suppress(SystemExit):
            runpy.run_path(program, run_name="__main__")
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(trace)
        events = json.loads(Path(trace).read_text())["traceEvents"]
    Path(output).write_text(json.dumps(count(events)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
