"""offload.py optimizer|fsdp: train behind a feature that keeps weights on the host, and copies by streams of its own.

optimizer: CPUOffloadOptimizer of torchao. fsdp: FSDP2 with CPUOffloadPolicy, one rank; with PRIORITIES=0 its streams
have none.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

WIDTH, LAYERS, BATCH, LENGTH, WARM, STEPS = 1024, 12, 16, 1024, 5, 20


class Level(torch.cuda.Stream):  # type: ignore[misc, unused-ignore]  # torch has no types here
    """A stream without the priority that it was asked for."""

    def __new__(cls, device: Any = None, priority: int = 0, **others: Any) -> Level:
        made: Level = super().__new__(cls, device=device, priority=0, **others)
        return made


if os.environ.get("PRIORITIES") == "0":
    torch.cuda.Stream = Level  # type: ignore[misc, unused-ignore]
torch.manual_seed(0)
device = torch.device("cuda", 0)
layers = [nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS)]
model: nn.Module = nn.Sequential(*layers)
optimizer: torch.optim.Optimizer
if sys.argv[1] == "fsdp":
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    torch.cuda.set_device(device)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
    kept = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    for part in (*layers, model):
        fully_shard(part, mp_policy=kept, offload_policy=CPUOffloadPolicy())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
else:
    from torchao.optim import CPUOffloadOptimizer

    model = model.to(device, torch.bfloat16)
    optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.SGD, lr=1e-3)
tokens = torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1)).to(device, torch.bfloat16)
begun, loss = 0.0, torch.zeros(())
for step in range(WARM + STEPS):
    if step == WARM:
        torch.cuda.synchronize()
        begun = time.perf_counter()
    loss = (model(tokens).float() - tokens.flip(1)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(f"{1000 * (time.perf_counter() - begun) / STEPS:.4f} ms a step, loss {loss.item():.2f}")
if dist.is_initialized():
    dist.destroy_process_group()
