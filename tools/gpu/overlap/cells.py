"""What the stand-in suite measures: kinds of computation, stand-ins for communication, cells, what arms ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.gpu.overlap.arms import shape

Words = Mapping[str, int]  # of a `sample` of program.c

MULTIPROCESSORS = 132
COPY = "copy"  # what program.c calls communication
KINDS = {
    "tensor128": "bf16 product on tensor cores as on sm_80, tiles of 128 by 128",
    "tensor64": "the same with tiles of 64 by 64",
    "simt": "float product without tensor cores, tiles of 128 by 64 (the demo's)",
    "tiled": "float product as in a textbook, tiles of 16 by 16",
    "elementwise": "c = 2 a + b, bound by device memory",
    "norm": "root mean square norm of rows, bound by device memory",
    "warp-specialised": "bf16 product in one block a multiprocessor, with the footprint of nvjet and CUTLASS 3 (its "
    "warps are not specialised), several waves",
    "persistent": "the same kernel in one wave whose blocks go from tile to tile",
}


@dataclass(frozen=True)
class StandIn:
    what: str
    words: Words
    traffic: int  # times the copied bytes at device memory


STAND_INS = {
    "hbm-2.5x": StandIn("copy in device memory at 1,125 GB/s of traffic", {"rate": 1125000}, 2),
    "hbm-1x": StandIn("copy in device memory at 450 GB/s of traffic", {"rate": 450000}, 2),
    "link": StandIn("copy to pinned memory of the host, as fast as it goes", {"host": 1}, 1),
}
PRIMARY = "hbm-2.5x"
# Communication by another number of blocks or threads, the same bytes. The simulated GPU has a cost for each.
VARIANTS: dict[str, Words] = {
    "ctas-8": {"blocks": 8},
    "ctas-16": {"blocks": 16},
    "ctas-24": {"blocks": 24},
    "ctas-32": {"blocks": 32},
    "threads-288": {"threads": 288},
}
RATIOS = (0.25, 0.5, 1.0)
RATIO_NAMES = {0.1: "1:10", 0.25: "1:4", 0.5: "1:2", 1.0: "1:1", 2.0: "2:1"}  # communication to computation
PATTERNS = {"one": "one long kernel", "loop": "loop of 8", "pairs": "4 pairs"}
COUNTS = {"one": 1, "loop": 8, "pairs": 4}
POLICIES = ("observe", "h200", "h200-paper", "make-room")
BARE, ONE_CONNECTION = "bare", "connections-1"  # processes, besides "policy:NAME"


@dataclass(frozen=True)
class Cell:
    computation: str
    communication: str = PRIMARY
    ratio: float = 0.5
    pattern: str = "one"
    offset: float | None = None  # of the kernel's time, until communication is launched; below 0: 5 us before

    @property
    def primary(self) -> bool:
        return self.communication == PRIMARY and self.pattern == "one" and self.ratio in RATIOS and self.offset is None

    @property
    def name(self) -> str:
        when = "" if self.offset is None else f", launched after {self.offset:.0%}"
        if self.offset is not None and self.offset < 0:
            when = ", launched 5 us before"
        return f"{self.computation} + {self.communication} {RATIO_NAMES[self.ratio]}, {PATTERNS[self.pattern]}{when}"


def cells() -> list[Cell]:
    """Return the cells kind by kind, those of the primary matrix first."""
    made = [Cell(kind, ratio=ratio) for kind in KINDS for ratio in RATIOS]
    for kind in KINDS:
        made += [Cell(kind, pattern=pattern) for pattern in ("loop", "pairs")]
        if kind in ("tensor128", "elementwise"):
            made += [Cell(kind, ratio=ratio) for ratio in (0.1, 2.0)]
            made += [Cell(kind, offset=offset) for offset in (-1.0, 0.3, 0.7)]
        if kind in ("tensor128", "elementwise", "warp-specialised"):
            made += [Cell(kind, communication) for communication in ("hbm-1x", "link")]
    return made


@dataclass(frozen=True)
class Turn:
    """One arm of one cell: which process is asked for what."""

    process: str
    words: dict[str, int]
    about: dict[str, int] = field(default_factory=dict)  # of a shape: blocks_per_sm, dynamic


def turns(cell: Cell, sizes: Mapping[int, int], bytes_: int, kernel_us: float, executed: bool) -> dict[str, Turn]:
    """sizes: the least dynamic bytes for so many resident blocks. executed: on a real GPU; else what the simulated one
    does not know is left out (launch completion events, a host that waits)."""
    base = {"bytes": bytes_, "count": COUNTS[cell.pattern], "loop": int(cell.pattern == "loop")}
    base.update(STAND_INS[cell.communication].words)
    if cell.offset is not None:
        base.update(
            {"first": int(cell.offset < 0), "offset_us": 5 if cell.offset < 0 else round(cell.offset * kernel_us)}
        )
    raised = {"priority": 1}
    made = {name: Turn(process, {**base, **words}) for name, process, words in _bare(cell, executed)}
    for blocks, dynamic in sizes.items():
        if not cell.primary and blocks != max(1, (max(sizes) + 1) // 2):
            continue
        about = {"blocks_per_sm": blocks, "dynamic": dynamic}
        words = {**base, "dynamic": dynamic, "carveout": 100}
        if cell.primary:
            made[shape(blocks)] = Turn(BARE, words, about)
        made[shape(blocks, True)] = Turn(BARE, {**words, **raised}, about)
    for policy in POLICIES:
        if cell.primary or policy != "observe":
            made[f"policy:{policy}"] = Turn(f"policy:{policy}", dict(base))
    return made


def copier(communication: str) -> str:
    """Return the arm that copies the bytes of a stand-in by cuMemcpyAsync.

    A copy engine copies to the host; a copy in the device waits behind a grid like a kernel (measured; README.md)."""
    return "copy-engine" if STAND_INS[communication].words.get("host") else "memcpy"


def _bare(cell: Cell, executed: bool) -> Iterator[tuple[str, str, dict[str, int]]]:
    yield "computation", BARE, {"communication": 0, "offset_us": 0}
    yield "communication", BARE, {"computation": 0, "offset_us": 0}
    yield "sequential", BARE, {"sequential": 1, "offset_us": 0}
    yield "plain", BARE, {}
    yield "priority", BARE, {"priority": 1}
    if cell.offset is not None:
        return
    first = {"first": 1, "gate": int(executed and cell.pattern != "one")}
    if executed or cell.pattern != "loop":
        yield "order", BARE, first
        yield "order+priority", BARE, {**first, "priority": 1}
    yield "cluster-1+priority", BARE, {"cluster": 1, "priority": 1}
    yield copier(cell.communication), BARE, {"engine": 1}
    if cell.computation == "persistent":
        yield "sm-target", BARE, {"grid": MULTIPROCESSORS - 24}
        yield "sm-target+cluster-1", BARE, {"grid": MULTIPROCESSORS - 24, "cluster": 1}
    yield "connections-1", ONE_CONNECTION, {}
    if cell.primary:
        yield "cluster-1", BARE, {"cluster": 1}
        for name, words in VARIANTS.items():
            yield name, BARE, dict(words)
        yield "threads-288+priority", BARE, {"threads": 288, "priority": 1}


def described(answer: dict[str, Any], role: str, what: str) -> dict[str, Any]:
    """Return a row of `kernels` of the file of results."""
    kept = ("symbol", "threads", "registers", "static", "dynamic", "blocks", "resident_blocks", "bytes")
    return {**{key: answer[key] for key in kept}, "role": role, "what": what}
