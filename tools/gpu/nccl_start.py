"""How long does NCCL's own SendRecv wait behind a long kernel of 1 to 8 blocks a multiprocessor? One JSON line.

    [NCCL_CGA_CLUSTER_SIZE=0] [TORCH_NCCL_HIGH_PRIORITY=1] [NCCL_MAX_CTAS=16]
        python -m tools.gpu.nccl_start [REPETITIONS]

One rank that sends to itself. The long kernel: 20 waves of blocks that hold their place for 200 us, give or take a
half. Measured from an event before the collective to one behind it, on a stream without other work; 2 MiB are sent,
so that the collective itself is short. `alone`: without the long kernel. `graph`: the collective as a replayed graph,
which PyTorch instantiates with the flag for node priorities; `plain graph`: without it, as a program of its own does.
nccl_start_matrix.py asks it under many settings, and behind real products, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import torch
import torch.distributed as dist

from tools.gpu.overlap.turns import serve

SOURCE = r"""
extern "C" __global__ void hold_place(unsigned long long duration) {
    extern __shared__ char memory[];
    unsigned long long start, now, wait;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    unsigned hash = (blockIdx.x * 2654435761u) ^ (unsigned)(start >> 5);
    hash ^= hash >> 15;
    hash *= 0x2c1b3c6du;
    hash ^= hash >> 12;
    wait = duration / 2 + (unsigned long long)(hash % 1024) * duration / 1024;
    if (threadIdx.x == 0)
        do {
            __nanosleep(200);
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        } while (now - start < wait);
    __syncthreads();
}
"""


class Low(NamedTuple):
    """The long kernel: blocks on each multiprocessor, bytes of each, preferred carve-out (-1: none)."""

    blocks: int
    bytes: int
    carveout: int


# One block of 115,713 bytes leaves room for one of NCCL's beside it: if the carve-out is the largest.
LOWS = {
    "1 block of all": Low(1, 232448, -1),
    "2 blocks": Low(2, 115712, -1),
    "4 blocks": Low(4, 57344, -1),
    "8 blocks": Low(8, 28160, -1),
    "1 block of 115,713 bytes": Low(1, 115713, -1),
    "1 block of 115,713 bytes, largest carve-out": Low(1, 115713, 100),
}
WAVES, BLOCK_NS, ELEMENTS = 20, 200_000, 1 << 20
SETTINGS = ("NCCL_CGA_CLUSTER_SIZE", "TORCH_NCCL_HIGH_PRIORITY", "NCCL_MAX_CTAS", "TORCH_CUDA_GRAPHS_USE_NODE_PRIORITY")


class Plain:
    """A captured graph that is instantiated without any flag."""

    def __init__(self, body: Callable[[], None]) -> None:
        self.runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.partition('.')[0]}")
        self.captured = torch.cuda.CUDAGraph(keep_graph=True)
        self.made = ctypes.c_void_p()
        with torch.cuda.graph(self.captured):
            body()
        graph = ctypes.c_void_p(self.captured.raw_cuda_graph())
        self.must(self.runtime.cudaGraphInstantiate(ctypes.byref(self.made), graph, ctypes.c_ulonglong(0)))

    def must(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cudart: {status}")

    def replay(self) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.must(self.runtime.cudaGraphLaunch(self.made, stream))

    def reset(self) -> None:
        self.must(self.runtime.cudaGraphExecDestroy(self.made))
        self.captured.reset()


class Program:
    """The rank, its kernels, and what is captured. measure() keeps on adding to samples."""

    def __init__(self) -> None:
        self.source = torch.randn(ELEMENTS, device="cuda", dtype=torch.bfloat16)
        self.target = torch.empty_like(self.source)
        self.holds = {-1: cupy.RawKernel(SOURCE, "hold_place")}
        self.holds[100] = cupy.RawKernel(SOURCE.replace("hold_place", "hold_largest"), "hold_largest")
        for carveout, hold in self.holds.items():
            hold.max_dynamic_shared_size_bytes = 232448
            if carveout >= 0:  # where the program says nothing, a policy may
                hold.preferred_shared_memory_carveout = carveout
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.busy = torch.cuda.Stream()
        self.busy_for_cupy = cupy.cuda.Stream.from_external(self.busy)
        self.lows: dict[str, Callable[[], None]] = {
            name: lambda low=low: self.hold(low)  # type: ignore[misc]
            for name, low in LOWS.items()
        }
        self.samples: dict[str, list[float]] = {}
        for _ in range(5):
            self.timed(self.send)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.send()
        self.plain = Plain(self.send)
        self.ways = {"launched": self.send, "graph": self.graph.replay, "plain graph": self.plain.replay}

    def add_products(self) -> None:
        """Of some milliseconds each: what a program really has before a collective."""
        from tools.gpu.overlap.triton_product import product

        torch.backends.cuda.matmul.allow_tf32 = False
        kind = {"device": "cuda", "dtype": torch.bfloat16}
        a, b, c = (torch.randn(*shape, **kind) for shape in ((8192, 8192), (8192, 32768), (8192, 32768)))
        kind["dtype"] = torch.float32
        d, e, f = (torch.randn(*shape, **kind) for shape in ((8192, 2048), (2048, 8192), (8192, 8192)))
        self.lows["cuBLAS, bf16"] = lambda: torch.mm(a, b, out=c)
        self.lows["cuBLAS, fp32"] = lambda: torch.mm(d, e, out=f)
        self.lows["Triton, bf16"] = lambda: product(a, b, c)

    def hold(self, low: Low) -> None:
        with self.busy_for_cupy:
            grid = (WAVES * low.blocks * self.sms,)
            self.holds[low.carveout](grid, (128,), (cupy.uint64(BLOCK_NS),), shared_mem=low.bytes)

    def send(self) -> None:
        dist.all_to_all_single(self.target, self.source, [ELEMENTS], [ELEMENTS], async_op=True).wait()

    def timed(self, body: Callable[[], None]) -> float:
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        body()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1e3

    def behind(self, low: str, body: Callable[[], None]) -> float:
        with torch.cuda.stream(self.busy):
            self.lows[low]()
        time.sleep(0.001)
        waited = self.timed(body)
        self.busy.synchronize()
        return waited

    def alone(self, low: str) -> float:
        """us of what it waits behind."""
        with torch.cuda.stream(self.busy):
            return self.timed(self.lows[low])

    def measure(self, ways: list[str], lows: list[str], repetitions: int = 1) -> dict[str, list[float]]:
        """us, by case, each once more before the first time; and what each of lows takes by itself."""
        if not self.samples:
            for low in lows:
                for way in ways:
                    self.behind(low, self.ways[way])
        made: dict[str, list[float]] = {}
        for _ in range(repetitions):
            for low in lows:
                made.setdefault(f"{low}, by itself", []).append(self.alone(low))
            for way in ways:
                made.setdefault(f"{way}, alone", []).append(self.timed(self.ways[way]))
                for low in lows:
                    made.setdefault(f"{way}, behind {low}", []).append(self.behind(low, self.ways[way]))
        assert torch.equal(self.source, self.target)
        self.samples = made
        return made

    def close(self) -> None:
        self.plain.reset()
        self.graph.reset()  # or taking the communicator down waits for ever
        torch.cuda.synchronize()


def main() -> int:
    served = sys.argv[1:] == ["serve"]  # by nccl_start_matrix.py
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29513")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
    program = Program()
    if served:
        program.add_products()
        serve("ready", lambda request: program.measure(request["ways"], request["lows"]))
    else:
        samples = program.measure(list(program.ways), list(LOWS), int(sys.argv[1]) if len(sys.argv) > 1 else 20)
        medians = {name: statistics.median(values) for name, values in samples.items()}
        settings: dict[str, Any] = {name: os.environ[name] for name in SETTINGS if name in os.environ}
        total = WAVES * BLOCK_NS / 1e3
        result = {"settings": settings, "low_total_us": total, "median_us": medians, "samples_us": samples}
        print(json.dumps(result), flush=True)
    program.close()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
