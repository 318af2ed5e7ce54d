"""One request -> what would be done, with which number, and why. All arithmetic is the library's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.explain import planner
from pyshim.explain.planner import MANY, NONE, RESIZES, Case, Decision, Footprint, Plan, Rule, member
from pyshim.explain.policies import Compiled, PolicyRule, own_rule, table_of
from pyshim.explain.request import COMMUNICATION, NEEDED, Mistake, Request, read
from pyshim.policy import gpus
from pyshim.policy.finding import quote
from pyshim.policy.gpus import NVIDIA, KnownGpu

_NEEDED = NEEDED + COMMUNICATION


class Answer(NamedTuple):
    """What would be done with one launch. plan: what the planner finds under the rule that decided."""

    request: Request  # with its GPU
    case: Case
    plan: Plan
    decision: Decision
    rule: PolicyRule | None
    help: str | None

    def as_json(self) -> dict[str, object]:
        """Return the answer as --json prints it."""
        plan, decision = self.plan, self.decision
        return {
            "gpu": (self.request.gpu or "").lower(),
            "native_blocks": plan.native_blocks,
            "limit": plan.native_limit,
            "windows": [
                {"blocks": k, "minimum": low, "maximum": high, "inflates": more} for k, low, high, more in plan.windows
            ],
            "beside_after_drain": plan.beside_after_drain,
            "binding": plan.binding,
            "control": decision.control,
            "dynamic_shared_memory": decision.dynamic,
            "blocks": decision.blocks,
            "reason": decision.reason,
            "rule": self.rule and self.rule.json,
            "help": self.help,
        }


class Explainer:
    """Answers requests. Policies are compiled once, whatever the number of requests.

    environment: where policies are looked for (OVERLAP_POLICY_PATH).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._policies: dict[str, Compiled] = {}

    def answer(self, request: Mapping[str, object]) -> dict[str, object]:
        """Return the answer as --json prints it. Raise Mistake, and OverlapError for a wrong policy."""
        return self.look(read(request)).as_json()

    def look(self, request: Request) -> Answer:
        """Return the answer to a request. Raise Mistake, and OverlapError for a wrong policy."""
        request = self.with_gpu(request)
        compiled = None if request.policy is None else self.compiled(request.policy)
        request.need(_NEEDED)
        gpu = gpu_called(request.gpu or "")
        if compiled:
            for name in ("shape", "keep_at_least"):
                if name in request.said:
                    raise Mistake(name, "goes without a policy: with one, its rule says it")
        rule = own_rule(request.shape, request.keep_at_least)
        grid = MANY if request.blocks is None else request.blocks
        case = Case(gpu, request.computation, request.communication, rule.asked, grid)
        if compiled is None:
            is_plain = request.blocks is None and request.kernel is None
            if is_plain or planner.occupancy(gpu, case.block)[0] == 0:
                plan = planner.plan(case)
                return _answer(request, case, plan, (plan.control, plan.reason, plan.dynamic, plan.blocks), rule)
        return _decided(request, case, compiled, rule)

    def with_gpu(self, request: Request) -> Request:
        """Return the request with the policy's GPU if it has none and the policy is for one GPU only."""
        compiled = None if request.policy is None else self.compiled(request.policy)
        if compiled and request.gpu is None and (only := compiled.only_gpu()):
            request = request._replace(gpu=only, said=request.said | {"gpu"})
        if request.gpu is not None:
            gpu_called(request.gpu)
        return request

    def compiled(self, value: str) -> Compiled:
        """Return the table of a --policy value. Raise OverlapError."""
        if value not in self._policies:
            self._policies[value] = Compiled(value, self._environment)
        return self._policies[value]

    def check_for(self, policy: str, gpu: KnownGpu) -> None:
        """Raise OverlapError if a policy is not for a GPU, which is no answer to whether it would help there."""
        if self.compiled(policy).model_for(gpu):
            return
        fits, own = self.compiled(gpu.key).model_for(gpu), self.compiled(policy).only_gpu()
        hints = [f"`{fits.name}` is: --policy {fits.name}"] if fits else []
        hints += [f"{quote(policy)} is for {own}: --gpu {own} answers for that GPU"] if own else []
        sentence = f"{quote(policy)} is not for {gpu.name}: every launch is counted there and left alone"
        raise OverlapError(sentence, "; ".join(hints) or None, USAGE)


@functools.cache
def gpu_called(name: str) -> KnownGpu:
    """Return a GPU by any of its names: h100 as every command takes it. Raise Mistake if no GPU has the name."""
    try:
        return gpus.named(name)
    except OverlapError as error:
        raise Mistake("gpu", error.sentence, error.hint or "") from error


def _decided(request: Request, case: Case, compiled: Compiled | None, rule: PolicyRule | None) -> Answer:
    """Return what the library itself would decide about this launch under this policy."""
    names = request.kernel or "", request.library or ""
    policy = compiled.index_for(case.gpu) if compiled else 0
    if planner.is_communication(names[0]) or (
        compiled and policy is not None and compiled.is_communication(policy, *names)
    ):
        case = case._replace(communicates=True)
    table, index = compiled.data if compiled else table_of(case.rule), NONE if policy is None else policy
    control, reason, size, at = planner.decide(table, index, case, names)
    if compiled:
        rule, asked = None, Rule(0, 0, case.rule.keep)
        if at is not None and policy is not None:
            rule = compiled.rule(policy, at)
            asked = rule.asked
        case = case._replace(rule=asked)
    plan = planner.plan(case)
    blocks = plan.native_blocks if size == case.block.dynamic else case.resident(size)
    answer = _answer(request, case, plan, (control, reason, size, blocks), rule)
    if reason == "one_wave":
        # A larger grid may be refused for another reason, or meet another rule.
        grid = plan.native_blocks * case.gpu.multiprocessors + 1
        larger = case._replace(grid=grid)
        if planner.decide(table, index, larger, names)[0] not in RESIZES:
            answer = answer._replace(help=None)
    return answer


def _answer(
    request: Request,
    case: Case,
    plan: Plan,
    decided: tuple[str, str, int, int],
    rule: PolicyRule | None,
) -> Answer:
    control, reason, size, blocks = decided
    # A size beyond 32 bits was cut for the library, which then leaves the launch alone.
    dynamic = request.asked if size == request.computation.dynamic else size
    decision = Decision(control, reason, dynamic, blocks)
    return Answer(request, case, plan, decision, rule, refusal(case, plan, control, reason))


# ---- the block of communication that computation is planned beside, where the options give none ----

# What a block of a collective takes as its library launches it if nobody set a variable: in the binaries of NCCL 2.32.3
# and of RCCL in ROCm 7.2.4, and in NCCL's source (the threads of a ring, 16 barriers, 82,240 dynamic bytes).
_NCCL, _RCCL = "NCCL 2.32.3", "RCCL 7.2.4"
_STATIC = {False: 14144, True: 36800}  # of NCCL: from sm_90 on?
_UNROLLED = {"gfx90a": (4, 360, 106), "gfx942": (2, 320, 108)}  # of RCCL: how often, registers, scalar registers


class Block(NamedTuple):
    """One block of communication."""

    name: str  # where its numbers come from
    takes: Footprint


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


# ---- what would change a refusal: the first setting with which the planner, asked again, answers otherwise ----


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
