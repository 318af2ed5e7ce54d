"""Which dynamic size makes room for communication, by GPU, kernel family and version of NCCL or RCCL."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim.policy.gpus import NVIDIA, KnownGpu, known
from tools.docs import planned
from tools.docs.table import Table, Value

MOST_BESIDE = 4


@dataclass(frozen=True)
class Launch:
    """How a version launches collectives by itself, and with the settings for small blocks."""

    version: str
    path: str
    shipped: planned.Kernel
    small: planned.Kernel


def launches(architecture: str) -> Iterator[Launch]:
    found = list(planned.communication(architecture))
    for usual in (one for one in found if one.usual):
        like = (one for one in found if (one.version, one.path) == (usual.version, usual.path))
        small = next(one for one in like if one.small)
        yield Launch(usual.version, usual.path, usual.kernel, small.kernel)


class Gpu:
    """One GPU, and what the planner says of every family of computation kernels there."""

    def __init__(self, gpu: KnownGpu) -> None:
        self.known, self.nvidia = gpu, gpu.vendor == NVIDIA
        self.name = gpu.key.upper()
        self.struct: Any = planned.known_gpu(gpu.key)
        self.library = planned.library_of(gpu.architecture)
        self.launches = list(launches(gpu.architecture))
        self.kernels = [
            kernel
            for kernel in planned.computation(gpu.architecture)
            if planned.answer(self.struct, kernel, self.launches[0].shipped).native
        ]

    def count(self, block: planned.Kernel) -> int:
        return sum(room(planned.answer(self.struct, kernel, block)) for kernel in self.kernels)

    def cell(self, launch: Launch) -> str:
        return f"{self.count(launch.shipped)}/{self.count(launch.small)}"

    def most_beside(self, blocks: int) -> int:
        """Bytes of shared memory of the largest block of communication beside which a size leaves so many of a kernel
        that needs next to nothing else."""
        warp = self.struct.warp_size
        tiny, least, most = planned.Kernel("", warp, 16, 0, 0), 0, self.known.shared_memory_per_block
        while least < most:
            middle = (least + most + 1) // 2
            answer = planned.answer(self.struct, tiny, planned.Kernel("", warp, 16, middle, 0))
            if any(one.blocks == blocks for one in answer.rooms):
                least = middle
            else:
                most = middle - 1
        return least

    def details(self) -> Iterator[list[Value]]:
        """A row for each kernel and each group of communication blocks with the same answer."""
        for kernel in self.kernels:
            said: dict[tuple[Value, ...], dict[str, list[str]]] = {}
            native = 0
            for block in (one.kernel for one in planned.communication(self.known.architecture)):
                answer = planned.answer(self.struct, kernel, block)
                native = answer.native
                key = (answer.control, _sizes(answer.rooms), max(answer.after, 0), _never(answer))
                said.setdefault(key, {}).setdefault(block.label, []).append(block.name)
            numbers = (kernel.threads, kernel.registers, kernel.static, kernel.dynamic, native)
            for found, labels in said.items():
                head: list[Value] = [self.known.key, kernel.name, int(_was_read(kernel)), *numbers]
                yield [*head, f"{self.library} {planned.named(labels)}", *found]


def _never(answer: planned.Answer) -> str:
    return answer.binding if answer.control == "never together" else ""


def _sizes(found: tuple[planned.Sizes, ...]) -> str:
    """blocks: least-most dynamic bytes; of sizes as launched the blocks only."""
    return "; ".join(
        f"{one.blocks}: {one.minimum}-{one.maximum}" if one.inflates else f"{one.blocks}: as launched" for one in found
    )


def room(answer: planned.Answer) -> bool:
    return answer.control in ("room", "room already")


def _was_read(kernel: planned.Kernel) -> bool:
    """Whether each of its numbers is in a binary or a source."""
    rows = json.loads(planned.COMPUTE.read_text(encoding="utf-8"))["rows"]
    row = next(
        row
        for row in rows
        if (row["name"], row["threads"], row["registers"]) == (kernel.name, kernel.threads, kernel.registers)
    )
    return not {"assumed", "inferred"} & set(row["evidence"].values())


def matrix(_: Path) -> Table:
    """Families of computation kernels that have room: beside a collective as shipped / with small blocks."""
    made = _gpus()
    versions = list(dict.fromkeys(launch.version for gpu in made if gpu.nvidia for launch in gpu.launches))
    rows: list[list[Value]] = []
    for gpu in made:
        if gpu.nvidia:
            by = {launch.version: gpu.cell(launch) for launch in gpu.launches}
            rows.append([gpu.name, len(gpu.kernels), *(by.get(version) for version in versions)])
    return Table(("GPU", "families", *(f"NCCL {version}" for version in versions)), rows)


def amd(_: Path) -> Table:
    rows: list[list[Value]] = [
        [gpu.name, len(gpu.kernels), *(gpu.cell(launch) for launch in gpu.launches)]
        for gpu in _gpus()
        if not gpu.nvidia
    ]
    paths = next(gpu.launches for gpu in _gpus() if not gpu.nvidia)
    return Table(("GPU", "families", *(f"RCCL {launch.version}, {launch.path}" for launch in paths)), rows)


def every_size(_: Path) -> Table:
    heads = ("gpu", "kernel", "read_from_binary", "threads", "registers", "static", "dynamic", "resident", "beside")
    answers = ("control", "room", "fit_after_others_end", "never_together")
    return Table((*heads, *answers), [row for gpu in _gpus() for row in gpu.details()])


def limits(_: Path) -> Table:
    """The largest block of communication, bytes, that some size leaves beside k blocks, and what libraries need."""
    rows: list[list[Value]] = []
    for gpu in _gpus():
        needed = sorted({one.shipped.static + (one.shipped.dynamic or 0) for one in gpu.launches})
        most = [gpu.most_beside(blocks) for blocks in range(1, MOST_BESIDE + 1)]
        rows.append([gpu.known.key, *most, gpu.library, needed[0], needed[-1]])
    beside = (f"beside_{blocks}_blocks" for blocks in range(1, MOST_BESIDE + 1))
    return Table(("gpu", *beside, "library", "least_as_launched", "most_as_launched"), rows)


@functools.cache
def _gpus() -> list[Gpu]:
    return [Gpu(gpu) for gpu in known()]
