"""What would change a refusal: the first setting with which the planner, asked again, answers otherwise."""

from __future__ import annotations

from pyshim.explain import planner
from pyshim.explain.planner import RESIZES, Case, Footprint, Plan, Rule, member


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
    if reason in ("communication", "observe_only", "no_rule", "rule_leave"):
        return None
    return _room(case, plan) if case.rule.shape == member("SHAPE", "make_room") else _less_kept(case)


def _room(case: Case, plan: Plan) -> str | None:
    """Try smaller blocks of communication, then keeping less, then what priority could do."""
    later = None
    for setting, found in planner.knob_plans(case):
        if does := _does(found):
            return f"{setting} would: {does}"
        if later is None and found.control == "priority" and plan.control == "leave":
            later = f"{setting} would: {_later(found)}"
    return _less_kept(case) or later


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


def _later(plan: Plan) -> str:
    blocks = f"{plan.beside_after_drain} of {plan.native_blocks} blocks"
    return f"communication fits beside {blocks}, once the others have ended"


def _does(plan: Plan) -> str:
    """Return what a plan achieves, or the empty string."""
    control = plan.control
    if control == "room_already":
        return "communication fits beside the kernel as launched"
    if control == "cap":
        return f"k={plan.blocks}, {plan.dynamic:,} bytes"
    if control not in RESIZES:
        return ""
    window = next(window for window in plan.windows if window.blocks == plan.blocks)
    return f"k={plan.blocks}, {window.minimum:,} to {window.maximum:,} bytes"
