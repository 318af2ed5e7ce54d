"""How many blocks fit: the library's own arithmetic, on the kernels that the program said it launches."""

from __future__ import annotations

from dataclasses import dataclass

from pyshim.demo.arms import Kernel
from pyshim.explain import planner
from pyshim.policy.gpus import known

_WORDS = {None: "nothing", "slots": "block slots", "shared_memory": "shared memory"}


@dataclass(frozen=True)
class Sizes:
    """Blocks on one multiprocessor."""

    native: int  # of the GEMM as the program launches it
    limit: str  # what stops one more
    shaped: int | None  # of the GEMM as the policy launched it; None: it was not changed
    beside: int  # of the GEMM as launched that stay beside one block of communication; -1: that fits nowhere


def sizes(gpu_name: str, compute: Kernel, communication: Kernel, shaped_bytes: int | None) -> Sizes | None:
    """Return the blocks of a GPU by the driver's name for it; None for a GPU that the library does not know.

    shaped_bytes: dynamic shared memory that the policy launched the GEMM with."""
    gpu = next((gpu for gpu in known() if gpu.name == gpu_name), None)
    if gpu is None:
        return None
    own = _block(compute)
    native, limit = planner.occupancy(gpu, own)
    changed = shaped_bytes is not None and shaped_bytes != own.dynamic
    return Sizes(
        native=native,
        limit=_WORDS.get(limit, str(limit)),
        shaped=planner.occupancy(gpu, own._replace(dynamic=shaped_bytes or 0))[0] if changed else None,
        beside=planner.blocks_beside(gpu, own, _block(communication)),
    )


def _block(kernel: Kernel) -> planner.Footprint:
    return planner.Footprint(kernel.threads, kernel.registers, kernel.static_shared, kernel.dynamic_shared)
