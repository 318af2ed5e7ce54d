"""What one policy file says by itself, and what it says together with the policy that it extends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyshim.policy.footprint import MEASURED
from pyshim.policy.key import entries, made
from pyshim.policy.model import Policy
from pyshim.policy.rule import Rule
from pyshim.policy.words import When


@dataclass(frozen=True)
class Draft:
    """A policy while it is read. said: the fields in the file. rules: each, and whether it has its own `when`."""

    policy: Policy
    said: frozenset[str]
    when: When | None = None
    rules: tuple[tuple[Rule, bool], ...] = ()


def extended(own: Draft, base: Draft) -> Draft:
    """Put a policy over the one that it extends: its rules come first, its values win, variables and lists add up."""
    fields: dict[str, object] = dict(vars(own.policy))
    for key in entries(Policy):
        if key.field in base.said:
            value = getattr(base.policy, key.field)
            mine = getattr(own.policy, key.field)
            fields[key.field] = key.kind.extended(mine, value) if key.field in own.said else value
    return Draft(
        made(Policy, fields),
        own.said | base.said,
        own.when or base.when,
        own.rules + tuple((replace(rule, depth=rule.depth + 1), when) for rule, when in base.rules),
    )


def resolved(draft: Draft) -> Policy:
    """Return the policy with every default filled in."""
    when = draft.when or "overlapping"
    return replace(
        draft.policy,
        footprint=None if draft.policy.footprint == MEASURED else draft.policy.footprint,
        rules=tuple(rule if own else replace(rule, when=when) for rule, own in draft.rules),
    )
