"""What the planner says of typical computation beside NCCL or RCCL on one GPU.

Footprints are those of the tables beside this file; the arithmetic is the planner of the library itself, so what it
says here is what it does in a program. Nothing in it was measured on a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.footprints import collectives

HERE = Path(__file__).resolve().parent

OLDEST = (2, 21)  # of NCCL: older ones are not what programs of today run


@dataclass(frozen=True)
class Kernel:
    name: str
    threads: int
    registers: int
    static: int
    dynamic: int | None
    label: str = ""  # of communication: what those of one name differ in


def known_gpu(key: str) -> Any:
    for gpu in _native.gpus():
        if _native.text(gpu.key) == key:
            return gpu
    raise SystemExit(f"tables.py: no GPU is called {key}; `overlap policy list` lists them")


def computation(architecture: str) -> list[Kernel]:
    rows = json.loads((HERE / "compute.json").read_text(encoding="utf-8"))["rows"]
    numbers = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
    return [Kernel(row["name"], *(row[name] for name in numbers)) for row in rows if architecture in row["gpus"]]


def communication(architecture: str, oldest: tuple[int, ...] = OLDEST) -> Iterator[Kernel]:
    for table in collectives.tables(collectives.library_of(architecture).name.lower()):
        version = table["version"].rsplit(".", 1)[0]
        if table["library"] == "NCCL" and tuple(map(int, version.split("."))) < oldest:
            continue
        found = list(collectives.of_table(table, architecture))
        if table["library"] == "NCCL":
            found.sort(key=lambda one: -one.threads)
        for one in found:
            label, name = f"with {one.threads} threads", version
            if one.path:
                label, name = f"{version} by {one.path} ({one.static + one.dynamic:,} bytes)", one.variant
            yield Kernel(name, one.threads, one.registers, one.static, one.dynamic, label)


def plan(gpu: Any, kernel: Kernel, beside: Kernel) -> Any:
    ffi, lib = _native.ffi, _native.library()
    launch, other, answer = (ffi.new(f"struct overlap_{name} *") for name in ("launch", "footprint", "plan"))
    for footprint, source in ((launch.footprint, kernel), (other, beside)):
        footprint.threads, footprint.registers = source.threads, source.registers
        footprint.static_shared, footprint.dynamic_shared = source.static, source.dynamic or 0
    launch.blocks = 1 << 20  # many waves
    launch.maximum_dynamic = gpu.shared_optin - kernel.static
    lib.overlap_plan_of(gpu, launch, other, lib.OVERLAP_SHAPE_MAKE_ROOM, 0, 0, answer)
    return answer


@dataclass(frozen=True)
class Sizes:
    """Dynamic bytes, both ends included, with which so many blocks are resident."""

    blocks: int
    minimum: int
    maximum: int
    inflates: bool  # these are fewer blocks than as launched


@dataclass(frozen=True)
class Answer:
    """What the planner says of a kernel beside a block of communication."""

    native: int  # blocks resident as launched; 0: it cannot be launched
    rooms: tuple[Sizes, ...]  # communication fits beside all that stay; the most blocks first
    after: int  # blocks as launched that fit beside one of communication; -1: that fits nowhere
    binding: str  # what leaves no room beside one block

    @property
    def control(self) -> str:
        """The best that can be done: room already, room, priority only, never together, communication fits nowhere."""
        if self.rooms:
            return "room" if self.rooms[0].inflates else "room already"
        if self.after > 0:
            return "priority only"
        return "communication fits nowhere" if self.after < 0 else "never together"

    @property
    def text(self) -> str:
        """In words; of rooms the largest number of blocks, which is what the planner takes."""
        if self.control == "room":
            one = self.rooms[0]
            return f"room at {one.blocks} with {one.minimum:,} to {one.maximum:,}"
        if self.control == "priority only":
            return f"priority only: {self.after} beside it after the others have ended"
        return f"never together: {self.binding}" if self.after == 0 else self.control


def answer(gpu: Any, kernel: Kernel, beside: Kernel) -> Answer:
    lib, found = _native.library(), plan(gpu, kernel, beside)
    limits = {lib.OVERLAP_LIMIT_REGISTERS: "registers", lib.OVERLAP_LIMIT_SHARED: "shared memory"}
    windows = found.windows[0 : found.window_count]
    rooms = tuple(Sizes(one.blocks, one.minimum, one.maximum, one.inflates == 1) for one in windows)
    after = found.beside_after_drain
    return Answer(found.native_blocks, rooms, after, limits.get(found.binding, "warps or slots"))


def named(labels: dict[str, list[str]]) -> str:
    """On NVIDIA versions by their threads, the same versions said once; on AMD the way of the launch, then what was
    unrolled how often."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, found in labels.items():
        groups.setdefault(tuple(found), []).append(label)
    said = []
    for names, which in groups.items():
        if which[0].startswith("with "):
            counts = ", ".join(label.split()[1] for label in which)
            said.append(f"{', '.join(names)} with {counts} threads")
        else:
            unrolled = ", ".join(name.split()[-1] for name in names)
            said += [f"{label}, unroll {unrolled}" for label in which]
    return "; ".join(said)
