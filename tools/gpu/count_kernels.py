"""Runs a Python program under torch's profiler and says, as one JSON line, how many kernels the GPU ran.

    python -m tools.gpu.count_kernels OUTPUT.json PROGRAM [ARG ...]

The report of the same command behind overlap-run must count as many launches; kernels of a replayed graph come with the
call that launched the graph.
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

import torch
from torch.profiler import ProfilerActivity, profile


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
    kernels = [str(event["name"]) for event in events if event.get("cat") == "kernel"]
    made = {"kernels": len(kernels), "by_name": dict(Counter(kernels).most_common(40))}
    Path(output).write_text(json.dumps(made) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
