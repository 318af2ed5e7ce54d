"""docs/sizes.md: which dynamic size makes room for communication, by GPU, kernel family and version of NCCL or RCCL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tables

from answers import measured
from answers.markdown import bullets, holds, listed, page, paragraph, table
from pyshim.footprints import collectives
from pyshim.policy.gpus import NVIDIA, KnownGpu, known

EVERY = (0,)  # versions of NCCL, the old ones too
# What GPU-small-comm policies make of a block: a ring of NCCL with NCCL_NTHREADS=256, RCCL with RCCL_UNROLL_FACTOR=0.
RING, UNROLL = "ring, simple, NCCL_NTHREADS=256", "unroll 1"
MOST_BESIDE = 4
USUAL = "2.28"  # of NCCL: what PyTorch 2.11 brings
Counted = Callable[[tables.Answer], bool]


@dataclass(frozen=True)
class Launch:
    """How a version launches collectives by itself, and with the small-comm policy."""

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

    def count(self, block: tables.Kernel, counted: Counted) -> int:
        return sum(counted(tables.answer(self.struct, kernel, block)) for kernel in self.kernels)

    def cell(self, launch: Launch, counted: Counted) -> str:
        return f"{self.count(launch.shipped, counted)} / {self.count(launch.small, counted)}"

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

    def details(self) -> list[tuple[str, ...]]:
        """kernel, blocks of communication, room, quick entry, otherwise; the kernel is named once."""
        found = []
        for kernel in self.kernels:
            said: dict[tuple[str, str, str], dict[str, list[str]]] = {}
            native = 0
            for block in tables.communication(self.known.architecture, EVERY):
                answer = tables.answer(self.struct, kernel, block)
                native = answer.native
                key = (_sizes(answer.rooms, native), _sizes(answer.entries, native), _otherwise(answer))
                said.setdefault(key, {}).setdefault(block.label, []).append(block.name)
            head = _head(kernel, native)
            for key, labels in said.items():
                found.append((head, tables.named(labels), *key))
                head = ""
        return found


def room(answer: tables.Answer) -> bool:
    return answer.control in ("room", "room already")


def sooner(answer: tables.Answer) -> bool:
    return answer.control in ("room", "room already", "entry already", "quick entry")


def _sizes(found: tuple[tables.Sizes, ...], native: int) -> str:
    """In bold what keeps half of the blocks, as `make_room` and `quick_entry` do where a rule says nothing else."""
    return "<br>".join(
        (f"**{one.blocks} of {native}**" if 2 * one.blocks >= native else f"{one.blocks} of {native}")
        + f": {one.minimum:,} to {one.maximum:,}"
        if one.inflates
        else f"{native}, as launched"
        for one in found
    )


def _otherwise(answer: tables.Answer) -> str:
    if answer.rooms or answer.entries:
        return ""
    if answer.control == "priority only":
        return f"{answer.after} beside it once the others have ended"
    return answer.text


def _head(kernel: tables.Kernel, native: int) -> str:
    dynamic = "dynamic not known, taken as 0" if kernel.dynamic is None else f"{kernel.dynamic:,} dynamic"
    return (
        f"{kernel.name}{'' if _was_read(kernel) else ' †'}<br>{kernel.threads} threads, {kernel.registers} registers, "
        f"{kernel.static:,} static, {dynamic}; {native} resident"
    )


def _was_read(kernel: tables.Kernel) -> bool:
    """Whether each of its numbers is in a binary or a source."""
    rows = json.loads((tables.HERE / "compute.json").read_text(encoding="utf-8"))["rows"]
    row = next(
        row
        for row in rows
        if (row["name"], row["threads"], row["registers"]) == (kernel.name, kernel.threads, kernel.registers)
    )
    return not {"assumed", "inferred"} & set(row["evidence"].values())


def _matrix(gpus: list[Gpu], counted: Counted) -> str:
    versions = list(dict.fromkeys(launch.version for gpu in gpus for launch in gpu.launches))
    rows = []
    for gpu in gpus:
        by = {launch.version: gpu.cell(launch, counted) for launch in gpu.launches}
        rows.append((gpu.name, str(len(gpu.kernels)), *(by.get(version, "-") for version in versions)))
    return table(("GPU", "families", *(f"NCCL {version}" for version in versions)), rows)


def _amd(gpus: list[Gpu]) -> str:
    heads = ["GPU", "families"]
    heads += [f"{what}, {launch.path}" for what in ("room", "room or entry") for launch in gpus[0].launches]
    rows = [
        (
            gpu.name,
            str(len(gpu.kernels)),
            *(gpu.cell(one, counted) for counted in (room, sooner) for one in gpu.launches),
        )
        for gpu in gpus
    ]
    return table(heads, rows)


def _why(gpus: list[Gpu]) -> str:
    """What each family comes to beside the usual version."""

    def stops(binding: str) -> Counted:
        return lambda answer: answer.control == "never together" and answer.binding == binding

    columns: dict[str, Counted] = {
        "room": room,
        "quick entry": lambda answer: sooner(answer) and not room(answer),
        "once more have ended": lambda answer: answer.control == "priority only",
        "never: registers": stops("registers"),
        "never: shared memory": stops("shared memory"),
        "never: other": lambda answer: stops("warps or slots")(answer) or answer.after < 0,
    }
    rows = []
    for gpu in gpus:
        launch = next((one for one in gpu.launches if one.version == USUAL), gpu.launches[0])
        rows.append((gpu.name, *(gpu.cell(launch, counted) for counted in columns.values())))
    return table(("GPU", *columns), rows)


def _limits(gpus: list[Gpu]) -> str:
    rows = []
    for gpu in gpus:
        taken = sorted({one.shipped.static + (one.shipped.dynamic or 0) for one in gpu.launches})
        block = f"{taken[0]:,} to {taken[-1]:,}" if len(taken) > 1 else f"{taken[0]:,}"
        most = (f"{gpu.most_beside(blocks):,}" for blocks in range(1, MOST_BESIDE + 1))
        rows.append((gpu.name, *most, f"{block} ({gpu.library})"))
    heads = ("GPU", *(f"k = {blocks}" for blocks in range(1, MOST_BESIDE + 1)), "one block as launched")
    return table(heads, rows)


def _details(gpus: list[Gpu]) -> Iterator[str]:
    by: dict[tuple[tuple[str, ...], ...], list[Gpu]] = {}
    for gpu in gpus:
        by.setdefault(tuple(gpu.details()), []).append(gpu)
    for rows, same in by.items():
        names = listed([gpu.name for gpu in same])
        policies = ", ".join(f"[{gpu.known.key}.yaml](../policies/{gpu.known.key}.yaml)" for gpu in same)
        yield f"### {names}"
        memory = f"{same[0].known.shared_memory:,} bytes of shared memory, {same[0].known.registers:,} registers"
        yield paragraph(f"{memory}, {same[0].known.threads:,} threads. Policies: {policies}.")
        heads = (
            "kernel",
            f"{same[0].library}, threads of a block",
            "room: k, dynamic bytes",
            "quick entry",
            "otherwise",
        )
        if not same[0].nvidia:
            heads = (heads[0], "RCCL, way of the launch", *heads[2:])
        yield table(heads, rows, left=5)


def _answer(nvidia: list[Gpu], amd: list[Gpu]) -> str:
    none = [gpu for gpu in nvidia if not any(gpu.count(one.shipped, room) for one in gpu.launches)]
    never = [gpu for gpu in nvidia if not any(gpu.count(one.small, room) for one in gpu.launches)]
    some = [gpu for gpu in nvidia if gpu not in none]
    last = [one for one in some[0].launches if some[0].count(one.shipped, room)][-1]
    later = [one.version for one in some[0].launches[some[0].launches.index(last) + 1 :]]
    h100 = next(gpu for gpu in some if gpu.known.key == "h100")
    ours = next(one for one in h100.launches if one.version == last.version)
    sizes, native = next(
        (found.rooms[0], found.native)
        for found in (tables.answer(h100.struct, kernel, ours.shipped) for kernel in h100.kernels)
        if found.rooms
    )
    mi250x = next(gpu for gpu in amd if gpu.known.key == "mi250x")
    direct = mi250x.launches[0]
    return " ".join(
        (
            holds(
                bool(none) and none == never,
                f"On {listed([gpu.name for gpu in none])} no dynamic size makes room for a block of NCCL beside any "
                "of the families below, in any version read, as shipped or with a small ring.",
            ),
            holds(
                bool(later)
                and not any(gpu.count(one.small, room) for gpu in some for one in gpu.launches if one.version in later),
                f"On {listed([gpu.name for gpu in some])} sizes exist up to NCCL {last.version} (H100: "
                f"{h100.count(ours.shipped, room)} of {len(h100.kernels)} families as shipped, "
                f"{h100.count(ours.small, room)} with a small ring; elementwise {sizes.minimum:,} to "
                f"{sizes.maximum:,} bytes, which keeps {sizes.blocks} block of {native}), and none from NCCL "
                f"{listed(later[:1])} on.",
            ),
            holds(
                direct.path == "hipExtLaunchKernel",
                f"On MI250X RCCL finds room by a size beside {mi250x.count(direct.shipped, room)} of "
                f"{len(mi250x.kernels)} families as shipped and {mi250x.count(direct.small, room)} with "
                "RCCL_UNROLL_FACTOR=0, and beside none in graphs (hipLaunchKernel).",
            ),
        )
    )


def text(root: Path) -> str:
    gpus = [Gpu(gpu) for gpu in known()]
    nvidia, amd = [gpu for gpu in gpus if gpu.nvidia], [gpu for gpu in gpus if not gpu.nvidia]
    versions = listed(
        [f"{read['library']} {read['version']}" for kind in ("nccl", "rccl") for read in collectives.tables(kind)]
    )
    head = {
        "Question": (
            "Which dynamic shared memory makes room for communication on which GPU, for which kernels, beside which "
            "version of NCCL or RCCL; or why does none?"
        ),
        "Answer": _answer(nvidia, amd),
        "From": (
            f"Computed, not measured: footprints read from the libraries themselves ({versions}; "
            "[libraries](../pyshim/footprints/libraries), [compute.json](../tools/footprints/compute.json)), answered "
            "by the planner in C that the shim runs ([planner.c](../shim/core/planner.c)). " + measured.occupancy(root)
        ),
        "Anew": (
            "`.venv/bin/python tools/answers --write sizes`; after a new library: `tools/footprints/renew.py` first."
        ),
    }
    parts = [
        "## Summary",
        paragraph(
            "How many families of computation kernels have **room**: communication fits beside all blocks that "
            "stay, at once. Before the slash: NCCL as shipped (ring, 544 threads); behind it: `GPU-small-comm`, a "
            "ring of 288 threads. A dash: that version holds no kernel for the GPU."
        ),
        _matrix(nvidia, room),
        paragraph(
            "The same with **room or quick entry**: communication fits as soon as one resident block has ended, by "
            "a size or as launched."
        ),
        _matrix(nvidia, sooner),
        paragraph(
            "AMD, RCCL 7.2: as shipped / with RCCL_UNROLL_FACTOR=0. hipLaunchKernel is the way into graphs and with "
            "several streams; the other is the usual one ([AMD](../policies/AMD.md))."
        ),
        _amd(amd),
        "That a family has room does not say that room pays: [sensitivity](sensitivity.md) and "
        "[robustness](robustness.md).",
        "## Why",
        paragraph(
            "k blocks of a kernel stay beside one of communication, and no more than k, if registers, warps and "
            "slots of all of them fit and shared memory M is divided so that M / (k+1) < size of the kernel's block "
            "<= (M - size of the communication's block) / k. So a block of communication of M / (k+1) or more "
            "leaves no size at all, and registers, which no size changes, forbid most of the rest "
            "([Policies](../policies/README.md), and the same tables as comments in each policy there)."
        ),
        paragraph(
            f"What the families come to beside NCCL {USUAL} (PyTorch 2.11) and RCCL by hipExtLaunchKernel, as "
            "shipped / small:"
        ),
        _why(gpus),
        paragraph(
            "The largest block of communication (bytes, static and dynamic) that some size leaves beside k blocks of a "
            "kernel that needs nothing else, and what a block of the library takes:"
        ),
        _limits(gpus),
        "## By GPU",
        paragraph(
            "`k of n: a to b`: with a to b bytes of dynamic shared memory k of n blocks stay resident, and "
            "communication fits beside them (room) or as soon as one of them has ended (quick entry). `make_room` "
            "and `quick_entry` take the smallest size of the largest k, and only if `keep_at_least` lets them: 50 % "
            "unless written, which those in **bold** keep. Threads 640: tree, NVLS, send and receive; 544: ring; "
            "512: LL; 288 and 160: ring with NCCL_NTHREADS=256 and 128."
        ),
        *_details(gpus),
        "## What is not known",
        bullets(
            (
                "† At least one number of this kernel is inferred from its name or assumed ([compute.json]"
                "(../tools/footprints/compute.json) says which); the others were read from binaries or sources.",
                "The newest GEMMs of cuBLAS (nvjet) are made as the program runs and are in no binary; "
                "`overlap explain --from trace` or a report of a run knows them.",
                "Room also needs the largest carve-out on the real GPU, and on Hopper a cluster of four needs room "
                "on four multiprocessors ([measured](../tools/gpu/README.md)).",
                "The sizes that the paper used are not published in the part that was available to us.",
            )
        ),
    ]
    return page("Sizes", "sizes", head, parts)


def files(root: Path) -> dict[str, str]:
    return {"docs/sizes.md": text(root)}
