"""Layers as of an 8B model (hidden 4096, FFN 14336, 32 heads, 8 KV heads), whole or split over ranks.

Weights are random, the same on all ranks, and do not change. Without a GPU sizes are tiny, for tests of the programs.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import Tensor, nn

from tools.gpu.whole.program import wait

GPU = torch.cuda.is_available()
HIDDEN, FEED, HEADS, KEYS, HEAD = (4096, 14336, 32, 8, 128) if GPU else (64, 96, 4, 2, 16)
KIND = torch.bfloat16
RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
DEVICE = torch.device("cuda", RANK) if GPU else torch.device("cpu")


class Sums:
    """All-reduces of tensor-parallel layers; off: computation alone, with wrong results."""

    on = True
    body: Any = dist.all_reduce

    @classmethod
    def add_up(cls, tensor: Tensor, beside: bool = False) -> Any:
        """beside: return at once what can be waited for."""
        if cls.on:
            return cls.body(tensor, async_op=beside)
        return None


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
        work = Sums.add_up(of_input, beside=True)
        of_weight = gradient.flatten(0, -2).t() @ x.flatten(0, -2)
        wait(work)
        return of_input, of_weight


class Row(torch.autograd.Function):  # type: ignore[misc, unused-ignore]  # torch has no types here
    """Rows of a product, added up over the ranks."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        product = x @ weight.t()
        Sums.add_up(product)
        return product

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = context.saved_tensors
        return gradient @ weight, gradient.flatten(0, -2).t() @ x.flatten(0, -2)


class Layer(nn.Module):  # type: ignore[misc, unused-ignore]  # torch has no types here
    """[batch, tokens, HIDDEN] -> the same. parts: over how many ranks heads and columns are split."""

    def __init__(self, parts: int = 1) -> None:
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

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, each [batch, heads, tokens, HEAD]."""
        batch, tokens, _ = x.shape
        sizes = [count * HEAD for count in (self.heads, self.keys, self.keys)]
        parts = self.column(self.before(x), self.qkv).split(sizes, -1)
        return tuple(part.view(batch, tokens, -1, HEAD).transpose(1, 2) for part in parts)

    def rest(self, x: Tensor, seen: Tensor) -> Tensor:
        """What follows attention."""
        x = x + self.row(seen.transpose(1, 2).flatten(2), self.out)
        gate, up = self.column(self.between(x), self.up).chunk(2, -1)
        return x + self.row(functional.silu(gate) * up, self.down)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(x)
        return self.rest(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


def layers(count: int, parts: int = 1) -> nn.Sequential:
    torch.manual_seed(0)
    with DEVICE:
        return nn.Sequential(*(Layer(parts) for _ in range(count))).to(KIND)


def random(*shape: int, seed: int = 1) -> Tensor:
    """The same on all ranks for one seed."""
    made = torch.Generator(DEVICE).manual_seed(seed)
    return torch.randn(*shape, device=DEVICE, dtype=KIND, generator=made)
