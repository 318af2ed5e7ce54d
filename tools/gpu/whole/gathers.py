"""All-gathers that take no multiprocessor: the copy engines move the data. For GPUs of one host that reach each other.

WHOLE_GATHERS=copies: each rank copies its peers' parts, between two barriers (PyTorch's symmetric memory).
WHOLE_GATHERS=nccl: NCCL's own copies, of a buffer that is registered as a window; needs NCCL_CTA_POLICY=2 and NCCL 2.28
(NVIDIA's and PyTorch's documentation of copy-engine collectives). Unset: NCCL's kernels, as a program gets them.

FSDP2 takes an all-gather of one's own. The all-reduces of tensor parallelism become NCCL's reduce-scatter and this
all-gather; only by `copies`, because NCCL 2.28.9 ended such a program ("invalid argument").
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tools.gpu.whole.layers import DEVICE, RANK, WORLD

GATHERS = os.environ.get("WHOLE_GATHERS", "")
KEPT = 3  # buffers of a size: FSDP2 has two in use, and a layer must not get its own old weights


class Gather:
    """What `fully_shard` calls AllGather: buffers, and how they are filled. One for all modules of a program."""

    def __init__(self) -> None:
        import torch.distributed._symmetric_memory as symmetric

        if GATHERS == "nccl":
            symmetric.set_backend("NCCL")
        self.made = symmetric
        self.rings: dict[Any, Any] = {}
        self.handles: dict[int, Any] = {}

    def buffer(self, count: int, kind: torch.dtype) -> Tensor:
        made = self.made.empty(count, dtype=kind, device=DEVICE)
        self.handles[made.data_ptr()] = self.made.rendezvous(made, dist.group.WORLD.group_name)
        return made

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        key = (math.prod(size), dtype)
        if key not in self.rings:
            self.rings[key] = itertools.cycle([self.buffer(*key) for _ in range(KEPT)])
        found: Tensor = next(self.rings[key])
        return found

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = False) -> None:
        """On the current stream. input_tensor: this rank's part of output_tensor, which `allocate` made."""
        if GATHERS == "nccl":
            dist.all_gather_into_tensor(output_tensor, input_tensor, group=group)
            return
        handle, count = self.handles[output_tensor.data_ptr()], input_tensor.numel()
        parts = output_tensor.chunk(WORLD)
        handle.barrier(channel=0)  # all parts are there
        for peer in ((RANK + step) % WORLD for step in range(1, WORLD)):
            parts[peer].copy_(handle.get_buffer(peer, (count,), output_tensor.dtype, peer * count))
        handle.barrier(channel=0)  # all have read

    def sum(self, tensor: Tensor) -> None:
        """In place, as an all-reduce on the current stream."""
        whole = self.allocate((tensor.numel(),), dtype=tensor.dtype, device=DEVICE)
        mine = whole.chunk(WORLD)[RANK]
        dist.reduce_scatter_tensor(mine, tensor.view(-1))
        self(whole, mine, dist.group.WORLD)
        tensor.view(-1).copy_(whole)


class Beside:
    """An all-reduce on a stream of its own; as what `dist.all_reduce(async_op=True)` returns."""

    def __init__(self, gather: Gather, stream: torch.cuda.Stream, tensor: Tensor) -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            gather.sum(tensor)
            self.done = stream.record_event()
        tensor.record_stream(stream)

    def wait(self) -> None:
        self.done.wait()


def all_reduce() -> Any:
    """In place of `dist.all_reduce`."""
    gather, stream = Gather(), torch.cuda.Stream()
    return lambda tensor, async_op: Beside(gather, stream, tensor) if async_op else gather.sum(tensor)
