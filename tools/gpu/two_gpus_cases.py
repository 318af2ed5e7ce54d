"""What two_gpus.py runs: the cases, and what a profile says about them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH, LAYERS, BATCH, WARM, STEPS, ALONE = 8192, 8, 4096, 3, 8, 5
RATIOS = {"2:1": 2.0, "1:1": 1.0, "1:2": 0.5}
CASES = {
    "backward": RATIOS,
    "pairs": {"8:1": 8.0, **RATIOS},
    "synchronous": {"1:1": 1.0},
    "blocking_calls": {"1:1": 1.0},
    "sharded": {"2:1": 2.0, "1:1": 1.0},
    "forward_attention": RATIOS,
    "simt_products": RATIOS,
}


class Case:
    """Matrices of one case, its step, and the step without communication."""

    def __init__(self, kind: str, size: int) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.size = torch, dist, size
        torch.manual_seed(20 + dist.get_rank())
        made = {"device": "cuda", "dtype": torch.bfloat16}
        self.results: list[Any] = []
        self.step, self.reduce_all = getattr(self, kind)(made)

    def reduce(self, tensor: Any) -> Any:
        return self.dist.all_reduce(tensor, async_op=self.asynchronous) if self.communicates else None

    def wait(self, works: list[Any]) -> None:
        for work in works:
            if work is not None:
                work.wait()

    communicates = asynchronous = True

    def backward(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """DDP, size: tokens. A layer's two products, an elementwise kernel; its gradient is reduced beside the next."""
        torch = self.torch
        activations = torch.randn(self.size, WIDTH, **made)
        mask = torch.rand(self.size, WIDTH, **made)
        weights = [torch.randn(WIDTH, WIDTH, **made) * WIDTH**-0.5 for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        flows = [torch.randn(self.size, WIDTH, **made) for _ in range(2)]
        seed = torch.randn(self.size, WIDTH, **made)
        self.results = buckets

        def step() -> None:
            works = []
            flows[0].copy_(seed)
            for layer in range(LAYERS):
                flow, following = flows[layer % 2], flows[1 - layer % 2]
                flow.mul_(mask)
                torch.mm(flow.t(), activations, out=buckets[layer])
                works.append(self.reduce(buckets[layer]))
                torch.mm(flow, weights[layer], out=following)
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def forward_attention(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Grids of many waves beside sums: attention and elementwise kernels. size: tokens."""
        torch = self.torch
        heads = 64
        length = max(256, self.size)
        q, k, v = (torch.randn(1, heads, length, 64, **made) for _ in range(3))
        outputs = [torch.empty_like(q) for _ in range(LAYERS)]
        sources = [torch.randn(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        self.results = [*buckets, *outputs]

        def step() -> None:
            works = []
            for layer in range(LAYERS):
                buckets[layer].copy_(sources[layer])
                works.append(self.reduce(buckets[layer]))
                made_now = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                torch.add(made_now, q, out=outputs[layer])
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def simt_products(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Grids of many waves beside sums: products in float32 without tensor cores. size: tokens."""
        torch = self.torch
        made = {**made, "dtype": torch.float32}
        inner = 1024
        a = torch.randn(self.size, inner, **made)
        weight = torch.randn(inner, WIDTH, **made)
        outputs = [torch.empty(self.size, WIDTH, **made) for _ in range(2)]
        sources = [torch.randn(WIDTH // 2, WIDTH, **made) for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH // 2, WIDTH, **made) for _ in range(LAYERS)]
        self.results = [*buckets, *outputs]

        def step() -> None:
            works = []
            for layer in range(LAYERS):
                buckets[layer].copy_(sources[layer])
                works.append(self.reduce(buckets[layer]))
                torch.mm(a, weight, out=outputs[layer % 2])
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def pairs(self, made: dict[str, Any], halves: int = 2) -> tuple[Callable[[], None], Callable[[], None]]:
        """Tensor-parallel layers of two halves of a batch: a half's sum beside the other's products. size: hidden."""
        torch = self.torch
        hidden = self.size  # this rank's half
        up = [torch.randn(WIDTH, hidden, **made) * WIDTH**-0.5 for _ in range(LAYERS // 2)]
        down = [torch.randn(hidden, WIDTH, **made) * hidden**-0.5 for _ in range(LAYERS // 2)]
        inputs = [torch.randn(BATCH, WIDTH, **made) for _ in range(halves)]
        flows = [[torch.empty(BATCH, WIDTH, **made) for _ in range(2)] for _ in range(halves)]
        inner = [torch.empty(BATCH, hidden, **made) for _ in range(halves)]
        self.results = [flow for pair in flows for flow in pair]

        def step() -> None:
            works: list[Any] = [None] * halves
            for half in range(halves):
                flows[half][0].copy_(inputs[half])
            for layer in range(LAYERS // 2):
                for half in range(halves):
                    self.wait([works[half]])
                    source, target = flows[half][layer % 2], flows[half][1 - layer % 2]
                    torch.mm(source, up[layer], out=inner[half])
                    torch.nn.functional.relu_(inner[half])
                    torch.mm(inner[half], down[layer], out=target)
                    works[half] = self.reduce(target)
                    if halves == 1:
                        self.wait(works)
            self.wait(works)

        def reduce_all() -> None:
            self.wait([self.reduce(flows[half][1]) for _ in range(LAYERS // 2) for half in range(halves)])

        return step, reduce_all

    def synchronous(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Tensor-parallel layers whose sum is waited for at once: nothing overlaps."""
        return self.pairs(made, halves=1)

    def blocking_calls(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """The same with async_op=False: since PyTorch 2.8 on the stream of computation itself."""
        self.asynchronous = False
        return self.pairs(made, halves=1)

    def sharded(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """As FSDP2: weights gathered a layer ahead on one stream, gradients scattered on another. size: tokens."""
        torch, dist = self.torch, self.dist
        rank, rows = dist.get_rank(), WIDTH // 2
        shards = [torch.randn(WIDTH, WIDTH, **made)[rank * rows :][:rows] * WIDTH**-0.5 for _ in range(LAYERS)]
        whole = [torch.zeros(WIDTH, WIDTH, **made) for _ in range(2)]
        gradients = [torch.empty(WIDTH, WIDTH, **made) for _ in range(2)]
        scattered = [torch.empty(rows, WIDTH, **made) for _ in range(LAYERS)]
        flows = [torch.randn(self.size, WIDTH, **made) for _ in range(LAYERS + 1)]
        errors = [torch.randn(self.size, WIDTH, **made) for _ in range(2)]
        seed = torch.randn(self.size, WIDTH, **made)
        self.results = [*scattered, flows[LAYERS], errors[LAYERS % 2]]
        gathers, scatters = torch.cuda.Stream(), torch.cuda.Stream()
        gathered = [torch.cuda.Event() for _ in range(2)]
        used = [torch.cuda.Event() for _ in range(2)]
        sent = [torch.cuda.Event() for _ in range(2)]

        def gather(layer: int) -> None:
            with torch.cuda.stream(gathers):
                gathers.wait_event(used[layer % 2])
                if self.communicates:
                    dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                gathered[layer % 2].record()

        def scatter(layer: int) -> None:
            scatters.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(scatters):
                if self.communicates:
                    dist.reduce_scatter_tensor(scattered[layer], gradients[layer % 2])
                sent[layer % 2].record()

        def over(order: list[int], body: Callable[[int], None]) -> None:
            gather(order[0])
            for place, layer in enumerate(order):
                if place + 1 < len(order):
                    gather(order[place + 1])
                torch.cuda.current_stream().wait_event(gathered[layer % 2])
                body(layer)

        def forward(layer: int) -> None:
            torch.mm(flows[layer], whole[layer % 2], out=flows[layer + 1])
            used[layer % 2].record()
            torch.nn.functional.relu_(flows[layer + 1])

        def backward(layer: int) -> None:
            torch.mm(errors[layer % 2], whole[layer % 2].t(), out=errors[1 - layer % 2])
            used[layer % 2].record()
            torch.cuda.current_stream().wait_event(sent[layer % 2])
            torch.mm(flows[layer].t(), errors[layer % 2], out=gradients[layer % 2])
            scatter(layer)

        def step() -> None:
            over(list(range(LAYERS)), forward)
            errors[(LAYERS - 1) % 2].copy_(seed)
            over(list(reversed(range(LAYERS))), backward)
            torch.cuda.current_stream().wait_stream(scatters)

        def reduce_all() -> None:
            for layer in range(LAYERS):
                dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                dist.reduce_scatter_tensor(scattered[layer], gradients[layer % 2])

        return step, reduce_all

    def timed(self, body: Callable[[], None], count: int) -> list[float]:
        """Milliseconds of each call, by events on the stream of computation; the host runs ahead."""
        torch = self.torch
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            body()
            event.record()
        torch.cuda.synchronize()
        return [before.elapsed_time(after) for before, after in zip(events, events[1:])]

    def digest(self) -> str:
        return digest_of(self.results)


def digest_of(results: list[Any]) -> str:
    """Return a digest of all bits in their order. results: tensors on the GPU, a multiple of 4 bytes each."""
    import torch

    total = 0
    for index, result in enumerate(results):
        words = result.view(-1).view(torch.int32)
        for part in words.split(1 << 24):
            places = torch.arange(part.numel(), device=part.device, dtype=torch.int32) * -1640531527 + index
            total = (total * 31 + int((part ^ places).sum(dtype=torch.int64).item())) % (1 << 64)
    return f"{total:016x}"


# ---- profiles ----


def events_of(profiler: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        made: list[dict[str, Any]] = json.loads(Path(path).read_text())["traceEvents"]
        return made


def kernels_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == "kernel"]


def launches_of(events: list[dict[str, Any]]) -> list[list[Any]]:
    """In the order in which they were launched: name, start, microseconds, stream, blocks, threads."""
    called = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
    }
    found = []
    for event in sorted(kernels_of(events), key=lambda event: called.get(event["args"]["correlation"], 0)):
        arguments = event["args"]
        sizes = (arguments["grid"], arguments["block"])
        blocks, threads = (size[0] * size[1] * size[2] for size in sizes)
        found.append([event["name"][:80], event["ts"], event["dur"], arguments["stream"], blocks, threads])
    return found


def concurrency(events: list[dict[str, Any]]) -> dict[str, Any]:
    """From a profile: how long NCCL's kernels ran, and how long while computation ran."""
    communication = [e for e in events if "nccl" in str(e["name"])]
    computation = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if "nccl" not in str(e["name"]))
    beside = []
    for kernel in communication:
        start, end = kernel["ts"], kernel["ts"] + kernel["dur"]
        beside.append(sum(max(0.0, min(end, stop) - max(start, begin)) for begin, stop in computation))
    kernels: dict[str, dict[str, Any]] = {}
    for event in events:
        arguments = event["args"]
        kept = kernels.setdefault(str(event["name"])[:90], {"count": 0, "us": []})
        kept["count"] += 1
        kept["us"].append(round(event["dur"], 1))
        kept.update(
            {k: arguments[k] for k in ("grid", "block", "registers per thread", "shared memory") if k in arguments}
        )
    for kept in kernels.values():
        kept["us"] = sorted(kept["us"])[len(kept["us"]) // 2]
    return {
        "communication_us": [round(e["dur"], 1) for e in communication],
        "beside_computation_us": [round(value, 1) for value in beside],
        "kernels": kernels,
    }
