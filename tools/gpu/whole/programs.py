"""The programs, and what each waits for. Rows are cells: a program with its size."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    """n: points along an edge, 0 where the program has no size. bits: of a number."""

    program: str
    waits: str  # who waits for what
    n: int = 0
    bits: int = 64

    @property
    def name(self) -> str:
        return f"{self.program} {self.n}^3, fp{self.bits}" if self.n else self.program

    @property
    def is_compiled(self) -> bool:
        return bool(self.n)

    @property
    def ranks(self) -> int:
        """Processes that are asked."""
        return 1 if self.is_compiled or self.program in LOOPS else 2

    @property
    def gib(self) -> float:
        """Of a GPU's memory, about."""
        grids = {SOLVER: 4, TRANSPOSE: 3.5}.get(self.program, 2)
        return 0.8 + grids * self.n**3 * self.bits / 8 / 2**30 if self.n else 14


SOLVER, TRANSPOSE = "solver", "transpose"
DEEPER = "fsdp-8"  # with twice the layers: measured for all-gathers only
GAINING, LOSING = "gaining-loop-alone", "losing-loop"  # by communication raised: loops.py
LOOPS = {GAINING: 567279616, LOSING: 964689920}  # bytes of one collective: half of the computation's time on an H200
BOUNDARY = "NCCL, for boundary planes"
HOST = "the host, for copies of boundary planes"

# ---- Stencils: style, who waits, sizes in double precision, sizes in single precision ----

EVERY, FEW = (128, 256, 384, 512, 768), (128, 256, 768)
STENCILS = (
    ("halo-stream", BOUNDARY, EVERY, FEW),
    ("computing-stream", BOUNDARY, (128, 256, 512), ()),
    ("third-stream", BOUNDARY, (256,), ()),
    ("host-stream", HOST, EVERY, FEW),
    ("host-event", HOST, (256,), ()),
    ("host-polling", HOST, (256,), ()),
    ("host-copy", HOST, (256, 512), ()),
    ("warmed", BOUNDARY, (256,), ()),
    ("swapped", "NCCL, on streams that swap roles", (256,), ()),
    ("one-stream", "NCCL, on the only stream", (256,), ()),
    ("synchronised", "the host, for the only stream", (256,), ()),
    ("equal", "NCCL, on two streams with equal work", (256,), ()),
)
OTHERS = (
    (SOLVER, "NCCL, for planes; computation, for sums", (128, 256, 384)),
    (TRANSPOSE, "NCCL, for packed chunks", (256, 512)),
)
PYTORCH = (
    ("ddp", "the end of the step, for all-reduces"),
    ("fsdp", "computation, for gathered weights"),
    (DEEPER, "computation, for gathered weights"),
    ("tensor", "computation, for each all-reduce"),
    ("pipeline", "the other stage, for activations"),
    ("recommender", "computation, for exchanged vectors"),
    ("experts", "computation, for exchanged tokens"),
)


def cells() -> list[Cell]:
    """Most important first: what a time limit cuts are the later ones."""
    made = [Cell(name, waits) for name, waits in PYTORCH]
    made.append(Cell(GAINING, "the next product, for its SendRecv"))
    made.append(Cell(LOSING, "the end of eight attentions, for all SendRecvs"))
    compiled = [Cell(name, waits, n) for name, waits, sizes in OTHERS for n in sizes]
    for style, waits, double, single in STENCILS:
        compiled += [Cell(style, waits, n) for n in double]
        compiled += [Cell(style, waits, n, 32) for n in single]
    return made + sorted(compiled, key=lambda cell: EVERY.index(cell.n) if cell.n != 256 else -1)


@dataclass(frozen=True)
class Place:
    """Where things are: built programs, NCCL's library, and of which GPU the policies are."""

    built: Path
    nccl: str
    gpu: str = "h200"

    def command(self, cell: Cell, own: bool, before: Sequence[str]) -> list[str]:
        """own: the program sets priorities itself. before: what each rank stands behind, such as overlap-run."""
        raised = str(int(own))
        if not cell.is_compiled:
            return [*before, sys.executable, "-m", "tools.gpu.whole.rank", cell.program]
        if cell.program in (SOLVER, TRANSPOSE):
            return [*before, os.fspath(self.built / cell.program), self.nccl, str(cell.n), raised]
        stencil = "stencil" if cell.bits == 64 else f"stencil{cell.bits}"
        return [*before, os.fspath(self.built / stencil), self.nccl, cell.program, str(cell.n), raised]

    def lacks(self, cell: Cell) -> str:
        """What the cell needs and is not there, or ''."""
        missing = not cell.is_compiled and importlib.util.find_spec("torch") is None
        return "no Python module torch" if missing else ""
