"""What a GPU of a trace holds at once, by its name, or by its architecture if it is not in gpu.def."""

from __future__ import annotations

import functools
from typing import Any

from pyshim import _native
from pyshim.profiles.record import TracedGpu, TracedLaunch


class Capacity:
    """Of one GPU; what is not known is None."""

    def __init__(self, gpu: TracedGpu) -> None:
        known = {_native.text(one.name): one for one in _native.gpus()}
        alike = {_native.text(one.architecture): one for one in known.values()}
        self._limits: Any = known.get(gpu.name) or alike.get(gpu.architecture)
        own = self._limits.multiprocessors if self._limits and gpu.name in known else 0
        self._multiprocessors: int = gpu.multiprocessors or own
        self._blocks = functools.cache(self._found)

    def blocks(self, launch: TracedLaunch) -> int | None:
        """Return how many blocks of such a kernel it holds."""
        static, dynamic = launch.static_shared_memory, launch.dynamic_shared_memory
        if static is None or dynamic is None:
            static, dynamic = 0, launch.shared_memory
        block = launch.threads, launch.registers, static, dynamic
        numbers = [one for one in block if one is not None and 0 <= one < 1 << 32]  # a file may say anything
        return self._blocks(*numbers) if self._limits and len(numbers) == len(block) else None

    def _found(self, *block: int) -> int | None:
        footprint = _native.ffi.new("struct overlap_footprint *", block)
        found = _native.library().overlap_occupancy_of(self._limits, footprint).blocks
        return int(found) * self._multiprocessors or None  # 0: it cannot have been launched
