"""The planner against a judge that knows no formula, and on numbers that no GPU has."""

from __future__ import annotations

import random
from typing import Any

import pytest
from gpu_def import AMD, KEYS

from pyshim import _native

Footprint = tuple[int, ...]  # threads, registers, static, dynamic, barriers, scalar registers


def in_units(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Block:
    """What a block takes. AMD counts a register of all lanes as one, NVIDIA each lane's: here they are of a warp."""

    def __init__(self, gpu: Any, amd: bool, footprint: Footprint) -> None:
        self.threads, self.per_thread, self.static, self.dynamic, barriers, scalars = footprint
        self.warps = -(-self.threads // (64 if amd else 32))
        self.registers = in_units(self.per_thread, 8) if amd else in_units(self.per_thread * 32, 256)
        self.scalars = in_units(scalars, 16) if amd else 0
        self.barriers = int(self.warps > 1) if amd else barriers
        self.reserved, self.unit = (0, 512) if amd else (1024, 128)
        self.launchable = (
            1 <= self.threads <= 1024
            and self.per_thread <= (512 if amd else 255)
            and self.static + self.dynamic <= gpu.shared_optin
            and Multiprocessor(gpu, amd).put(self)
        )

    def shared(self, dynamic: int) -> int:
        return in_units(self.static + dynamic + self.reserved, self.unit)


class Multiprocessor:
    """What is left of one, but for shared memory; below zero where there was not enough."""

    def __init__(self, gpu: Any, amd: bool) -> None:
        self.slots = [8 if amd else gpu.threads // 128] * 4
        self.registers = [512 if amd else 16384] * 4
        self.scalars = [800] * 4
        self.blocks, self.barriers = gpu.blocks, gpu.barriers or 2**30

    def put(self, block: Block, freely: bool = False) -> bool:
        """Add a block, and return whether all blocks so far fit.

        freely: each warp goes to the partition with most slots left. Else every partition takes as many warps as the
        fullest one, which is the safe sense.
        """
        for warp in range(block.warps if freely else in_units(block.warps, 4)):
            at = self.slots.index(max(self.slots)) if freely else warp % 4
            self.slots[at] -= 1
            self.registers[at] -= block.registers
            self.scalars[at] -= block.scalars
        self.blocks -= 1
        self.barriers -= block.barriers
        return min(*self.slots, *self.registers, *self.scalars, self.blocks, self.barriers) >= 0


def short_of(gpu: Any, amd: bool, c: Block, k: Block) -> str:
    """Name the resource that runs out first when both lie on an empty multiprocessor.

    In the order in which users hear of them. The shared memory of k is left out: it is the answer if nothing else is.
    """
    if not 1 <= c.threads <= 1024:
        return "no_room_warps"
    if c.per_thread > (512 if amd else 255):
        return "no_room_registers"
    machine = Multiprocessor(gpu, amd)
    if machine.put(c) and c.launchable:
        machine.put(k)
    if min(*machine.registers, *machine.scalars) < 0:
        return "no_room_registers"
    if min(machine.slots) < 0:
        return "no_room_warps"
    return "no_room_slots" if min(machine.blocks, machine.barriers) < 0 else "no_room_shared_memory"


def judge(gpu: Any, amd: bool, k: Block, c: Block, maximum: int, keep: int) -> tuple[Any, ...]:
    """Try every size. Return native blocks, beside them, control, reason, dynamic bytes, blocks, windows."""
    if not k.launchable:
        return 0, None, "leave", "cannot_launch", k.dynamic, 0, []
    machine, most = Multiprocessor(gpu, amd), 0
    while machine.put(k, freely=True):
        most += 1
    machine = Multiprocessor(gpu, amd)
    beside = [machine.put(c), *(machine.put(k) for _ in range(most))]  # so many blocks of k, and one of c
    taken, asked = c.shared(c.dynamic), k.shared(k.dynamic)

    def resident(shared: int) -> int:
        return min(most, gpu.shared // shared) if shared else most

    def fits(blocks: int, shared: int) -> bool:
        return c.launchable and beside[blocks] and blocks * shared + taken <= gpu.shared

    native = resident(asked)
    drained = max((blocks for blocks in range(native + 1) if fits(blocks, asked)), default=-1)
    windows: dict[int, list[int]] = {}
    limit = min(maximum, gpu.shared_optin - k.static)
    for shared in range(asked, gpu.shared + 1, k.unit):  # what is given out for a block
        most_dynamic = shared - k.static - k.reserved
        least, largest = max(k.dynamic, most_dynamic - k.unit + 1), min(most_dynamic, limit)
        if least <= largest and (blocks := resident(shared)) and fits(blocks, shared):
            window = windows.setdefault(blocks, [least, least - 1])
            assert window[1] == least - 1, "sizes that are no interval: nothing that the library says can be right"
            window[1] = largest
    found = [(blocks, int(blocks < native), *windows[blocks]) for blocks in sorted(windows, reverse=True)]
    if drained == native:
        return native, drained, "room_already", "room_already", k.dynamic, native, found
    if found and 100 * found[0][0] >= keep * native:
        return native, drained, "make_room", "shaped", found[0][2], found[0][0], found
    later = drained >= 1
    reason = "below_keep" if found else "priority" if later else short_of(gpu, amd, c, k)
    return native, drained, "priority" if later else "leave", reason, k.dynamic, native, found


def planned(library: Any, plan: Any) -> tuple[Any, ...]:
    control = ("leave", "room_already", "make_room", "priority", "cap")[plan.control]
    windows = [(w.blocks, w.inflates, w.minimum, w.maximum) for w in plan.windows[0 : plan.window_count]]
    reason = _native.text(library.overlap_reason_name(plan.reason))
    return plan.native_blocks, plan.beside_after_drain, control, reason, plan.dynamic_shared, plan.blocks, windows


def any_footprint(source: random.Random, gpu: Any, amd: bool, communication: bool) -> Footprint:
    if communication and source.random() < 0.33:
        if amd:
            return 256, source.choice((280, 356)), 19808, 0, 0, 0
        return 288, 96, source.choice((20832, 36800)), 82240, 16, 0
    threads = (32, 64, 160, 256, 288, 384, 544, 640)
    kind, registers = source.randrange(4), 512 if amd else 255
    near = gpu.shared // source.randint(1, 6) + source.randrange(3000)
    size = max(0, source.choice((near, source.randrange(gpu.shared_optin // 2))) - source.randrange(2500))
    return (
        source.choice((threads[source.randrange(8 if communication else 5)],) * 2 + (source.randint(1, 1024),)),
        source.randint(1, registers // 2 // kind if kind else registers),
        source.choice((0, source.randrange(20000 if amd else 37000))),
        source.choice((0, size, size)),
        source.choice((1, 1, source.randrange(17))),
        source.choice((0, source.randrange(113), source.randrange(96, 113))),
    )


@pytest.mark.parametrize("key", KEYS)
def test_equal_to_a_judge_that_tries_every_size(key: str, library: Any, gpus: dict[str, Any]) -> None:
    gpu, amd, source, counts = gpus[key], key in AMD, random.Random(key), dict.fromkeys(("no_room_warps",), 0)
    launch, beside = _native.ffi.new("struct overlap_launch *"), _native.ffi.new("struct overlap_footprint *")
    for _ in range(700):
        computation, communication = (any_footprint(source, gpu, amd, which) for which in (False, True))
        maximum = source.choice((max(0, gpu.shared_optin - computation[2]),) * 3 + (source.randrange(2 * gpu.shared),))
        keep = source.choice((0, source.randrange(101)))
        launch.footprint, launch.maximum_dynamic, beside[0] = computation, maximum, communication
        plan = _native.ffi.new("struct overlap_plan *")
        _native.ffi.buffer(plan)[:] = b"\x5a" * _native.ffi.sizeof("struct overlap_plan")
        library.overlap_plan_of(gpu, launch, beside, library.OVERLAP_SHAPE_MAKE_ROOM, 0, keep, plan)
        got = planned(library, plan)
        k, c = Block(gpu, amd, computation), Block(gpu, amd, communication)
        expected = judge(gpu, amd, k, c, maximum, keep)
        if not expected[0]:  # nothing else is promised of what cannot be launched
            expected = (0, plan.beside_after_drain, *expected[2:])
        assert got == expected, (computation, communication, maximum, keep)
        for name in {got[2], got[3]}:
            counts[name] = counts.get(name, 0) + 1
    assert all(counts[name] > 12 for name in ("leave", "room_already", "make_room", "priority")), counts
    assert all(counts[name] > 5 for name in ("below_keep", "no_room_registers", "no_room_shared_memory")), counts
    assert counts["no_room_warps"] > 0 or key not in ("a40", "l40s")


LARGEST = 2**18 - 1  # OVERLAP_LARGEST_SIZE: the bits that a decision has
EDGES = [max(0, 2**power + near) for power in range(33) for near in (-1, 0, 1) if 2**power + near < 2**32]
EDGES += [49152, 101376, 102400, 166912, 232448, 233472] * 3


def test_numbers_that_no_gpu_has(library: Any, gpus: dict[str, Any]) -> None:
    """Every field is an edge of something, and one in four GPUs is none that exists: a driver may answer nonsense."""
    ffi, source, launchable = _native.ffi, random.Random(9), 0
    size, shapes = ffi.sizeof("struct overlap_plan"), ("leave", "blocks", "percent", "bytes", "make_room")
    gpu, launch, plan = (
        ffi.new("struct overlap_gpu *"),
        ffi.new("struct overlap_launch *"),
        ffi.new("struct overlap_plan *"),
    )
    beside, changed = ffi.new("struct overlap_footprint *"), ffi.new("struct overlap_footprint *")
    known = list(gpus.values())

    def edge(usual: int) -> int:
        return source.randrange(usual) if source.random() < 0.67 else source.choice(EDGES)

    def footprint() -> Footprint:
        return edge(1100), edge(300), *(source.choice((0, edge(most))) for most in (60000, 120000, 20, 120))

    for _ in range(40_000):
        gpu[0] = source.choice(known)[0]
        if source.random() < 0.25:
            gpu.blocks, gpu.shared, gpu.registers = edge(64), edge(300000), edge(131072)
            gpu.barriers, gpu.shared_optin = edge(64), edge(300000)
        if source.random() < 0.06:
            gpu.warp_size = gpu.shared_unit = gpu.register_unit = 0
        launch.blocks, launch.footprint, beside[0] = edge(100000), footprint(), footprint()
        launch.maximum_dynamic = source.choice((gpu.shared_optin, edge(300000)))
        shape = source.choice(shapes)
        value = source.randint(1, 100) if shape == "percent" else edge(40)
        kind = getattr(library, f"OVERLAP_SHAPE_{shape.upper()}")
        ffi.buffer(plan)[:] = b"\x5a" * size
        library.overlap_plan_of(
            gpu, launch, beside if source.random() < 0.9 else ffi.NULL, kind, value, source.randrange(101), plan
        )
        native, drained, _, reason, dynamic, blocks, windows = planned(library, plan)
        asked, most = launch.footprint.dynamic_shared, launch.maximum_dynamic
        shaped = dynamic > asked
        tried = (bytes(ffi.buffer(gpu)), bytes(ffi.buffer(launch)), bytes(ffi.buffer(beside)), shape, value)
        assert dynamic >= asked and shaped == (reason in ("shaped", "capped_without_room")), tried
        assert not shaped or (dynamic <= min(most, LARGEST) and blocks >= 1), tried
        assert native <= gpu.blocks and (reason == "cannot_launch") == (native == 0), tried
        assert -1 <= drained <= native and len(windows) <= 32, tried
        for window, before in zip(windows, [(native + 1, 0, 0, 0), *windows]):
            assert asked <= window[2] <= window[3] <= most, tried
            assert 1 <= window[0] < before[0] and window[1] == (window[0] < native), tried
        for knob in range(4):
            if library.overlap_knob(knob, gpu, beside, changed):
                assert changed.threads <= beside.threads and changed.registers <= beside.registers, tried
        launchable += native > 0
    assert launchable > 4_000
