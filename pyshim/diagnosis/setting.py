"""What the names in a trace tell about the program: its framework, and what communicates in it."""

from __future__ import annotations

from collections.abc import Iterable

TORCH, FSDP2, FSDP1, DDP, AMD, NCCL, MPI = "torch", "fsdp2", "fsdp1", "ddp", "amd", "nccl", "mpi"
STEPPED = "torch.profiler's step()"  # a program of Python: its streams may be PyTorch's, or those of a library in CUDA
# How ranges begin.
_RANGES = {
    "nccl:": TORCH,
    "MPI_": MPI,
    "ProfilerStep#": STEPPED,
    "Optimizer.": TORCH,
    "enumerate(DataLoader)": TORCH,
    "FSDP::": FSDP2,
    "FullyShardedDataParallel.": FSDP1,
    "DistributedDataParallel.": DDP,
}
# What is in names of kernels.
_KERNELS = {"at::native": TORCH, "_ZN2at": TORCH, "c10::": TORCH, "triton_": TORCH, "nccl": NCCL, "rccl": NCCL}


def told(ranges: Iterable[str], kernels: Iterable[str]) -> set[str]:
    """Return what names tell."""
    begins = {word for name in ranges for start, word in _RANGES.items() if name.startswith(start)}
    if begins & {FSDP2, FSDP1, DDP}:
        begins.add(TORCH)
    return begins | {word for name in kernels for part, word in _KERNELS.items() if part in name}
