"""A training step like DLRM's: tables of embeddings split over ranks, dense layers replicated.

The all-to-all of looked-up vectors runs beside the bottom layers, that of their gradients beside the bottom layers'
backward pass, and the all-reduce of the top layers' gradients beside all that follows it.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tools.gpu.whole.layers import DEVICE, GPU, RANK, WORLD
from tools.gpu.whole.program import Program, wait

TABLES, ROWS, WIDTH, BATCH, DENSE = (13, 200_000, 128, 8192, 512) if GPU else (3, 50, 8, 16, 12)  # of each rank
LOOKED_UP = 20  # rows of a table for a sample


def dense(*widths: int) -> nn.Sequential:
    made: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        made += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*made[:-1])


class Recommender:
    def __init__(self) -> None:
        torch.manual_seed(0)
        vectors = TABLES * WORLD + 1
        with DEVICE:
            self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))
            self.bottom = dense(DENSE, 4 * DENSE, 2 * DENSE, WIDTH)
            self.top = dense(vectors * (vectors - 1) // 2 + WIDTH, 8 * WIDTH, 8 * WIDTH, 4 * WIDTH, 1)
            self.pairs = torch.tril_indices(vectors, vectors, -1)
        made = torch.Generator().manual_seed(1)  # all ranks look up for all samples
        self.rows = torch.randint(ROWS, (TABLES, WORLD * BATCH, LOOKED_UP), generator=made).to(DEVICE)
        self.x = torch.randn(BATCH, DENSE, generator=torch.Generator().manual_seed(2 + RANK)).to(DEVICE)
        self.there, self.back = (torch.zeros(WORLD, TABLES, BATCH, WIDTH, device=DEVICE) for _ in range(2))
        self.sums = [self.flat(self.top), self.flat(self.bottom)]
        self.communicates = True

    def flat(self, module: nn.Module) -> Tensor:
        return torch.zeros(sum(parameter.numel() for parameter in module.parameters()), device=DEVICE)

    def exchange(self, into: Tensor, of: Tensor) -> Any:
        return dist.all_to_all_single(into, of, async_op=True) if self.communicates else None

    def add_up(self, at: int, module: nn.Module) -> Any:
        """Sum of the gradients over ranks; they are gathered in one vector first."""
        torch.cat([parameter.grad.view(-1) for parameter in module.parameters()], out=self.sums[at])
        return dist.all_reduce(self.sums[at], async_op=True) if self.communicates else None

    def step(self) -> list[Tensor]:
        looked_up = torch.stack([table(rows) for table, rows in zip(self.tables, self.rows)])
        by_rank = looked_up.detach().view(TABLES, WORLD, BATCH, WIDTH).transpose(0, 1).contiguous()
        coming = self.exchange(self.there, by_rank)
        below = self.bottom(self.x)
        wait(coming)
        received, under = self.there.detach().requires_grad_(), below.detach().requires_grad_()
        vectors = torch.cat([under[:, None], received.flatten(0, 1).transpose(0, 1)], 1)
        products = (vectors @ vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        loss = self.top(torch.cat([under, products], 1)).square().mean()
        loss.backward()
        going = self.exchange(self.back, received.grad)
        of_top = self.add_up(0, self.top)
        below.backward(under.grad)
        of_bottom = self.add_up(1, self.bottom)
        wait(going)
        looked_up.backward(self.back.transpose(0, 1).reshape(looked_up.shape))
        wait(of_top)
        wait(of_bottom)
        for module in (self.tables, self.bottom, self.top):
            for parameter in module.parameters():
                parameter.grad = None
        return [loss.detach(), self.sums[1]]  # gradients of embeddings are added up in no fixed order

    def computation(self) -> None:
        self.communicates = False
        self.step()
        self.communicates = True

    def communication(self) -> None:
        works = [self.exchange(self.back, self.there), self.exchange(self.there, self.back)]
        works += [dist.all_reduce(one, async_op=True) for one in self.sums]
        for work in works:
            wait(work)


def recommender() -> Program:
    made = Recommender()
    return Program(made.step, made.computation, made.communication)
