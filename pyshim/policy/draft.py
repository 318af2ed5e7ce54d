"""What one policy file says by itself, and what it says together with the policy that it extends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyshim.policy.key import entries, made
from pyshim.policy.model import Policy


@dataclass(frozen=True)
class Draft:
    """A policy while it is read. said: the fields in the file, but for its rules."""

    policy: Policy
    said: frozenset[str]


def extended(own: Draft, base: Draft) -> Draft:
    """Put a policy over the one that it extends: its rules come first, its values win, variables and lists add up."""
    fields: dict[str, object] = dict(vars(own.policy))
    for key in entries(Policy):
        if key.field in base.said:
            value = getattr(base.policy, key.field)
            mine = getattr(own.policy, key.field)
            fields[key.field] = key.kind.extended(mine, value) if key.field in own.said else value
    fields["rules"] = own.policy.rules + tuple(replace(rule, depth=rule.depth + 1) for rule in base.policy.rules)
    return Draft(made(Policy, fields), own.said | base.said)
