"""The library's arithmetic as typed functions: footprints and rules in, plans out. Nothing here is computed in Python.

The only module that knows the planner's structs (shim/overlap_abi.h).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.pages.page import sentences
from pyshim.policy.gpus import KnownGpu

CONTROLS = ("leave", "room_already", "make_room", "priority", "cap")
LIMITS = (None, "warps", "slots", "registers", "shared_memory", "barriers")
MANY = 2**48  # blocks of a grid of unknown size: many waves on any GPU


class BlockFootprint(NamedTuple):
    """What one block takes: registers of a thread, bytes of shared memory."""

    threads: int = 0
    registers: int = 0
    static: int = 0
    dynamic: int = 0
    barriers: int = 0
    scalars: int = 0


class RoomRule(NamedTuple):
    """What is asked of the planner."""

    shape: int  # OVERLAP_SHAPE_...
    value: int = 0
    keep: int = 0  # percent of the kernel's own blocks


class Case(NamedTuple):
    """One question to the planner: a launch beside one block of communication, under a rule."""

    gpu: KnownGpu
    block: BlockFootprint
    communication: BlockFootprint
    rule: RoomRule
    grid: int = MANY  # blocks

    @property
    def launch(self) -> Any:
        """The launch as the library takes it."""
        largest = max(0, self.gpu.shared_memory_per_block - self.block.static)  # after opting in
        return _native.ffi.new("struct overlap_launch *", (self.grid, 0, largest, self.block))


class Window(NamedTuple):
    """Dynamic sizes in bytes, both ends included, with which so many blocks stay resident."""

    blocks: int
    minimum: int
    maximum: int
    inflates: bool


class RoomPlan(NamedTuple):
    """What the planner finds for one launch beside one block of communication."""

    control: str
    reason: str  # its name in reason.def
    dynamic: int  # bytes to launch with
    blocks: int  # resident then
    native_blocks: int  # resident as launched; 0: it cannot be launched
    native_limit: str | None  # what stops one block more as launched
    beside_after_drain: int  # blocks as launched beside one of communication; -1: it fits nowhere
    binding: str | None  # what leaves no room beside one block
    windows: list[Window]  # sizes with which communication fits beside so many blocks at once


def struct(gpu: KnownGpu) -> Any:
    """Return the GPU's struct overlap_gpu, which has limits that KnownGpu lacks."""
    return _structs()[gpu.key]


@functools.cache
def _structs() -> dict[str, Any]:
    return {_native.text(gpu.key): gpu for gpu in _native.gpus()}


@functools.cache
def member(enum: str, name: str) -> int:
    """Return OVERLAP_ENUM_NAME of the header."""
    value: int = getattr(_native.header(), f"OVERLAP_{enum}_{name.upper()}")
    return value


@functools.cache
def reasons() -> tuple[str, ...]:
    """Return the names of reason.def, in its order."""
    return tuple(sentences())


def occupancy(gpu: KnownGpu, block: BlockFootprint) -> tuple[int, str | None]:
    """Return the blocks that one multiprocessor holds, and what stops one more."""
    found = _native.library().overlap_occupancy_of(struct(gpu), _footprint(block))
    return found.blocks, LIMITS[found.limit]


def plan(case: Case) -> RoomPlan:
    """Return what the case's rule achieves for the launch beside one block of communication."""
    found = _native.ffi.new("struct overlap_plan *")
    beside = _footprint(case.communication)
    _native.library().overlap_plan_of(struct(case.gpu), case.launch, beside, *case.rule, found)
    return RoomPlan(
        CONTROLS[found.control],
        reasons()[found.reason],
        found.dynamic_shared,
        found.blocks,
        found.native_blocks,
        LIMITS[found.native_limit],
        found.beside_after_drain,
        LIMITS[found.binding],
        [Window(w.blocks, w.minimum, w.maximum, w.inflates == 1) for w in found.windows[0 : found.window_count]],
    )


def knob_plans(case: Case) -> Iterator[tuple[str, RoomPlan]]:
    """Yield the settings of NCCL or RCCL that make its block smaller, and what the rule achieves then."""
    before = _footprint(case.communication)
    for index in itertools.count():
        after = _native.ffi.new("struct overlap_footprint *")
        name = _native.library().overlap_knob(index, struct(case.gpu), before, after)
        if name == _native.ffi.NULL:
            return
        if (after.threads, after.registers) != case.communication[:2]:
            smaller = case.communication._replace(threads=after.threads, registers=after.registers)
            yield _native.text(name), plan(case._replace(communication=smaller))


def _footprint(block: BlockFootprint) -> Any:
    return _native.ffi.new("struct overlap_footprint *", block)
