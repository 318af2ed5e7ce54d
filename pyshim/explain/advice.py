"""Which setting would change an answer: every one that is known is tried. Of a refusal the first that does is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pyshim import _native

# What a control achieves; those that are not here change a size.
_LEVELS = {"leave": 0, "priority": 1, "entry_already": 3, "room_already": 4}
_LEAST_REGISTERS = 16  # of a thread; no compiler goes lower


class Change(NamedTuple):
    setting: str
    does: str
    all_ranks: bool = False  # must agree on it


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
            return "`overlap probe` finds out what this GPU does; or the policy's `dispatch` says it"
        if reason in ("communication", "observe_only", "no_rule", "rule_leave"):
            return None
        if asked[0] in (self._make_room, self._quick_entry):
            return self._room(gpu, launch, communication, plan, asked)
        return self._less(gpu, launch, communication, asked)

    def changes(
        self,
        gpu: Any,
        launch: Any,
        communication: Any,
        asked: tuple[int, int, int],
        found: Mapping[str, Any],
        acts: bool,
    ) -> list[Change]:
        """What is better than the answer `found`. asked: shape, value and keep_at_least of the rule, or make_room's
        where acts is false: no rule shapes the launch."""
        if found["reason"] in ("communication", "one_wave", "cannot_launch", "observe_only", "reads_dynamic_size"):
            return []
        if launch.blocks <= found["native_blocks"] * gpu.multiprocessors:
            return []  # one wave, which no rule shapes
        if found["reason"] == "capped_without_room":
            score = 1, 0.0
        elif found["control"] == "priority":
            score = 1, found["beside_after_drain"] / found["native_blocks"]
        else:
            score = _LEVELS.get(found["control"], 2), found["blocks"] / max(1, found["native_blocks"])
        tried: list[Change] = []
        shape, value, keep = asked
        # What only comes a little sooner, once blocks have ended, is worth a setting, but no other kernel or shape.
        least = max(score, (2, 0.0))

        def note(setting: str, plan: Any, least: tuple[int, float], all_ranks: bool = False) -> bool:
            is_better = _score(plan) > least
            if is_better:
                tried.append(Change(setting, _says(plan), all_ranks))
            return is_better

        if found["reason"] == "dispatch_unknown":
            setting = f"dispatch: {found['rule']['when_dispatch']}, if `overlap probe` says so,"
            note(setting, self._try(gpu, launch, communication, asked), score)
        first, best = "", score
        if not acts:
            plan = self._try(gpu, launch, communication, asked)
            note("shape: make_room", plan, least)
            first, best, least = "shape: make_room, and ", max(best, _score(plan)), max(least, _score(plan))
        for setting, changed in self._knobs(gpu, communication):
            plan = self._try(gpu, launch, changed, asked)
            if note(first + setting, plan, best, all_ranks=True):
                best = _score(plan)
        if acts and keep:
            plan = self._try(gpu, launch, communication, (shape, value, 0))
            note(f"keep_at_least: {100 * plan.blocks // max(1, plan.native_blocks)}%", plan, least)
        for word, other in (("make_room", self._make_room), ("quick_entry", self._quick_entry)):
            if other != shape:
                note(f"shape: {word}", self._try(gpu, launch, communication, (other, 0, keep or 50)), least)
        for blocks in _smaller(gpu, launch):
            any(note(first + setting, self._try(gpu, one, communication, asked), least) for setting, one in blocks)
        return tried

    def _knobs(self, gpu: Any, communication: Any) -> Iterator[tuple[str, Any]]:
        index = 0
        while (name := self._lib.overlap_knob(index, gpu, communication, self._changed)) != _native.ffi.NULL:
            index += 1
            if not _same(self._changed, communication):
                yield _native.text(name), self._changed

    def _room(self, gpu: Any, launch: Any, communication: Any, plan: Any, asked: tuple[int, int, int]) -> str | None:
        """Smaller blocks of communication, then keeping less, then the other shape, then what priority could do."""
        later = None
        for setting, changed in self._knobs(gpu, communication):
            found = self._try(gpu, launch, changed, asked)
            does = _does(found)
            if does:
                return f"{setting} would: {does}"
            if later is None and found.control == self._priority and plan.control == self._leave:
                later = f"{setting} would: {_later(found)}"
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


def _score(plan: Any) -> tuple[int, float]:
    """How good an answer is: what it achieves, then how many blocks stay, or meet communication in the end."""
    names = _native.header()
    if plan.control == names.OVERLAP_CONTROL_PRIORITY:
        return 1, plan.beside_after_drain / plan.native_blocks
    if plan.control == names.OVERLAP_CONTROL_CAP and _reason(plan) == "capped_without_room":
        return 1, 0.0
    level = {
        names.OVERLAP_CONTROL_LEAVE: 0,
        names.OVERLAP_CONTROL_ENTRY_ALREADY: 3,
        names.OVERLAP_CONTROL_ROOM_ALREADY: 4,
    }.get(plan.control, 2)
    return level, plan.blocks / max(1, plan.native_blocks)


def _smaller(gpu: Any, launch: Any) -> Iterator[Iterator[tuple[str, Any]]]:
    """Blocks that take less and less of one thing: of threads, of registers, of shared memory."""
    f = launch.footprint
    now = (f.threads, f.registers, f.static_shared, f.dynamic_shared, f.barriers, f.scalar_registers)
    for place, step, least, words in (
        (0, gpu.warp_size, gpu.warp_size, "with {:,} threads"),
        (1, 8, _LEAST_REGISTERS, "with {:,} registers a thread"),
        (3, 1024, 0, "with {:,} bytes of dynamic shared memory"),
    ):
        yield _less(launch, now, place, reversed(range(least, now[place], step)), words)


def _less(
    launch: Any, now: tuple[int, ...], place: int, values: Iterable[int], words: str
) -> Iterator[tuple[str, Any]]:
    changed = _native.ffi.new("struct overlap_launch *", launch[0])
    for value in values:
        changed.footprint = (*now[:place], value, *now[place + 1 :])
        yield words.format(value), changed


def _reason(plan: Any) -> str:
    return _native.text(_native.library().overlap_reason_name(plan.reason))


def _says(plan: Any) -> str:
    """The same for a person, who wants to know what stays."""
    names = _native.header()
    words = {
        names.OVERLAP_CONTROL_MAKE_ROOM: "make_room",
        names.OVERLAP_CONTROL_QUICK_ENTRY: "quick_entry",
        names.OVERLAP_CONTROL_CAP: "room",
    }
    if plan.control in words:
        stay = f"{plan.blocks} of {plan.native_blocks} blocks stay"
        return f"{words[plan.control]} with {plan.dynamic_shared:,} bytes; {stay}"
    return _does(plan) or _later(plan)


def _later(plan: Any) -> str:
    blocks = f"{plan.beside_after_drain} of {plan.native_blocks} blocks"
    return f"communication fits beside {blocks}, once the others have ended"


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
