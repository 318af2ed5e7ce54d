"""A forward pass through a mixture of experts with products in Triton: tokens go to experts of both ranks and back.

Tokens are split into chunks: the all-to-all of one chunk runs beside the products of another. Each expert gets the
same number of tokens.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tools.gpu.whole.layers import DEVICE, GPU, KIND, RANK, WORLD, random
from tools.gpu.whole.program import Program, wait

EXPERTS, TOKENS, WIDTH, FEED, CHUNKS, DEPTH = (4, 4096, 2048, 4096, 4, 2) if GPU else (2, 8, 16, 32, 4, 2)
BLOCK, INNER = 128, 64  # of a product in Triton

try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch without a GPU
    triton = None


if triton:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def product_kernel(a, b, c, rows, columns, inner, BLOCK: tl.constexpr, INNER: tl.constexpr):  # type: ignore[no-untyped-def] # its compiler reads them
        expert = tl.program_id(2).to(tl.int64)
        a, b, c = a + expert * rows * inner, b + expert * inner * columns, c + expert * rows * columns
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        depth = tl.arange(0, INNER)
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, inner, INNER):
            left = tl.load(a + row[:, None] * inner + start + depth[None, :])
            right = tl.load(b + (start + depth[:, None]) * columns + column[None, :])
            total += tl.dot(left, right)
        tl.store(c + row[:, None] * columns + column[None, :], total.to(tl.bfloat16))


def product(a: Tensor, b: Tensor) -> Tensor:
    """[experts, rows, inner] by [experts, inner, columns]."""
    if not (triton and GPU):
        return torch.bmm(a, b)
    experts, rows, inner = a.shape
    columns = b.shape[2]
    c = torch.empty(experts, rows, columns, device=DEVICE, dtype=KIND)
    grid = (rows // BLOCK, columns // BLOCK, experts)
    product_kernel[grid](a, b, c, rows, columns, inner, BLOCK=BLOCK, INNER=INNER, num_warps=8, num_stages=3)
    return c


class Experts:
    def __init__(self) -> None:
        self.up = random(DEPTH, EXPERTS, WIDTH, FEED, seed=1 + RANK) * WIDTH**-0.5
        self.down = random(DEPTH, EXPERTS, FEED, WIDTH, seed=9 + RANK) * FEED**-0.5
        chunk = TOKENS // CHUNKS  # of each pair of a rank and an expert
        self.x = [random(WORLD, EXPERTS, chunk, WIDTH, seed=20 + at + RANK) for at in range(CHUNKS)]
        self.communicates = True

    def exchange(self, of: Tensor) -> tuple[Tensor, Any]:
        if not self.communicates:
            return of, None
        into = torch.empty_like(of)
        return into, dist.all_to_all_single(into, of, async_op=True)

    def feed(self, layer: int, x: Tensor) -> Tensor:
        """Tokens of all ranks through this rank's experts."""
        rows = x.transpose(0, 1).flatten(1, 2).contiguous()
        rows = product(torch.nn.functional.silu(product(rows, self.up[layer])), self.down[layer])
        return rows.view(EXPERTS, WORLD, -1, WIDTH).transpose(0, 1).contiguous()

    def step(self) -> list[Tensor]:
        flows = self.x
        for layer in range(DEPTH):
            there = [self.exchange(flow) for flow in flows]
            back = []
            for tokens, work in there:
                wait(work)
                back.append(self.exchange(self.feed(layer, tokens)))
            flows = []
            for tokens, work in back:
                wait(work)
                flows.append(torch.nn.functional.rms_norm(tokens, (WIDTH,)))
        return flows

    def computation(self) -> None:
        self.communicates = False
        self.step()
        self.communicates = True

    def communication(self) -> None:
        for _ in range(2 * DEPTH):
            for _, work in [self.exchange(flow) for flow in self.x]:
                wait(work)


def experts() -> Program:
    made = Experts()
    return Program(made.step, made.computation, made.communication)
