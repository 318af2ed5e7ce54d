"""Record traces of a stencil that exchanges boundary planes between two GPUs: test data of `overlap explain`.

    python -m tools.gpu.stencil_trace LIBRARY --out DIR       LIBRARY: libstencil_trace.so, built from stencil_trace.cu

Each way of exchange runs in a process of its own, with the halo streams as a program creates them and at the greatest
priority. DIR gets traces of 10 iterations and times.json: milliseconds of an iteration without the profiler, and a
checksum. Three kinds of trace, told apart by the end of their name:

- plain: what torch.profiler records unless more is asked for: no row says which stream waited for what
- sync: enable_cuda_sync_events. Since CUDA 12.9 the rows of waits do not say for what they waited: CUPTI sends the
  records of events only when these are asked for, and PyTorch does not ask (pytorch/kineto#1552)
- events: sync, and this program asks CUPTI for the records of events
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
)

from tools.gpu.whole.tracing import CUDA_EVENT, loaded

EXCHANGES = ("nccl", "host", "host-query")  # enum Exchange
KINDS = ("plain", "sync", "events")
WARM, RECORDED, TIMED, ROUNDS = 20, 10, 200, 9  # iterations; rounds of TIMED


class Stencil:
    def __init__(self, library: str, points: int, exchange: str, raised: bool) -> None:
        torch.cuda.init()
        loaded("libcudart.so")
        loaded("libnccl.so")
        self.library = ctypes.CDLL(library)
        self.call("open", points, EXCHANGES.index(exchange), int(raised))
        self.run(WARM)

    def call(self, name: str, *arguments: Any) -> None:
        if getattr(self.library, f"stencil_{name}")(*arguments):
            raise SystemExit(f"stencil_{name} failed")

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self.call("step")
        self.call("wait")

    def milliseconds(self) -> list[float]:
        """Return the time of an iteration, for each of ROUNDS."""
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            self.run(TIMED)
            times.append(1000 * (time.perf_counter() - begun) / TIMED)
        return times

    def sum(self) -> float:
        value = ctypes.c_double()
        self.call("sum", ctypes.byref(value))
        return value.value

    def record(self, path: Path, kind: str) -> None:
        config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=kind != "plain")
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=0, warmup=2, active=RECORDED, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
            experimental_config=config,
        ) as profiler:
            if kind == "events":
                status = loaded("libcupti.so").cuptiActivityEnable(CUDA_EVENT)
                if status:
                    raise SystemExit(f"CUPTI refuses the records of events: {status}")
            for left in reversed(range(RECORDED + 2)):
                with record_function("iteration"):
                    self.call("step")
                if left == 0:
                    self.call("wait")  # or the last iteration ends where the host does
                profiler.step()


def one(options: argparse.Namespace) -> None:
    """One way of exchange, in this process; a JSON line."""
    stencil = Stencil(options.library, options.points, options.exchange, options.raised)
    times = stencil.milliseconds()
    name = f"{options.exchange}{'-raised' * options.raised}"
    for kind in KINDS:
        try:
            stencil.record(options.out / f"stencil-{name}-{kind}.json.gz", kind)
        except SystemExit as missing:
            print(f"{name}, {kind}: {missing}", file=sys.stderr)
    row = {
        "name": name,
        "points": options.points,
        "exchange": options.exchange,
        "raised": options.raised,
        "ms": median(times),
        "samples": times,
        "sum": stencil.sum(),
    }
    print(json.dumps(row), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=str)
    parser.add_argument("--out", type=Path, required=True, help="folder for the traces")
    parser.add_argument("--points", type=int, default=384, help="along an edge of the cube of each GPU")
    parser.add_argument("--exchange", choices=EXCHANGES, help="this one only, in this process")
    parser.add_argument("--raised", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.exchange:
        one(options)
        return 0
    rows = []
    for exchange in EXCHANGES:
        for raised in ([], ["--raised"]):
            words = [sys.executable, __file__, *sys.argv[1:], "--exchange", exchange, *raised]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
            print(done.stdout, end="", flush=True)
            if done.returncode:
                return 1
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    versions = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    (options.out / "times.json").write_text(json.dumps({**versions, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
