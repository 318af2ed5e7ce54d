"""How many blocks fit: the library's own arithmetic, on the kernels that the program said it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyshim import _native
from pyshim.demo.arms import Kernel

LIMITS = ("nothing", "warps", "block slots", "registers", "shared memory")


@dataclass(frozen=True)
class Sizes:
    """Blocks on one multiprocessor."""

    native: int  # of the GEMM as the program launches it
    limit: str  # what stops one more
    shaped: int | None  # of the GEMM as the policy launched it; None: it was not changed
    beside: int  # of the GEMM as launched that stay beside one block of communication; -1: that fits nowhere


def sizes(gpu_name: str, compute: Kernel, communication: Kernel, shaped_bytes: int | None) -> Sizes | None:
    """None for a GPU that the library does not know by name."""
    lib = _native.library()
    gpu = next((gpu for gpu in _native.gpus() if _native.text(gpu.name) == gpu_name), None)
    if gpu is None:
        return None
    own = _footprint(compute, compute.dynamic_shared)
    native = lib.overlap_occupancy_of(gpu, own)
    changed = shaped_bytes is not None and shaped_bytes != compute.dynamic_shared
    return Sizes(
        native=int(native.blocks),
        limit=LIMITS[int(native.limit)],
        shaped=int(lib.overlap_occupancy_of(gpu, _footprint(compute, shaped_bytes or 0)).blocks) if changed else None,
        beside=int(lib.overlap_blocks_beside(gpu, own, _footprint(communication, communication.dynamic_shared))),
    )


def _footprint(kernel: Kernel, dynamic: int) -> Any:
    return _native.ffi.new(
        "struct overlap_footprint *", (kernel.threads, kernel.registers, kernel.static_shared, dynamic)
    )
