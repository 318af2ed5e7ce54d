"""The two loops of programs.LOOPS, as library_rank.py of the overlap suite runs their cells."""

from __future__ import annotations

from typing import Any

import torch

from tools.gpu.overlap.computations import Computation
from tools.gpu.overlap.library_rank import Cell, Collective, two_streams
from tools.gpu.whole.program import Program
from tools.gpu.whole.programs import LOOPS


def loop(name: str) -> Program:
    """Eight iterations a step, on streams that can pass each other."""
    made, collective = LOOPS[name], Collective()
    collective.size(made.bytes)
    collective.start("")
    torch.cuda.synchronize()
    main, side, _ = two_streams(collective)
    torch.cuda.set_stream(main)
    cell = Cell(Computation(made.kind), collective, side, made.pattern, 0)

    def step() -> list[Any]:
        cell.run("plain")
        return [*cell.computation.results, collective.target]

    return Program(step, lambda: cell.run("computation"), lambda: cell.run("communication"))
