"""What the names in a trace tell about the program: its framework, and what communicates in it."""

from __future__ import annotations

import functools
import re

TORCH, FSDP2, FSDP1, DDP, MEGATRON, DEEPSPEED, AMD = "torch", "fsdp2", "fsdp1", "ddp", "megatron", "deepspeed", "amd"
NCCL = "nccl"
_RANGES = (
    (TORCH, re.compile(r"^(nccl:|Optimizer\.|aten::|torch[:.]|## |enumerate\(DataLoader)")),
    (FSDP2, re.compile(r"^FSDP::")),
    (FSDP1, re.compile(r"^FullyShardedDataParallel\.")),
    (DDP, re.compile(r"^DistributedDataParallel\.")),
    (MEGATRON, re.compile(r"megatron", re.IGNORECASE)),
    (DEEPSPEED, re.compile(r"deepspeed", re.IGNORECASE)),
)
_KERNELS = (
    (TORCH, re.compile(r"(^|[^A-Za-z0-9_])at::|^_ZN2at|c10::|^triton_")),
    (NCCL, re.compile(r"nccl|rccl", re.IGNORECASE)),
)


@functools.lru_cache(maxsize=1 << 16)
def of_range(name: str) -> frozenset[str]:
    """Return what the name of a range tells."""
    return frozenset(word for word, pattern in _RANGES if pattern.search(name))


@functools.lru_cache(maxsize=1 << 16)
def of_kernel(name: str) -> frozenset[str]:
    """Return what the name of a kernel tells."""
    return frozenset(word for word, pattern in _KERNELS if pattern.search(name))
