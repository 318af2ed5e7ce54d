"""Which dynamic size makes room for communication, by GPU, kernel family and version of NCCL or RCCL."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyshim.footprints import collectives
from pyshim.policy.gpus import NVIDIA, KnownGpu, known
from tools.answers.table import Table, Value
from tools.footprints import tables

EVERY = (0,)  # versions of NCCL, the old ones too
# The smallest usual blocks: a ring of NCCL with NCCL_NTHREADS=256, RCCL with RCCL_UNROLL_FACTOR=0.
RING, UNROLL = "ring, simple, NCCL_NTHREADS=256", "unroll 1"
MOST_BESIDE = 4


@dataclass(frozen=True)
class Launch:
    """How a version launches collectives by itself, and with the settings for small blocks."""

    version: str
    path: str
    shipped: tables.Kernel
    small: tables.Kernel


def launches(architecture: str) -> Iterator[Launch]:
    for read in collectives.tables(collectives.library_of(architecture).name.lower()):
        found = list(collectives.of_table(read, architecture))
        threads = next(fact["values"] for fact in read["not_in_the_binary"] if fact["what"] == "threads")
        for usual in (one for one in found if one.usual):
            small = next(
                one
                for one in found
                if one.path == usual.path
                and (one.threads == threads[RING] if RING in threads else one.variant == UNROLL)
            )
            version = read["version"].rsplit(".", 1)[0]
            yield Launch(version, usual.path, _kernel(usual), _kernel(small))


def _kernel(block: collectives.Collective) -> tables.Kernel:
    return tables.Kernel(block.variant, block.threads, block.registers, block.static, block.dynamic)


class Gpu:
    """One GPU, and what the planner says of every family of computation kernels there."""

    def __init__(self, gpu: KnownGpu) -> None:
        self.known, self.nvidia = gpu, gpu.vendor == NVIDIA
        self.name = gpu.key.upper()
        self.struct: Any = tables.known_gpu(gpu.key)
        self.library = collectives.library_of(gpu.architecture).name
        self.launches = list(launches(gpu.architecture))
        self.kernels = [
            kernel
            for kernel in tables.computation(gpu.architecture)
            if tables.answer(self.struct, kernel, self.launches[0].shipped).native
        ]

    def count(self, block: tables.Kernel) -> int:
        return sum(room(tables.answer(self.struct, kernel, block)) for kernel in self.kernels)

    def cell(self, launch: Launch) -> str:
        return f"{self.count(launch.shipped)}/{self.count(launch.small)}"

    def most_beside(self, blocks: int) -> int:
        """Bytes of shared memory of the largest block of communication beside which a size leaves so many of a kernel
        that needs next to nothing else."""
        warp = self.struct.warp_size
        tiny, least, most = tables.Kernel("", warp, 16, 0, 0), 0, self.known.shared_memory_per_block
        while least < most:
            middle = (least + most + 1) // 2
            answer = tables.answer(self.struct, tiny, tables.Kernel("", warp, 16, middle, 0))
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
            for block in tables.communication(self.known.architecture, EVERY):
                answer = tables.answer(self.struct, kernel, block)
                native = answer.native
                key = (answer.control, _sizes(answer.rooms), max(answer.after, 0), _never(answer))
                said.setdefault(key, {}).setdefault(block.label, []).append(block.name)
            numbers = (kernel.threads, kernel.registers, kernel.static, kernel.dynamic, native)
            for found, labels in said.items():
                head: list[Value] = [self.known.key, kernel.name, int(_was_read(kernel)), *numbers]
                yield [*head, f"{self.library} {tables.named(labels)}", *found]


def _never(answer: tables.Answer) -> str:
    return answer.binding if answer.control == "never together" else ""


def _sizes(found: tuple[tables.Sizes, ...]) -> str:
    """blocks: least-most dynamic bytes; of sizes as launched the blocks only."""
    return "; ".join(
        f"{one.blocks}: {one.minimum}-{one.maximum}" if one.inflates else f"{one.blocks}: as launched" for one in found
    )


def room(answer: tables.Answer) -> bool:
    return answer.control in ("room", "room already")


def _was_read(kernel: tables.Kernel) -> bool:
    """Whether each of its numbers is in a binary or a source."""
    rows = json.loads((tables.HERE / "compute.json").read_text(encoding="utf-8"))["rows"]
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
