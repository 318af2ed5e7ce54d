"""The next token of a model of tensor-parallel layers, as they are launched and as a captured graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tools.gpu.whole.layers import DEVICE, GPU, HEAD, HIDDEN, KEYS, KIND, WORLD, Layer, layers, random
from tools.gpu.whole.program import Program
from tools.gpu.whole.training import without_sums

LAYERS, SEEN, BATCH = (16, 4096, 4) if GPU else (2, 16, 2)  # tokens seen before
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]  # the default one differs in last bits from run to run


class Decoder:
    def __init__(self) -> None:
        self.layers = layers(LAYERS, WORLD)
        shape = (LAYERS, 2, BATCH, KEYS // WORLD, SEEN, HEAD)
        self.cached = random(*shape)
        self.x = random(BATCH, 1, HIDDEN, seed=2)

    def attention(self, layer: Layer, keys: Tensor, values: Tensor, x: Tensor) -> Tensor:
        q, k, v = layer.split(x)
        keys[:, :, -1:], values[:, :, -1:] = k, v
        with sdpa_kernel(ATTENTION):
            return layer.rest(x, functional.scaled_dot_product_attention(q, keys, values, enable_gqa=True))

    def step(self) -> list[Tensor]:
        x = self.x
        with torch.no_grad():
            for layer, (keys, values) in zip(self.layers, self.cached):
                x = self.attention(layer, keys, values, x)
        return [x]

    def communicate(self) -> None:
        part = torch.zeros(BATCH, 1, HIDDEN, device=DEVICE, dtype=KIND)
        for _ in range(2 * LAYERS):
            dist.all_reduce(part)


def captured(body: Callable[[], Any]) -> Callable[[], Any]:
    """The body as a graph; its tensors keep their addresses."""
    for _ in range(3):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = body()

    def replay() -> Any:
        graph.replay()
        return results

    return replay


def token() -> Program:
    made = Decoder()
    return Program(made.step, without_sums(made.step), made.communicate)


def token_graph() -> Program:
    made = Decoder()
    if not GPU:
        return Program(made.step, without_sums(made.step), made.communicate)
    return Program(captured(made.step), captured(without_sums(made.step)), captured(made.communicate))
