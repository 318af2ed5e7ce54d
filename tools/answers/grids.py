"""The long grids that an H200 ran beside a block like NCCL's (tools/gpu/room.cu), with the sizes that policies gave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tables

from answers import measured, sweep
from answers.markdown import holds

GPU = "h200"
COMMUNICATION = (96, 20832, 82240)  # registers, static and dynamic bytes of the block that stood for NCCL's
# Threads, registers, what they are bound by.
GRIDS = {
    "arithmetic": (128, 32, "bound by arithmetic"),
    "copy": (128, 32, "copies memory"),
    "hold 128": (128, 16, "each block just takes its time"),
}
BARE, PRIORITY, HALF = "bare", "priority: highest", "h100-paper for this GPU"
ENTRY, ROOM, NO_PRIORITY = (
    "quick_entry, priority: highest",
    "make_room, priority: highest",
    "make_room, priority: inherit",
)
# The arms of the file that are shown, in our words.
ARMS = {
    BARE: "bare",
    PRIORITY: "priority alone",
    HALF: "half of the blocks, priority",
    ENTRY: "quick_entry, priority",
    ROOM: "make_room, priority",
    NO_PRIORITY: "make_room, no priority",
}


@dataclass(frozen=True)
class Shaped:
    room: measured.Room
    resident: int  # blocks on a multiprocessor
    size: int  # dynamic bytes
    factor: float  # its time by itself over that as launched

    @property
    def arm(self) -> str:
        return self.room.arm


def measured_grids(root: Path, threads: int) -> list[Shaped]:
    """Beside communication of so many threads. Sizes are today's arithmetic; the GPU's clock says that as many blocks
    were resident."""
    by = {(one.low, one.arm): one for one in measured.room(root) if one.threads == threads}
    found = []
    for grid in GRIDS:
        for arm, (resident, size) in _sizes(grid, threads).items():
            one = by.get((grid, arm))
            if one is not None:
                holds(size == 0 or one.resident == resident, f"{arm} left {resident} of {grid} on a multiprocessor")
                found.append(Shaped(one, resident, size, one.alone_us / by[grid, BARE].alone_us))
    return found


def _sizes(grid: str, threads: int) -> dict[str, tuple[int, int]]:
    """Resident blocks and dynamic bytes by arm."""
    own, registers, _ = GRIDS[grid]
    kernel = tables.Kernel(grid, own, registers, 0, 0)
    answer = tables.answer(tables.known_gpu(GPU), kernel, tables.Kernel("", threads, *COMMUNICATION))
    half, room, entry = answer.native // 2, answer.rooms[0], answer.entries[0]
    return {
        BARE: (answer.native, 0),
        PRIORITY: (answer.native, 0),
        HALF: (half, sweep.size_for_blocks(GPU, kernel, half)),
        ENTRY: (entry.blocks, entry.minimum),
        ROOM: (room.blocks, room.minimum),
        NO_PRIORITY: (room.blocks, room.minimum),
    }
