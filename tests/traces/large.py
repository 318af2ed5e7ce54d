"""A made-up trace in Kineto's form, of any size, and what reading it takes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEP_KERNELS = 2000
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_GEMMS = [f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_{tile}>(Params)" for tile in range(40)]
_KERNEL = """  {{
    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream},
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {n}, "queued": 0, "device": 0, "context": 1,
      "stream": {stream}, "correlation": {n},
      "registers per thread": 168, "shared memory": 99328,
      "blocks per SM": 2.0, "warps per SM": 8.0,
      "grid": [{grid}, 1, 1], "block": [128, 1, 1],
      "est. achieved occupancy %": 12
    }}
  }},
"""
_STEP = """  {{
    "ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#{n}", "pid": 0, "tid": 7, "ts": {ts}, "dur": {dur}
  }},
"""


def write(path: Path, size: int) -> None:
    """Write about this many bytes, in whole steps: GEMMs on one stream, an all-reduce beside every tenth on another."""
    made = random.Random(1)
    now, count, step = 1000.0, 0, 0
    with path.open("w", encoding="utf-8") as file:
        written = file.write('{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0, "world_size": 8},\n')
        written += file.write('  "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],\n  "traceEvents": [\n')
        while written < size:
            begin, pieces = now, []
            for index in range(STEP_KERNELS):
                count += 1
                long = made.gauss(40, 2)
                pieces.append(_KERNEL.format(name=made.choice(_GEMMS), stream=7, ts=now, dur=long, n=count, grid=264))
                if index % 10 == 0:
                    pieces.append(_KERNEL.format(name=_NCCL, stream=20, ts=now + 5, dur=300, n=count, grid=24))
                now += long + 1
            made.shuffle(pieces)  # Kineto's files are in no order
            written += file.write(_STEP.format(n=step, ts=begin, dur=now - begin) + "".join(pieces))
            step += 1
        file.write('  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1}\n]}\n')


# Not by getrusage: a process's greatest size is also that of the one that has started it, before exec.
_READ = """
import re, sys
from pyshim.traces.waiting import find
assert all(one.span_us for one in find(sys.argv[1]).processes)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
"""


def peak(path: Path) -> float:
    """Return the peak MB of reading a trace in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return float(json.loads(done.stdout)) / 1024
