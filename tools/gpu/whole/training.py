"""Training steps of transformers: DDP, FSDP2, tensor and pipeline parallel.

Each function makes a Program. No weight changes from step to step, so that all steps have the same results.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

from tools.gpu.whole import gathers
from tools.gpu.whole.layers import DEVICE, GPU, HIDDEN, KIND, RANK, WORLD, Sums, layers, random
from tools.gpu.whole.program import Program, wait

LAYERS, TOKENS = (4, 4096) if GPU else (2, 32)
BUCKET = 64 << 20 if GPU else 4096  # bytes
MICRO = 8  # micro-batches of a pipeline step


def trained(model: nn.Module, x: Tensor) -> list[Tensor]:
    """Forward and backward; the loss alone, because attention adds up gradients in no fixed order."""
    loss = model(x).float().pow(2).mean()
    loss.backward()
    for parameter in model.parameters():
        parameter.grad = None
    return [loss.detach()]


def all_reduced(model: nn.Module) -> list[Tensor]:
    """Return buckets for what DDP sends of the model."""
    left, size = sum(parameter.numel() for parameter in model.parameters()), BUCKET // KIND.itemsize
    return [torch.zeros(min(size, left - at), device=DEVICE, dtype=KIND) for at in range(0, left, size)]


def reduce_all(buckets: list[Tensor]) -> None:
    works = [dist.all_reduce(bucket, async_op=True) for bucket in buckets]
    for work in works:
        work.wait()


def ddp() -> Program:
    model = nn.parallel.DistributedDataParallel(layers(LAYERS), bucket_cap_mb=64, gradient_as_bucket_view=True)
    x = random(1, TOKENS, HIDDEN)
    bare = functools.cache(lambda: layers(LAYERS))  # few arms ask for it, and all share a GPU's memory
    buckets = functools.cache(lambda: all_reduced(bare()))
    return Program(lambda: trained(model, x), lambda: trained(bare(), x), lambda: reduce_all(buckets()))


def fsdp(count: int = LAYERS) -> Program:
    model, x = layers(count), random(1, TOKENS, HIDDEN)
    size = sum(parameter.numel() for parameter in model[0].parameters())
    for module in (*model, model):
        fully_shard(module)
    if gathers.GATHERS:
        gather = gathers.Gather()
        for module in model:
            module.set_custom_all_gather(gather)
    bare = functools.cache(lambda: layers(count))
    zeros = functools.partial(torch.zeros, device=DEVICE, dtype=KIND)
    buffers = functools.cache(lambda: (zeros(size), zeros(size), zeros(size // WORLD)))

    def communicate() -> None:
        gathered, gradients, shard = buffers()
        for _ in range(count):
            for _ in range(2):  # forward and backward
                dist.all_gather_into_tensor(gathered, shard)
            dist.reduce_scatter_tensor(shard, gradients)

    return Program(lambda: trained(model, x), lambda: trained(bare(), x), communicate)


def tensor() -> Program:
    model, x = layers(LAYERS, WORLD), random(1, TOKENS, HIDDEN)
    part = torch.zeros_like(x)
    if gathers.GATHERS:
        Sums.body = gathers.all_reduce()

    def communicate() -> None:
        for _ in range(4 * LAYERS):  # two of each layer, forward and backward
            dist.all_reduce(part)

    return Program(lambda: trained(model, x), without_sums(lambda: trained(model, x)), communicate)


def without_sums(body: Any) -> Any:
    def run() -> Any:
        Sums.on = False
        try:
            return body()
        finally:
            Sums.on = True

    return run


def pipeline() -> Program:
    """GPipe: each rank has half of the layers, all micro-batches go forward, then backward."""
    model, tokens = layers(LAYERS), TOKENS // 4
    inputs = [random(1, tokens, HIDDEN, seed=2 + at) for at in range(MICRO)]
    received = [torch.zeros(1, tokens, HIDDEN, device=DEVICE, dtype=KIND) for _ in range(2 * MICRO)]
    last, peer = RANK == WORLD - 1, (RANK + 1) % WORLD

    def step(send: Any, receive: Any) -> list[Tensor]:
        sent, outputs, begun = [], [], []
        coming = [receive(received[at]) for at in range(MICRO)] if last else [None] * MICRO
        for at in range(MICRO):
            wait(coming[at])
            x = (received[at] if last else inputs[at]).detach().requires_grad_()
            begun.append(x)
            outputs.append(model(x))
            if not last:
                sent.append(send(outputs[at].detach()))
        coming = [None] * MICRO if last else [receive(received[MICRO + at]) for at in range(MICRO)]
        for at in range(MICRO):
            if last:
                outputs[at].float().pow(2).mean().backward()
                sent.append(send(begun[at].grad))
            else:
                wait(coming[at])
                outputs[at].backward(received[MICRO + at])
        for work in sent:
            wait(work)
        for parameter in model.parameters():
            parameter.grad = None
        return [output.detach() for output in outputs]

    def communicate() -> None:
        works = []
        for at in range(2 * MICRO):
            forward = (at < MICRO) != last
            body = dist.isend if forward else dist.irecv
            works.append(body(received[at], peer))
        for work in works:
            work.wait()

    return Program(
        lambda: step(lambda x: dist.isend(x, peer), lambda x: dist.irecv(x, peer)),
        lambda: step(lambda x: None, lambda x: None),
        communicate,
    )
