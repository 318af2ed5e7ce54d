"""A rank of a real training step for critical.py: DDP, FSDP2 or tensor parallel layers as of an 8B model.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29700 python -m tools.gpu.critical_step ddp|fsdp|tensor

It sets no priority. Weights are random and do not change, so the digest, which is the loss, is equal in every step.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

from tools.gpu.overlap.turns import say, serve

GPU = torch.cuda.is_available()
LAYERS, TOKENS, HIDDEN, FEED, HEADS, KEYS, HEAD = (
    (4, 4096, 4096, 14336, 32, 8, 128) if GPU else (2, 32, 64, 96, 4, 2, 16)
)
WORLD = int(os.environ["WORLD_SIZE"])


class Column(torch.autograd.Function):  # type: ignore[misc, unused-ignore]  # torch has no types here
    """Columns of a product: the all-reduce of the input's gradient runs beside the product for the weight's."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = context.saved_tensors
        of_input = gradient @ weight
        work = dist.all_reduce(of_input, async_op=True)
        of_weight = gradient.flatten(0, -2).t() @ x.flatten(0, -2)
        work.wait()
        return of_input, of_weight


class Row(torch.autograd.Function):  # type: ignore[misc, unused-ignore]  # torch has no types here
    """Rows of a product, added up over the ranks."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        product = x @ weight.t()
        dist.all_reduce(product)
        return product

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = context.saved_tensors
        return gradient @ weight, gradient.flatten(0, -2).t() @ x.flatten(0, -2)


class Layer(nn.Module):  # type: ignore[misc, unused-ignore]  # torch has no types here
    def __init__(self, parts: int) -> None:
        super().__init__()
        self.heads, self.keys, self.parts = HEADS // parts, KEYS // parts, parts
        self.before, self.between = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.qkv = nn.Linear(HIDDEN, (self.heads + 2 * self.keys) * HEAD, bias=False)
        self.out = nn.Linear(self.heads * HEAD, HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 2 * FEED // parts, bias=False)
        self.down = nn.Linear(FEED // parts, HIDDEN, bias=False)

    def column(self, x: Tensor, linear: nn.Linear) -> Tensor:
        return Column.apply(x, linear.weight) if self.parts > 1 else linear(x)

    def row(self, x: Tensor, linear: nn.Linear) -> Tensor:
        return Row.apply(x, linear.weight) if self.parts > 1 else linear(x)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        sizes = [count * HEAD for count in (self.heads, self.keys, self.keys)]
        q, k, v = (
            part.view(batch, tokens, -1, HEAD).transpose(1, 2)
            for part in self.column(self.before(x), self.qkv).split(sizes, -1)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.row(seen.transpose(1, 2).flatten(2), self.out)
        gate, up = self.column(self.between(x), self.up).chunk(2, -1)
        return x + self.row(functional.silu(gate) * up, self.down)


def model(kind: str, device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    with device:
        layers = nn.Sequential(*(Layer(WORLD if kind == "tensor" else 1) for _ in range(LAYERS))).to(torch.bfloat16)
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=64, gradient_as_bucket_view=True)
    for module in (*layers, layers) if kind == "fsdp" else ():
        fully_shard(module)
    return layers


def main() -> None:
    rank, wait = int(os.environ["RANK"]), torch.cuda.synchronize if GPU else lambda: None
    device = torch.device("cuda", rank) if GPU else torch.device("cpu")
    if GPU:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if GPU else "gloo", **({"device_id": device} if GPU else {}))
    layers = model(sys.argv[1], device)
    x = torch.randn(1, TOKENS, HIDDEN, device=device, dtype=torch.bfloat16)

    def step() -> Tensor:
        loss = layers(x).float().pow(2).mean()
        loss.backward()
        for parameter in layers.parameters():
            parameter.grad = None
        return loss

    def turn(request: Any) -> dict[str, Any]:
        batches, steps = request
        took: list[float] = []
        step()
        for _ in range(batches):
            wait()
            dist.barrier()
            wait()
            begun = time.perf_counter()
            for _ in range(steps):
                step()
            wait()
            took.append((time.perf_counter() - begun) * 1e3 / steps)
        return {"ms": took}

    serve({"torch": torch.__version__}, turn)
    say({"digest": step().item().hex()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
