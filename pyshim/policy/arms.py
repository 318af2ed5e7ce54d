"""The arms of a trial beside their policy: what they may not say, and what they take from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyshim.policy import gpus
from pyshim.policy.finding import quote
from pyshim.policy.key import entries
from pyshim.policy.model import Policy
from pyshim.policy.values import Bad

_COUNTED = "what a trial counts must be the same under every arm"
_CREATED = "it acts when a stream is created"
_STARTED = "it acts when the program starts"
# Fields in which arms cannot differ.
_SHARED = {
    "kernels": _COUNTED,
    "libraries": _COUNTED,
    "stream_creators": _CREATED,
    "stream_priority": _CREATED,
    "reserve_cus": _CREATED,
    "environment": _STARTED,
    "all_ranks_environment": _STARTED,
}
_PATHS = {key.field: key.path for key in entries(Policy)}


def arms_of(policy: Policy) -> list[Policy]:
    """Return the arms of a policy as the library gets them: what they cannot differ in is that of the policy."""
    shared: dict[str, Any] = {field: getattr(policy, field) for field in _SHARED}
    return [replace(arm.policy, **shared) for arm in policy.trial.arms] if policy.trial else []


def flat(policies: Sequence[Policy]) -> list[Policy]:
    """Return the policies of a table, in its order: those of a --policy value, then all arms."""
    return [*policies, *(arm for policy in policies for arm in arms_of(policy))]


def mistakes(policy: Policy) -> Iterator[tuple[int, Bad]]:
    """Yield what is wrong with the arms of a policy, and with which of them; of each arm the first mistake."""
    before = [policy]
    for index, (arm, compiled) in enumerate(zip(policy.trial.arms if policy.trial else (), arms_of(policy))):
        found = _mistake(arm.policy, policy) or _twin(compiled, before)
        if found:
            yield index, found
        else:
            before.append(compiled)


def _mistake(arm: Policy, policy: Policy) -> Bad | None:
    named = quote(arm.name)
    if arm.trial:
        return Bad("trial", f"the arm {named} has a trial itself", "name its arms here instead")
    for field, why in _SHARED.items():
        said = getattr(arm, field)
        if said != getattr(Policy(), field) and said != getattr(policy, field):
            sentence = f"the arm {named} has its own `{_PATHS[field]}`, in which arms cannot differ: {why}"
            return Bad("trial", sentence, f"leave it out of {named}; what this policy says holds for all arms")
    if gpus.apart(arm.gpus, policy.gpus):
        return Bad("trial", f"the arm {named} is for no GPU of this policy", "leave it out, or widen one `gpu`")
    return None


def _twin(arm: Policy, others: Sequence[Policy]) -> Bad | None:
    """Compare an arm with the policy, which comes first, and with the arms before it."""
    named = quote(arm.name)
    for other in others:
        like = "this policy" if other is others[0] else f"the arm {quote(other.name)}"
        if arm.name == other.name:
            sentence = f"an arm is called {named}, like {'this policy' if other is others[0] else 'another arm'}"
            return Bad("trial", sentence, "leave it out, or give it another `name`: reports name arms")
        if _acts(arm) == _acts(other) and (other is others[0] or arm.gpus == other.gpus):
            return Bad("trial", f"the arm {named} does the same as {like}: nothing to compare", "leave it out")
    return None


def _acts(policy: Policy) -> Policy:
    """Return what a policy does on a GPU that it is for."""
    rules = tuple(replace(rule, line=0) for rule in policy.rules)
    return replace(policy, name="", gpus=(), trial=None, rules=rules)
