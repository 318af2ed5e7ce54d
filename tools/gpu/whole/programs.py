"""The programs, what each waits for, and what was expected before anything was measured.

The declaration: `expected` of the default policy: `gains` (3 % and more), `loses` (1.5 % and more), `nothing` (within
1.5 %) or `open`. Rows are cells: a program with its size.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GAINS, LOSES, NOTHING, OPEN = "gains", "loses", "nothing", "open"


@dataclass(frozen=True)
class Cell:
    """n: points along an edge, 0 where the program has no size. bits: of a number."""

    program: str
    waits: str  # who waits for what
    expected: str
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
        return 1 if self.is_compiled or self.program in (JAX, GAINING_ALONE, LOSING) else 2

    @property
    def gib(self) -> float:
        """Of a GPU's memory, about."""
        grids = {SOLVER: 4, TRANSPOSE: 3.5}.get(self.program, 2)
        return 0.8 + grids * self.n**3 * self.bits / 8 / 2**30 if self.n else 14


SOLVER, TRANSPOSE, MPI, JAX = "solver", "transpose", "mpi-stencil", "pmap"
GAINING, LOSING = "gaining-loop", "losing-loop"  # by communication raised: loops.py
GAINING_ALONE = "gaining-loop-alone"  # on one GPU, as the losing one is


@dataclass(frozen=True)
class Loop:
    """A cell of the overlap suite that is a loop. bytes: of one collective."""

    results: str  # file of tools/gpu/results
    cell: str
    kind: str
    pattern: str
    bytes: int


# Of all loops of PyTorch and NCCL in these files priority by itself changes the time of the first and the last most, in
# every round: -25 and +6 %; the second gains most on one GPU, 13 %.
LOOPS = {
    GAINING: Loop("overlap-two-gpus", "elementwise + all-reduce 1:2, eight pairs", "elementwise", "pairs", 42991616),
    GAINING_ALONE: Loop("overlap-libraries", "simt + SendRecv 1:2, eight pairs", "simt", "pairs", 567279616),
    LOSING: Loop(
        "overlap-libraries",
        "attention + SendRecv 1:2, eight, each beside the next",
        "attention",
        "loop",
        964689920,
    ),
}
BOUNDARY = "NCCL, for boundary planes"
HOST = "the host, for copies of boundary planes"

# ---- Stencils: style, who waits, expected, sizes in double precision, sizes in single precision ----

EVERY, FEW = (128, 256, 384, 512, 768), (128, 256, 768)
STENCILS = (
    ("halo-stream", BOUNDARY, GAINS, EVERY, FEW),
    ("computing-stream", BOUNDARY, GAINS, (128, 256, 512), ()),
    ("third-stream", BOUNDARY, GAINS, (256,), ()),
    ("host-stream", HOST, GAINS, EVERY, FEW),
    ("host-event", HOST, GAINS, (256,), ()),
    ("host-polling", HOST, GAINS, (256,), ()),
    ("host-copy", HOST, GAINS, (256, 512), ()),
    ("warmed", BOUNDARY, GAINS, (256,), ()),
    ("swapped", "NCCL, on streams that swap roles", NOTHING, (256,), ()),
    ("one-stream", "NCCL, on the only stream", NOTHING, (256,), ()),
    ("synchronised", "the host, for the only stream", NOTHING, (256,), ()),
    ("equal", "NCCL, on two streams with equal work", NOTHING, (256,), ()),
)
OTHERS = (
    (SOLVER, "NCCL, for planes; computation, for sums", OPEN, (128, 256, 384)),
    (TRANSPOSE, "NCCL, for packed chunks", GAINS, (256, 512)),
    (MPI, "MPI's rank, for copies of planes", GAINS, (128, 256, 512)),
)
PYTORCH = (
    ("ddp", "the end of the step, for all-reduces", NOTHING),
    ("fsdp", "computation, for gathered weights", NOTHING),
    ("tensor", "computation, for each all-reduce", NOTHING),
    ("pipeline", "the other stage, for activations", NOTHING),
    ("llama", "the end of the step, for all-reduces", NOTHING),
    ("recommender", "computation, for exchanged vectors", OPEN),
    ("experts", "computation, for exchanged tokens", OPEN),
    ("token", "computation, for each all-reduce at once", NOTHING),
    ("token-graph", "the same, in a graph", NOTHING),
)


def cells() -> list[Cell]:
    """Most important first: what a time limit cuts are the later ones."""
    made = [Cell(name, waits, expected) for name, waits, expected in PYTORCH]
    made.append(Cell(GAINING, "the next sum of tensors, for its all-reduce", GAINS))
    made.append(Cell(GAINING_ALONE, "the next product, for its SendRecv", GAINS))
    made.append(Cell(LOSING, "the end of eight attentions, for all SendRecvs", OPEN))
    made.append(Cell(JAX, "the end of the step, for all-reduces", NOTHING))
    compiled = [Cell(name, waits, expected, n) for name, waits, expected, sizes in OTHERS for n in sizes]
    for style, waits, expected, double, single in STENCILS:
        compiled += [Cell(style, waits, expected, n) for n in double]
        compiled += [Cell(style, waits, expected, n, 32) for n in single]
    return made + sorted(compiled, key=lambda cell: EVERY.index(cell.n) if cell.n != 256 else -1)


@dataclass(frozen=True)
class Place:
    """Where things are: built programs, NCCL's library, and MPI's folder ('' without)."""

    built: Path
    nccl: str
    mpi: str

    def command(self, cell: Cell, own: bool, before: Sequence[str]) -> list[str]:
        """own: the program sets priorities itself. before: what each rank stands behind, such as overlap-run."""
        raised = str(int(own))
        if cell.program == JAX:
            return [*before, sys.executable, "-m", "tools.gpu.whole.jax_rank"]
        if not cell.is_compiled:
            return [*before, sys.executable, "-m", "tools.gpu.whole.rank", cell.program]
        if cell.program == MPI:
            program = [os.fspath(self.built / "mpi_stencil"), str(cell.n), raised]
            return [f"{self.mpi}/bin/mpiexec", "-n", "2", *before, *program]
        if cell.program in (SOLVER, TRANSPOSE):
            return [*before, os.fspath(self.built / cell.program), self.nccl, str(cell.n), raised]
        stencil = "stencil" if cell.bits == 64 else f"stencil{cell.bits}"
        return [*before, os.fspath(self.built / stencil), self.nccl, cell.program, str(cell.n), raised]

    def lacks(self, cell: Cell) -> str:
        """What the cell needs and is not there, or ''."""
        module = "" if cell.is_compiled else "jax" if cell.program == JAX else "torch"
        if module and importlib.util.find_spec(module) is None:
            return f"no Python module {module}"
        return "no MPI" if cell.program == MPI and not self.mpi else ""
