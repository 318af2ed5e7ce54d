"""Steps like those of DDP, recorded by torch.profiler: traces for `overlap explain`.

    torchrun --standalone --nproc-per-node 2 profile_step.py --out BEFORE
    overlap-run --policy P -- torchrun --standalone --nproc-per-node 2 profile_step.py --out AFTER
    overlap explain BEFORE/rank0.json.gz

A step is a backward pass, two products a layer, with the gradients of every bucket summed over the ranks while the next
layers run, then an update. OUT/rank0.json.gz and so on; on stdout, a JSON line of each rank: what a step took without
the profiler, and a digest of the weights, which the library must not change. One rank alone sends its gradients to
itself, because a sum of one is a copy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import (
    ProfilerActivity,
    profile,
    schedule,
)

WARM = 5


class Step:
    def __init__(self, layers: int, bucket: int, size: int, tokens: int) -> None:
        self.bucket = bucket
        kind = {"device": "cuda", "dtype": torch.bfloat16}
        torch.manual_seed(dist.get_rank())
        self.inputs = torch.randn(tokens, size, **kind)
        torch.manual_seed(0)
        self.weights = torch.randn(layers, size, size, **kind) / size**0.5
        self.gradients = torch.zeros_like(self.weights)
        self.received = torch.empty_like(self.weights[:bucket]) if dist.get_world_size() == 1 else None

    def __call__(self) -> None:
        works = []
        flow = self.inputs
        for layer in reversed(range(len(self.weights))):
            torch.mm(self.inputs.t(), flow, out=self.gradients[layer])
            flow = torch.mm(flow, self.weights[layer])
            if layer % self.bucket == 0:
                works.append(self.reduce(self.gradients[layer : layer + self.bucket]))
        for work in works:
            work.wait()
        self.weights.add_(self.gradients, alpha=-1e-6)

    def reduce(self, gradients: Any) -> Any:
        if self.received is None:
            return dist.all_reduce(gradients, op=dist.ReduceOp.AVG, async_op=True)
        # Explicit splits, or one rank alone makes a copy of it.
        flat = gradients.view(-1)
        return dist.all_to_all_single(
            self.received.view(-1)[: flat.numel()], flat, [flat.numel()], [flat.numel()], async_op=True
        )


def milliseconds(step: Callable[[], None], count: int) -> float:
    """Return the median step by events, while the host runs ahead."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return float(median(before.elapsed_time(after) for before, after in zip(marks, marks[1:])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the traces")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--bucket", type=int, default=4, help="layers")
    parser.add_argument("--size", type=int, default=4096, help="of a layer: its weights are a square")
    parser.add_argument("--tokens", type=int, default=8192)
    options = parser.parse_args()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29513"}.items():
        os.environ.setdefault(name, value)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank = dist.get_rank()
    step = Step(options.layers, options.bucket, options.size, options.tokens)
    for _ in range(WARM):
        step()
    bare = milliseconds(step, options.steps)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"rank{rank}.json.gz"
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=2, active=options.steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
    ) as profiler:
        for left in reversed(range(options.steps + 2)):
            step()
            if left == 0:
                torch.cuda.synchronize()  # or the last step ends where the host does
            profiler.step()
    digest = hashlib.sha256(step.weights.view(torch.uint8).cpu().numpy().tobytes()).hexdigest()[:16]
    line = {"rank": rank, "gpu": torch.cuda.get_device_name(), "step_ms": bare, "digest": digest, "trace": str(path)}
    os.write(1, (json.dumps(line) + "\n").encode())  # in one piece: the ranks share the pipe
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
