"""Which setting would change a refusal: every one that is known is tried, and the first that does is named."""

from __future__ import annotations

from typing import Any

from pyshim import _native


class Advice:
    """Sentences for refusals; the structs are made once."""

    def __init__(self) -> None:
        self._lib = _native.library()
        new = _native.ffi.new
        self._changed, self._plan = new("struct overlap_footprint *"), new("struct overlap_plan *")
        constants = _native.header()
        self._leave, self._priority = constants.OVERLAP_CONTROL_LEAVE, constants.OVERLAP_CONTROL_PRIORITY
        self._make_room = constants.OVERLAP_SHAPE_MAKE_ROOM
        self._quick_entry = constants.OVERLAP_SHAPE_QUICK_ENTRY

    def sentence(
        self,
        gpu: Any,
        launch: Any,
        communication: Any,
        plan: Any,
        asked: tuple[int, int, int],
        control: str,
        reason: str,
    ) -> str | None:
        """asked: shape, value and keep_at_least of the rule. None: nothing was refused, or nothing known helps."""
        if control not in ("leave", "priority"):
            return None
        if reason == "cannot_launch":
            return self._impossible(gpu, launch)
        if reason == "one_wave":
            capacity = plan.native_blocks * gpu.multiprocessors
            return f"a grid of more than {capacity:,} blocks would be shaped: {capacity:,} are resident at once"
        if reason == "dispatch_unknown":
            return "the policy's `dispatch` says what this GPU does, once it is known"
        if reason in ("communication", "observe_only", "no_rule", "rule_leave"):
            return None
        if asked[0] in (self._make_room, self._quick_entry):
            return self._room(gpu, launch, communication, plan, asked)
        return self._less(gpu, launch, communication, asked)

    def _room(self, gpu: Any, launch: Any, communication: Any, plan: Any, asked: tuple[int, int, int]) -> str | None:
        """Smaller blocks of communication, then keeping less, then the other shape, then what priority could do."""
        later = None
        index = 0
        while (name := self._lib.overlap_knob(index, gpu, communication, self._changed)) != _native.ffi.NULL:
            index += 1
            if _same(self._changed, communication):
                continue
            found = self._try(gpu, launch, self._changed, asked)
            does = _does(found)
            if does:
                return f"{_native.text(name)} would: {does}"
            if later is None and found.control == self._priority and plan.control == self._leave:
                blocks = f"{found.beside_after_drain} of {found.native_blocks} blocks"
                later = f"{_native.text(name)} would: communication fits beside {blocks}, once the others have ended"
        less = self._less(gpu, launch, communication, asked)
        if less is None and asked[0] == self._make_room:
            does = _does(self._try(gpu, launch, communication, (self._quick_entry, 0, asked[2])))
            less = f"shape: quick_entry would: {does}" if does else None
        return less or later

    def _less(self, gpu: Any, launch: Any, communication: Any, asked: tuple[int, int, int]) -> str | None:
        """Keeping fewer blocks than the rule asks for."""
        shape, value, keep = asked
        found = self._try(gpu, launch, communication, (shape, value, 0)) if keep else None
        does = _does(found) if found else ""
        return f"keep_at_least: {100 * found.blocks // found.native_blocks}% would: {does}" if found and does else None

    def _try(self, gpu: Any, launch: Any, communication: Any, asked: tuple[int, int, int]) -> Any:
        self._lib.overlap_plan_of(gpu, launch, communication, *asked, self._plan)
        return self._plan

    def _impossible(self, gpu: Any, launch: Any) -> str:
        """Which of its numbers makes a launch impossible, by leaving them out one after another."""
        f = launch.footprint
        tried = (
            (f"threads: a block has at most {gpu.threads_per_block:,}, and at least one", (f.threads,)),
            (
                f"registers: a thread has at most {gpu.registers_per_thread:,}, a block {gpu.registers_per_block:,}",
                (f.threads, f.registers),
            ),
            (
                f"shared memory: a block has at most {gpu.shared_optin:,} bytes",
                (f.threads, f.registers, f.static_shared, f.dynamic_shared),
            ),
        )
        for sentence, numbers in tried:
            footprint = _native.ffi.new("struct overlap_footprint *", numbers)
            if self._lib.overlap_occupancy_of(gpu, footprint).blocks == 0:
                return sentence
        return "barriers and scalar registers: one block asks for more than there are"


def _same(one: Any, other: Any) -> bool:
    return bool(one.threads == other.threads and one.registers == other.registers)


def _does(plan: Any) -> str:
    """What a plan achieves, or the empty string."""
    constants = _native.header()
    if plan.control == constants.OVERLAP_CONTROL_ROOM_ALREADY:
        return "communication fits beside the kernel as launched"
    if plan.control == constants.OVERLAP_CONTROL_ENTRY_ALREADY:
        return "communication fits as soon as one block has ended"
    if plan.control == constants.OVERLAP_CONTROL_CAP:
        return f"k={plan.blocks}, {plan.dynamic_shared:,} bytes"
    if plan.control in (constants.OVERLAP_CONTROL_MAKE_ROOM, constants.OVERLAP_CONTROL_QUICK_ENTRY):
        quick = plan.control == constants.OVERLAP_CONTROL_QUICK_ENTRY
        windows, count = (plan.entries, plan.entry_count) if quick else (plan.windows, plan.window_count)
        window = next(w for w in (windows[i] for i in range(count)) if w.blocks == plan.blocks)
        return f"k={window.blocks}, {window.minimum:,} to {window.maximum:,} bytes"
    return ""
