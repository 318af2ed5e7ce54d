"""One request -> what would be done, with which number, and why. All arithmetic is the library's."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.explain import advice, planner
from pyshim.explain.planner import MANY, NONE, RESIZES, Case, Decision, Footprint, Plan, Rule, Window
from pyshim.explain.policies import Compiled, PolicyRule, own_rule, table_of
from pyshim.explain.request import COMMUNICATION, NEEDED, Mistake, Request, read
from pyshim.policy import gpus
from pyshim.policy.finding import quote
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.model import Policy, RaiseKind

_NEEDED = NEEDED + COMMUNICATION


class Found(NamedTuple):
    """The rule of a policy that decided. Both are indices."""

    compiled: Compiled
    policy: int
    rule: int


class Answer(NamedTuple):
    """What would be done with one launch. plan: what the planner finds under the rule that decided."""

    request: Request  # with its GPU
    case: Case
    plan: Plan
    decision: Decision
    rule: PolicyRule | None
    help: str | None
    found: Found | None = None

    @property
    def acts(self) -> bool:
        """Whether a rule shapes the launch."""
        return self.rule is not None and self.rule.shape != "leave"

    @property
    def outside(self) -> str | None:
        """The reason outside overlap windows; None if it is the same."""
        shapes = self.decision.control in RESIZES and self.rule is not None and self.rule.when == "overlapping"
        return "not_overlapping" if shapes else None

    def as_json(self) -> dict[str, object]:
        """Return the answer as --json prints it."""
        plan, decision = self.plan, self.decision
        return {
            "gpu": (self.request.gpu or "").lower(),
            "native_blocks": plan.native_blocks,
            "limit": plan.native_limit,
            "windows": _windows(plan.windows),
            "beside_after_drain": plan.beside_after_drain,
            "binding": plan.binding,
            "control": decision.control,
            "dynamic_shared_memory": decision.dynamic,
            "blocks": decision.blocks,
            "reason": decision.reason,
            "rule": self.rule and self.rule.json,
            "help": self.help,
        }


class Resident(NamedTuple):
    """One block, how many of it a multiprocessor holds, and what stops one more."""

    block: Footprint
    blocks: int
    limit: str | None


class Warps(NamedTuple):
    """Resident on a multiprocessor."""

    as_asked: int
    as_decided: int
    most: int


@dataclass(frozen=True)
class Explanation:
    """An answer with all that one screen says of it."""

    answer: Answer
    raises: object  # `streams: {raise: ...}`, as the policy says it; None without one
    computation: Resident
    communication: Resident
    warps: Warps


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
        case = planner.case_of(gpu, request.computation, request.communication, rule.asked, grid)
        if compiled is None:
            is_plain = request.blocks is None and request.kernel is None
            if is_plain or planner.occupancy(gpu, case.block)[0] == 0:
                plan = planner.plan(case)
                return _answer(request, case, plan, (plan.control, plan.reason, plan.dynamic, plan.blocks), rule)
        return _decided(request, case, compiled, rule)

    def explain(self, answer: Answer) -> Explanation:
        """Return an answer with what else its screen says."""
        case = answer.case
        model = self.model_for(answer.request.policy, case.gpu)
        computation = Resident(case.block, *planner.occupancy(case.gpu, case.block))
        communication = Resident(case.communication, *planner.occupancy(case.gpu, case.communication))
        warp = planner.struct(case.gpu).warp_size
        each, most = -(-case.block.threads // warp), case.gpu.threads // warp
        warps = Warps(answer.plan.native_blocks * each, answer.decision.blocks * each, most)
        raises = RaiseKind().shown(model.raise_share) if model else None
        return Explanation(answer, raises, computation, communication, warps)

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

    def model_for(self, policy: str | None, gpu: KnownGpu) -> Policy | None:
        """Return what a --policy value says about a GPU; None if it is not for the GPU."""
        return None if policy is None else self.compiled(policy).model_for(gpu)

    def check_for(self, policy: str, gpu: KnownGpu) -> None:
        """Raise OverlapError if a policy is not for a GPU, which is no answer to whether it would help there."""
        if self.model_for(policy, gpu):
            return
        fits, own = self.model_for(gpu.key, gpu), self.compiled(policy).only_gpu()
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
        case = planner.case_of(*case[:5], communicates=True)
    table, index = compiled.data if compiled else table_of(case.rule), NONE if policy is None else policy
    control, reason, size, at = planner.decide(table, index, case, names)
    found = None
    if compiled:
        rule, asked = None, Rule(0, 0, case.rule.keep)
        if at is not None and policy is not None:
            found, rule = Found(compiled, policy, at), compiled.rule(policy, at)
            asked = rule.asked
        case = case._replace(rule=asked)
    plan = planner.plan(case)
    blocks = plan.native_blocks if size == case.block.dynamic else case.resident(size)
    answer = _answer(request, case, plan, (control, reason, size, blocks), rule, found)
    if reason == "one_wave":
        # A larger grid may be refused for another reason, or meet another rule.
        grid = plan.native_blocks * case.gpu.multiprocessors + 1
        larger = planner.case_of(*case[:4], grid)
        if planner.decide(table, index, larger, names)[0] not in RESIZES:
            answer = answer._replace(help=None)
    return answer


def _answer(
    request: Request,
    case: Case,
    plan: Plan,
    decided: tuple[str, str, int, int],
    rule: PolicyRule | None,
    found: Found | None = None,
) -> Answer:
    control, reason, size, blocks = decided
    # A size beyond 32 bits was cut for the library, which then leaves the launch alone.
    dynamic = request.asked if size == request.computation.dynamic else size
    decision = Decision(control, reason, dynamic, blocks, plan.native_blocks)
    return Answer(request, case, plan, decision, rule, advice.refusal(case, plan, control, reason), found)


def _windows(windows: Iterable[Window]) -> list[dict[str, object]]:
    return [{"blocks": k, "minimum": low, "maximum": high, "inflates": more} for k, low, high, more in windows]
