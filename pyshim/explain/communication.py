"""The block of communication that computation is planned beside: as told, or of the newest NCCL or RCCL known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyshim.explain import planner
from pyshim.explain.answer import Explainer, gpu_called
from pyshim.explain.planner import Footprint
from pyshim.explain.request import COMMUNICATION, NEEDED, Request
from pyshim.policy.gpus import NVIDIA, KnownGpu

# What a block of a collective takes as its library launches it if nobody set a variable: in the binaries of NCCL 2.32.3
# and of RCCL in ROCm 7.2.4, and in NCCL's source (the threads of a ring, 16 barriers, 82,240 dynamic bytes).
_NCCL, _RCCL = "NCCL 2.32.3", "RCCL 7.2.4"
_STATIC = {False: 14144, True: 36800}  # of NCCL: from sm_90 on?
_UNROLLED = {"gfx90a": (4, 360, 106), "gfx942": (2, 320, 108)}  # of RCCL: how often, registers, scalar registers


class Block(NamedTuple):
    """One block of communication."""

    name: str  # where its numbers come from
    takes: Footprint
    told: bool = False  # by the options


def given_block(request: Request) -> Block | None:
    """Return the block that the options give."""
    return Block("as told", request.communication, True) if request.communicates else None


def usual_block(gpu: KnownGpu) -> Block:
    """Return that of the newest known library."""
    if gpu.vendor == NVIDIA:
        static = _STATIC[int(gpu.architecture[3:]) >= 90]
        return Block(_NCCL, Footprint(544, 96, static, 82240, barriers=16))
    unroll, registers, scalars = _UNROLLED[gpu.architecture]
    name = f"{_RCCL} unroll {unroll} by hipExtLaunchKernel"
    return Block(name, Footprint(256, registers, 19808, 0, scalars=scalars))


def with_usual(request: Request, explainer: Explainer) -> tuple[Request, str]:
    """Return the request with the usual block of communication, and its name; "" if options give one. Raise Mistake."""
    if not request.said.isdisjoint(COMMUNICATION):
        return request, ""
    request = explainer.with_gpu(request)
    request.need(NEEDED)
    block = usual_block(gpu_called(request.gpu or ""))
    return request.beside(block.takes), block.name


def settings_for(block: Block, gpu: KnownGpu) -> Iterator[tuple[str, Block]]:
    """Yield the settings of its library that make the block smaller, and the block then."""
    for name, takes in planner.knobs(gpu, block.takes):
        yield name, Block(f"{block.name}, {name.split(' with ')[0]}", takes)
