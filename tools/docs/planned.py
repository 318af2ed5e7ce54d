"""What the planner says of typical computation beside NCCL or RCCL on one GPU.

Computation is compute.json's; what a block of communication takes was read in the binaries of the versions below. The
arithmetic is the planner of the library itself, so what it says here is what it does in a program. Nothing in it was
measured on a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim import _native

COMPUTE = Path(__file__).resolve().parent / "compute.json"
# Static bytes of a block of NCCL up to sm_89, and from sm_90 on; of 2.18 and 2.21 there is none for sm_100.
STATIC = {
    "2.18": (5232, 5232),
    "2.21": (6176, 20832),
    "2.27": (7104, 21568),
    "2.28": (7104, 21568),
    "2.30": (14144, 36800),
    "2.32": (14144, 36800),
}
FIRST_OF_SM_100 = "2.27"
# Of its source (src/enqueue.cc, src/graph/tuning.cc, ncclShmemDynamicSize): trees and NVLS; rings; LL; rings with
# NCCL_NTHREADS=256 and 128; and 640 / 32 warps x (8 x 32 + 1) x 16 bytes, whatever the threads.
TREE, RING, LL, RING_256, RING_128 = 640, 544, 512, 288, 160
NCCL_REGISTERS, NCCL_DYNAMIC = 96, 82240
# Of RCCL in ROCm 7.2.4: registers by how often its loops are unrolled, and how often they usually are; static bytes;
# dynamic bytes by the call that launches it.
UNROLLED = {"gfx90a": ({1: 280, 2: 280, 4: 360}, 4), "gfx942": ({1: 280, 2: 320, 4: 512}, 2)}
RCCL, RCCL_THREADS, RCCL_STATIC = "7.2", 256, 19808
RCCL_DYNAMIC = {"hipExtLaunchKernel": 0, "hipLaunchKernel": 32832}


@dataclass(frozen=True)
class Kernel:
    name: str
    threads: int
    registers: int
    static: int
    dynamic: int | None
    label: str = ""  # of communication: what those of one name differ in


@dataclass(frozen=True)
class Collective:
    """One block, as it is launched."""

    version: str
    path: str  # hipLaunchKernel; the empty string on NVIDIA
    kernel: Kernel
    usual: bool  # if nobody set a variable
    small: bool  # with the settings for small blocks: NCCL_NTHREADS=256, RCCL_UNROLL_FACTOR=0


def known_gpu(key: str) -> Any:
    for gpu in _native.gpus():
        if _native.text(gpu.key) == key:
            return gpu
    raise SystemExit(f"planned.py: no GPU is called {key}; `overlap policy list` has those that are known")


def computation(architecture: str) -> list[Kernel]:
    rows = json.loads(COMPUTE.read_text(encoding="utf-8"))["rows"]
    numbers = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
    return [Kernel(row["name"], *(row[name] for name in numbers)) for row in rows if architecture in row["gpus"]]


def library_of(architecture: str) -> str:
    return "NCCL" if architecture.startswith("sm_") else "RCCL"


def communication(architecture: str) -> Iterator[Collective]:
    """Collectives, the oldest version first, and of a version the most threads first."""
    if library_of(architecture) == "RCCL":
        registers, usual = UNROLLED[architecture]
        for unroll, taken in registers.items():
            for path, dynamic in RCCL_DYNAMIC.items():
                label = f"{RCCL} by {path} ({RCCL_STATIC + dynamic:,} bytes)"
                kernel = Kernel(f"unroll {unroll}", RCCL_THREADS, taken, RCCL_STATIC, dynamic, label)
                yield Collective(RCCL, path, kernel, unroll == usual, unroll == 1)
        return
    number = int(architecture[3:])
    versions = list(STATIC)
    for version in versions[versions.index(FIRST_OF_SM_100) if number >= 100 else 0 :]:
        older, newer = STATIC[version]
        for threads in (TREE, RING, LL, RING_256, RING_128):
            static = newer if number >= 90 else older
            kernel = Kernel(version, threads, NCCL_REGISTERS, static, NCCL_DYNAMIC, f"with {threads} threads")
            yield Collective(version, "", kernel, threads == RING, threads == RING_256)


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
