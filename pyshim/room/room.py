"""One kernel beside one communication kernel: what stays resident, which sizes make room, or what forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyshim.diagnosis.parts import Part, Prose, Table, apart, cut
from pyshim.errors import USAGE, OverlapError
from pyshim.policy.finding import quote
from pyshim.policy.gpus import NVIDIA, KnownGpu
from pyshim.policy.values import KEEP, Bad, number, size
from pyshim.room import planner
from pyshim.room.planner import BlockFootprint, Case, RoomPlan, RoomRule, member

FORM = "THREADS:REGISTERS[:STATIC[:DYNAMIC]]"
# The verdicts.
ALREADY, MAKE_ROOM, NO_SIZE, NO_ROOM = "room already", "sizes make room", "no size makes room", "no room"
CANNOT_LAUNCH, NOWHERE = "the kernel cannot be launched", "communication fits nowhere"

_RAISE = "raise the stream of communication, as the default policy does"
_LARGEST = 2**32 - 1  # of the library's numbers
_MOST_SIZES = 5  # rows; small kernels have up to 32
_WORDS = {"shared_memory": "shared memory", "slots": "block slots"}  # the other limits are words themselves

# What a block of a collective takes as its library launches it if no variable is set: in the binaries of NCCL 2.32.3
# and of RCCL in ROCm 7.2.4, and in NCCL's source (the threads of a ring, 16 barriers, 82,240 dynamic bytes).
_STATIC = {False: 14144, True: 36800}  # of NCCL: from sm_90 on?
_UNROLLED = {"gfx90a": (4, 360, 106), "gfx942": (2, 320, 108)}  # of RCCL: how often, registers, scalar registers


class RoomAnswer(NamedTuple):
    """What the planner finds. source: the library that the communication kernel is of; None: the user gave it."""

    case: Case
    source: str | None
    plan: RoomPlan
    verdict: str
    resource: str | None  # that forbids it
    next: str


def footprint(option: str, text: str) -> BlockFootprint:
    """Return what THREADS:REGISTERS[:STATIC[:DYNAMIC]] says. Raise OverlapError, which names the option."""
    parts = [part.strip() for part in text.split(":")]
    if not 2 <= len(parts) <= 4:
        raise OverlapError(f"{option} {text}: not {FORM}", f"{option} 128:224:0:48KiB", USAGE)
    values = []
    for name, part in zip(("threads", "registers", "static", "dynamic"), parts):
        try:
            value = size(part) if name in ("static", "dynamic") else number(part, 1, _LARGEST)
        except Bad as bad:
            raise OverlapError(f"{option} {text}: {name}: {bad.sentence}", bad.hint, USAGE) from None
        if value > _LARGEST:
            raise OverlapError(f"{option} {text}: {name}: {quote(part)} is too large", "write at most 4095MiB", USAGE)
        values.append(value)
    return BlockFootprint(*values)


def usual_block(gpu: KnownGpu) -> tuple[str, BlockFootprint]:
    """Return the newest known communication library of a GPU, and what one block of it takes."""
    if gpu.vendor == NVIDIA:
        static = _STATIC[int(gpu.architecture[3:]) >= 90]
        return "NCCL 2.32.3", BlockFootprint(544, 96, static, 82240, barriers=16)
    unroll, registers, scalars = _UNROLLED[gpu.architecture]
    name = f"RCCL 7.2.4 unroll {unroll} by hipExtLaunchKernel"
    return name, BlockFootprint(256, registers, 19808, 0, scalars=scalars)


def look(gpu: KnownGpu, kernel: BlockFootprint, communication: BlockFootprint | None) -> RoomAnswer:
    """Return the answer about a kernel of many waves. communication: None for the usual block."""
    source, block = (None, communication) if communication else usual_block(gpu)
    case = Case(gpu, kernel, block, RoomRule(member("SHAPE", "make_room")))
    plan = planner.plan(case)
    return RoomAnswer(case, source, plan, *_verdict(case, plan))


def _verdict(case: Case, plan: RoomPlan) -> tuple[str, str | None, str]:
    """Return the verdict, the resource that forbids room, and what to do next."""
    native, after = plan.native_blocks, plan.beside_after_drain
    resource = None if plan.windows else plan.binding
    if native == 0:
        return CANNOT_LAUNCH, None, f"correct --kernel: {_impossible(case.gpu, case.block)}"
    if after < 0:
        return NOWHERE, resource, f"correct --comm: {_impossible(case.gpu, case.communication)}"
    if plan.control == "room_already":
        return ALREADY, None, f"write no rule; if communication still waits, {_RAISE}"
    if plan.windows:
        share = 100 * plan.windows[0].blocks // native
        less = f", keep_at_least: {share}%" if share < KEEP else ""
        write = f"write in a rule: shape: make_room{less}"
        return MAKE_ROOM, None, f"{write}; then time a whole step, for the kernel keeps {share} % of its blocks"
    smaller = next((setting for setting, found in planner.knob_plans(case) if found.windows), None)
    setting = f"set {smaller} for all ranks, and ask again with --comm; or " if smaller else ""
    if after:
        return NO_SIZE, resource, f"{setting}{_RAISE}"
    return NO_ROOM, resource, f"{setting}leave the kernel alone: communication waits for an empty multiprocessor"


def _impossible(gpu: KnownGpu, block: BlockFootprint) -> str:
    """Return which of its numbers no block can have, by adding them one after another."""
    limits = planner.struct(gpu)
    for count, sentence in (
        (1, f"a block has at most {limits.threads_per_block:,} threads"),
        (2, f"a thread has at most {limits.registers_per_thread:,} registers, a block {limits.registers_per_block:,}"),
    ):
        if planner.occupancy(gpu, BlockFootprint(*block[:count]))[0] == 0:
            return sentence
    return f"a block has at most {limits.shared_optin:,} bytes of shared memory, static and dynamic together"


def screen(answer: RoomAnswer) -> Iterator[Part]:
    """Yield one screen: both kernels, the sizes, the verdict and the next step."""
    return apart([Prose(answer.case.gpu.name)], _footprints(answer), _sizes(answer), _conclusion(answer))


def _residents(answer: RoomAnswer) -> Iterator[tuple[str, BlockFootprint, int, str | None]]:
    for who, block in zip(("kernel", "communication"), answer.case[1:3]):
        yield (who, block, *planner.occupancy(answer.case.gpu, block))


def _footprints(answer: RoomAnswer) -> Iterator[Part]:
    found = list(_residents(answer))
    rows = [
        (who, *(f"{value:,}" for value in block[:4]), blocks, _WORDS.get(limit or "", limit or "no block fits"))
        for who, block, blocks, limit in found
    ]
    yield Table(("one block of", "threads", "registers", "static", "dynamic", "resident", "limited by"), rows, (0, 6))
    if answer.source:
        yield Prose(f"communication: {answer.source}; --comm {FORM} gives another")


def _sizes(answer: RoomAnswer) -> Iterator[Part]:
    """Yield the dynamic sizes with which so many blocks stay resident beside communication, the most blocks first."""
    native = answer.plan.native_blocks
    rows = [
        (one.blocks, f"{100 * one.blocks // native} %", f"{one.minimum:,} to {one.maximum:,}")
        for one in answer.plan.windows
    ]
    shown, more = cut(rows, _MOST_SIZES)
    if shown:
        yield Table(("blocks", "of its own", "dynamic bytes that make room"), shown, ())
    if more:
        yield Prose(f"... and {more} more for fewer blocks (--json lists all)")


def _conclusion(answer: RoomAnswer) -> Iterator[Part]:
    native, after = answer.plan.native_blocks, answer.plan.beside_after_drain
    verdict = answer.verdict
    if answer.resource:
        verdict += f": limited by {_WORDS.get(answer.resource, answer.resource)}"
    elif verdict == MAKE_ROOM:
        first = answer.plan.windows[0]
        verdict += f": {first.blocks} of {native} blocks stay with {first.minimum:,} dynamic bytes"
    if 0 < after < native:
        yield Prose(f"a block of communication fits once {native - after} of {native} blocks have ended", "as is", 9)
    yield Prose(verdict, "verdict", 9)
    yield Prose(answer.next, "next", 9)


def as_json(answer: RoomAnswer) -> dict[str, object]:
    """Return the answer as --json prints it."""
    names = ("threads", "registers", "static", "dynamic")
    blocks = {
        who: {**dict(zip(names, block)), "resident": resident, "limit": limit}
        for who, block, resident, limit in _residents(answer)
    }
    return {
        "gpu": answer.case.gpu.key,
        **blocks,
        "source": answer.source,
        "sizes": [
            {"blocks": one.blocks, "minimum": one.minimum, "maximum": one.maximum} for one in answer.plan.windows
        ],
        "beside": answer.plan.beside_after_drain,
        "verdict": answer.verdict,
        "resource": answer.resource,
        "next": answer.next,
    }
