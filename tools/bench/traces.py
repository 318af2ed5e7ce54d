"""How long reading a trace takes, and how much memory: of a made-up one in Kineto's form, of any size.

    python -m tools.bench.traces [--megabytes N] [--kernels-only] [--seed N] [--keep FILE]

Reads it in a process of its own, as `overlap explain` does, and prints time and peak memory. In a trace of a real
program most events are of the host; --kernels-only is the worst case, because what is kept is kept of kernels.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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
_HOST = """  {{
    "ph": "X", "cat": "{category}", "name": "{name}", "pid": 90, "tid": 90,
    "ts": {ts:.3f}, "dur": 1.200,
    "args": {{
      "External id": {n}, "Record function id": 0, "Ev Idx": {n},
      "Input Dims": [[4096, 4096], [4096, 4096], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"]
    }}
  }},
"""
_STEP = """  {{
    "ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#{n}", "pid": 0, "tid": 7, "ts": {ts}, "dur": {dur}
  }},
"""


def events(seed: int, kernels_only: bool) -> Iterator[str]:
    """Yield steps without end: GEMMs on one stream, an all-reduce beside every tenth on another."""
    made = random.Random(seed)
    now, count, step = 1000.0, 0, 0
    while True:
        begin, pieces = now, []
        for index in range(STEP_KERNELS):
            count += 1
            if not kernels_only:
                for category, name in (("cpu_op", "aten::mm"), ("cuda_runtime", "cudaLaunchKernel")):
                    pieces.append(_HOST.format(category=category, name=name, ts=now - 50, n=count))
            long = made.gauss(40, 2)
            pieces.append(_KERNEL.format(name=made.choice(_GEMMS), stream=7, ts=now, dur=long, n=count, grid=264))
            if index % 10 == 0:
                pieces.append(_KERNEL.format(name=_NCCL, stream=20, ts=now + 5, dur=300, n=count, grid=24))
            now += long + 1
        yield _STEP.format(n=step, ts=begin, dur=now - begin)
        made.shuffle(pieces)  # Kineto's files are in no order
        yield from pieces
        step += 1


def write(path: Path, size: int, seed: int = 1, kernels_only: bool = False) -> None:
    """Write about this many bytes, in whole events."""
    with path.open("w", encoding="utf-8") as file:
        written = file.write('{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0, "world_size": 8},\n')
        written += file.write('  "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],\n  "traceEvents": [\n')
        for text in events(seed, kernels_only):
            if written > size:
                break
            written += file.write(text)
        file.write('  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1}\n]}\n')


# Not by getrusage: a process's greatest size is also that of the one that has started it, before exec.
_READ = """
import json, re, statistics, sys
from pyshim.traces.waiting import find
times = [one.span_us for one in find(sys.argv[1]).processes]
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)
print(json.dumps([int(peak), statistics.fmean(times)]))
"""


def read(path: Path) -> tuple[float, float, float]:
    """Return seconds of CPU and peak MB of reading a trace in a process of its own, and the microseconds of a step."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", _READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak, step = json.loads(done.stdout)
    return seconds, peak / 1024, step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--kernels-only", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where to leave the trace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "trace.json"
        write(path, options.megabytes * 1000**2, options.seed, options.kernels_only)
        size = path.stat().st_size / 1e9
        seconds, megabytes, step = read(path)
    print(f"{size:.2f} GB: {seconds:.1f} s of CPU, {seconds / size:.1f} per GB; peak {megabytes:.0f} MB")
    print(f"steps of {step:.0f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
