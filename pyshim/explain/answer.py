"""One request -> what would be done, with which number, and why. All arithmetic is the library's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain import planner
from pyshim.explain.planner import MANY, NONE, RESIZES, Case, Decision, Footprint, Plan, Rule, member
from pyshim.explain.request import COMMUNICATION, NEEDED, Mistake, Request, Shape, parse, read, written
from pyshim.launch.policies import index_for
from pyshim.policy import gpus, library
from pyshim.policy import model as policy_model
from pyshim.policy.finding import quote
from pyshim.policy.gpus import NVIDIA, KnownGpu
from pyshim.policy.layout import Sections, View, assemble
from pyshim.policy.model import Policy
from pyshim.policy.table import compile_table, guarded
from pyshim.policy.values import UNLIMITED
from pyshim.stats.page import sentences
from pyshim.traces.names import plain

_NEEDED = NEEDED + COMMUNICATION


class Answer(NamedTuple):
    """What would be done with one launch. plan: what the planner finds under the rule that decided."""

    request: Request  # with its GPU
    case: Case
    plan: Plan
    decision: Decision
    rule: PolicyRule | None
    help: str | None

    @property
    def residents(self) -> list[tuple[Footprint, int, str | None]]:
        """A block of computation and one of communication, how many a multiprocessor holds, what stops one more."""
        return [(block, *planner.occupancy(self.case.gpu, block)) for block in self.case[1:3]]

    @property
    def resizes(self) -> bool:
        """Whether the dynamic size is changed."""
        return self.decision.control in RESIZES

    @property
    def because(self) -> str:
        """What a user reads in a report under the reason."""
        return sentences()[self.decision.reason]

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

    def answer(self, request: Mapping[str, str]) -> dict[str, object]:
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


# ---- policies as the library reads them: from a --policy value to the rule that decides a launch ----


@dataclass(frozen=True)
class PolicyRule:
    """A rule in the words of the policy language. None: it stands in no policy."""

    asked: Rule
    policy: str | None
    line: int | None
    shape: str
    when: str = "always"
    place: str | None = None  # FILE:LINE

    @property
    def json(self) -> dict[str, object]:
        """What every answer says of the rule."""
        kept = {"keep_at_least": self.asked.keep, "when": self.when}
        return {"policy": self.policy, "line": self.line, "shape": self.shape, **kept}


def own_rule(shape: Shape | None, keep: int | None) -> PolicyRule:
    """Return the rule of a request without a policy, make_room by default. keep: keep_at_least, percent."""
    kind, value, text, default = shape or parse("make_room")
    return PolicyRule(Rule(kind, value, default if keep is None else keep), None, None, text)


class Compiled:
    """The table of a --policy value, as overlap-run would make it here.

    Raises OverlapError if a policy is missing or wrong.
    """

    def __init__(self, value: str, environment: Mapping[str, str]) -> None:
        self.models = tuple(library.load(value, environment))
        self.data = compile_table(self.models)
        self._written = [rule for model in self.models for rule in guarded(model.rules)]
        self._view = View(self.data)

    def index_for(self, gpu: KnownGpu) -> int | None:
        """Return the index of the policy that is for a GPU; None if no policy is."""
        return index_for(self.data, gpu.name, gpu.architecture)

    def model_for(self, gpu: KnownGpu) -> Policy | None:
        """Return the policy that is for a GPU."""
        index = self.index_for(gpu)
        return None if index is None else self.models[index]

    def only_gpu(self) -> str | None:
        """Return the key of the GPU that the policies are for; None if they are for several known GPUs, or for none."""
        found = {gpu.key for model in self.models for gpu in gpus.matching(model.gpus)}
        return found.pop() if len(found) == 1 else None

    def rule(self, policy: int, index: int) -> PolicyRule:
        """Return a rule of one of the policies. index: in the table."""
        rule, text = self._view.rules[index], self._written[index]
        return PolicyRule(
            Rule(rule.shape, rule.value, rule.keep_at_least),
            self._view.text(self._view.policies[policy].name),
            _native.line_of(rule.line)[0],
            written(rule.shape, rule.value),
            "always" if rule.when == member("WHEN", "always") else "overlapping",
            place(text),
        )

    def is_communication(self, policy: int, kernel: str, caller: str) -> bool:
        """Whether the policy itself declares a launch to be communication."""
        own, matches = self._view.policies[policy], self._view.matches
        names = (planner.encoded(kernel), planner.encoded(plain(kernel)))
        by_library = bool(caller) and matches(own.libraries, planner.encoded(caller))
        return by_library or any(matches(own.kernels, name) for name in names)


def table_of(rule: Rule) -> bytes:
    """Return the table of one policy with one rule, for every launch at any time."""
    everything = dict.fromkeys(("threads", "waves_percent", "resident_blocks"), (0, UNLIMITED))
    shaped = {"shape": rule.shape, "value": rule.value, "keep_at_least": rule.keep, "when": member("WHEN", "always")}
    return assemble([{"rule_count": 1}], [{**everything, **shaped}], Sections())


def place(rule: policy_model.Rule) -> str | None:
    """Return FILE:LINE of a rule, the file's name alone for a shipped policy; None if the rule stands in no file."""
    if not rule.file:
        return None
    path = Path(rule.file)
    file = path.name if path.parent == library.shipped_directory() else rule.file
    return f"{file}:{rule.line}"
