"""The planner asked again with one thing changed: settings that would change an answer, and sizes at which it changes.

Every known setting is tried. Of a refusal the first that helps is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyshim.explain import planner
from pyshim.explain.planner import RESIZES, Case, Decision, Footprint, Plan, Rule, member, shaped
from pyshim.policy.words import KEEP

# What a control achieves; those that are not here change a size.
_LEVELS = {"leave": 0, "priority": 1, "entry_already": 3, "room_already": 4}
_LEAST_REGISTERS = 16  # of a thread; no compiler goes lower

Score = tuple[int, float]


@dataclass(frozen=True)
class Change:
    """A setting, and what it achieves. all_ranks: every rank of the job needs it."""

    setting: str
    does: str
    all_ranks: bool = False


@dataclass(frozen=True)
class Step:
    """A range of sizes in bytes, both ends included, in which nothing changes."""

    minimum: int
    maximum: int
    blocks: int  # resident
    beside: int  # of them, at most, beside one block of communication; -1: it fits nowhere
    reason: str  # that `dynamic_shared_memory=SIZE` gets, of a size inside that is not the asked one


@dataclass(frozen=True)
class Sweep:
    """How one kernel depends on its dynamic size."""

    steps: list[Step]
    asked: int  # bytes
    chosen: int  # what the planner launches with; asked if it changes nothing
    control: str
    warps: int  # of one block
    most: int  # warps of a multiprocessor

    def mark(self, step: Step) -> str:
        """Return what is at this step."""
        marks = []
        if step.minimum <= self.asked <= step.maximum:
            marks.append("asked")
        if step.minimum <= self.chosen <= step.maximum and self.chosen != self.asked:
            marks.append(self.control)
        return ", ".join(marks)

    def as_json(self) -> list[dict[str, object]]:
        """Return the steps as --json prints them."""
        order = ("minimum", "maximum", "blocks", "warps", "beside", "reason")
        steps = [{**vars(step), "warps": step.blocks * self.warps} for step in self.steps]
        return [{name: step[name] for name in order} for step in steps]


def refusal(case: Case, plan: Plan, control: str, reason: str) -> str | None:
    """Return what would help a launch that is not shaped; None if nothing was refused, or nothing known helps.

    plan: that of the case; control and reason: what was decided, which a policy may decide otherwise.
    """
    if control not in ("leave", "priority"):
        return None
    if reason == "cannot_launch":
        return _impossible(case)
    if reason == "one_wave":
        capacity = plan.native_blocks * case.gpu.multiprocessors
        return f"a grid of more than {capacity:,} blocks would be shaped: {capacity:,} are resident at once"
    if reason == "dispatch_unknown":
        return "`overlap probe` finds out what this GPU does; or the policy's `dispatch` says it"
    if reason in ("communication", "observe_only", "no_rule", "rule_leave"):
        return None
    finds_room = case.rule.shape in (member("SHAPE", "make_room"), member("SHAPE", "quick_entry"))
    return _room(case, plan) if finds_room else _less_kept(case)


def changes(case: Case, found: Plan, decided: Decision, acts: bool, when_dispatch: str) -> list[Change]:
    """Return the settings that are better than what was decided.

    case: under the rule that acts, or under make_room if acts is false: no rule shapes the launch. found: the plan that
    was decided about. when_dispatch: of the rule.
    """
    if decided.reason in ("communication", "one_wave", "cannot_launch", "observe_only", "reads_dynamic_size"):
        return []
    if case.grid <= found.native_blocks * case.gpu.multiprocessors:
        return []  # one wave, which no rule shapes
    tried: list[Change] = []
    score = _score(found, decided)
    # A kernel or a shape must do more than let communication in a little sooner once blocks have ended.
    least = max(score, (2, 0.0))

    def note(setting: str, plan: Plan, least: Score, all_ranks: bool = False) -> bool:
        is_better = _score(plan) > least
        if is_better:
            tried.append(Change(setting, _says(plan), all_ranks))
        return is_better

    if decided.reason == "dispatch_unknown":
        note(f"dispatch: {when_dispatch}, if `overlap probe` says so,", planner.plan(case), score)
    first, best = "", score
    if not acts:
        plan = planner.plan(case)
        note("shape: make_room", plan, least)
        first, best, least = "shape: make_room, and ", max(best, _score(plan)), max(least, _score(plan))
    for setting, plan in planner.knob_plans(case):
        if note(first + setting, plan, best, all_ranks=True):
            best = _score(plan)
    if acts and case.rule.keep:
        plan = planner.plan(case, Rule(case.rule.shape, case.rule.value))
        note(f"keep_at_least: {100 * plan.blocks // max(1, plan.native_blocks)}%", plan, least)
    for word in ("make_room", "quick_entry"):
        other = shaped(word, keep=case.rule.keep or KEEP)
        if other.shape != case.rule.shape:
            note(f"shape: {word}", planner.plan(case, other), least)
    for blocks in _smaller(case):
        any(note(first + setting, planner.plan(smaller), least) for setting, smaller in blocks)
    return tried


def _room(case: Case, plan: Plan) -> str | None:
    """Try smaller blocks of communication, then keeping less, then the other shape, then what priority could do."""
    later = None
    for setting, found in planner.knob_plans(case):
        if does := _does(found):
            return f"{setting} would: {does}"
        if later is None and found.control == "priority" and plan.control == "leave":
            later = f"{setting} would: {_later(found)}"
    less = _less_kept(case)
    if less is None and case.rule.shape == member("SHAPE", "make_room"):
        does = _does(planner.plan(case, shaped("quick_entry", keep=case.rule.keep)))
        less = f"shape: quick_entry would: {does}" if does else None
    return less or later


def _less_kept(case: Case) -> str | None:
    """Try to keep fewer blocks than the rule asks for."""
    if not case.rule.keep:
        return None
    found = planner.plan(case, Rule(case.rule.shape, case.rule.value))
    does = _does(found)
    return f"keep_at_least: {100 * found.blocks // found.native_blocks}% would: {does}" if does else None


def _impossible(case: Case) -> str:
    """Return which of its numbers makes a launch impossible, by adding them one after another."""
    for count, sentence in (
        (1, "threads: a block has at most {0.threads_per_block:,}, and at least one"),
        (2, "registers: a thread has at most {0.registers_per_thread:,}, a block {0.registers_per_block:,}"),
        (4, "shared memory: a block has at most {0.shared_optin:,} bytes"),
    ):
        if planner.occupancy(case.gpu, Footprint(*case.block[:count]))[0] == 0:
            return sentence.format(planner.struct(case.gpu))
    return "barriers and scalar registers: one block asks for more than there are"


def _score(plan: Plan, decided: Decision | None = None) -> Score:
    """Return how good a plan is, or the decision about it.

    First what it achieves, then how many blocks stay, or are resident beside communication in the end."""
    made = decided or plan
    if made.reason == "capped_without_room":
        return 1, 0.0
    if made.control == "priority":
        return 1, plan.beside_after_drain / plan.native_blocks
    return _LEVELS.get(made.control, 2), made.blocks / max(1, plan.native_blocks)


def _smaller(case: Case) -> Iterator[Iterator[tuple[str, Case]]]:
    """Yield blocks that take less and less of one thing: of threads, of registers, of shared memory."""
    warp = planner.struct(case.gpu).warp_size
    for name, step, least, words in (
        ("threads", warp, warp, "with {:,} threads"),
        ("registers", 8, _LEAST_REGISTERS, "with {:,} registers a thread"),
        ("dynamic", 1024, 0, "with {:,} bytes of dynamic shared memory"),
    ):
        yield _with_less(case, name, range(least, getattr(case.block, name), step), words)


def _with_less(case: Case, name: str, values: range, words: str) -> Iterator[tuple[str, Case]]:
    for value in reversed(values):
        yield words.format(value), case.of_block(case.block._replace(**{name: value}))


def _says(plan: Plan) -> str:
    """Return what a plan achieves for the list of changes, which tells how many blocks stay."""
    if plan.control in RESIZES:
        word = "room" if plan.control == "cap" else plan.control
        return f"{word} with {plan.dynamic:,} bytes; {plan.blocks} of {plan.native_blocks} blocks stay"
    return _does(plan) or _later(plan)


def _later(plan: Plan) -> str:
    blocks = f"{plan.beside_after_drain} of {plan.native_blocks} blocks"
    return f"communication fits beside {blocks}, once the others have ended"


def _does(plan: Plan) -> str:
    """Return what a plan achieves, or the empty string."""
    control = plan.control
    if control == "room_already":
        return "communication fits beside the kernel as launched"
    if control == "entry_already":
        return "communication fits as soon as one block has ended"
    if control == "cap":
        return f"k={plan.blocks}, {plan.dynamic:,} bytes"
    if control not in RESIZES:
        return ""
    blocks, windows = plan.blocks, plan.entries if control == "quick_entry" else plan.windows
    window = next(window for window in windows if window.blocks == blocks)
    return f"k={blocks}, {window.minimum:,} to {window.maximum:,} bytes"


def steps_of(case: Case) -> list[Step]:
    """Return every step from the asked size to the largest.

    Both numbers of blocks only fall as the size rises: equal at both ends, they are equal between.
    """
    asked, most = case.block.dynamic, planner.largest_dynamic(case.gpu, case.block)

    def blocks(size: int) -> tuple[int, int]:
        """Return how many are resident, and how many at most beside a block of communication."""
        block = case.block._replace(dynamic=size)
        return case.resident(size), planner.blocks_beside(case.gpu, block, case.communication)

    def starts(low: int, high: int) -> Iterator[int]:
        """Yield those from low + 1 to high that begin something new."""
        if blocks(low) != blocks(high):
            if high - low == 1:
                yield high
            else:
                middle = (low + high) // 2
                yield from starts(low, middle)
                yield from starts(middle, high)

    def step(start: int, end: int) -> Step:
        # The asked size itself is no change, and its reason says nothing about the others.
        size = min(max(start, asked + 1), end)
        return Step(start, end, *blocks(size), planner.plan(case, shaped("bytes", size)).reason)

    first = [asked, *(starts(asked, most) if asked < most else ())]
    return [step(start, end) for start, end in zip(first, [*(start - 1 for start in first[1:]), most])]
