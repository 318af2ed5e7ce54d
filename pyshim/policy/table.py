"""Policies -> the table that the preloaded library reads (struct overlap_table)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from pyshim import _native
from pyshim.policy.kernel_sets import FUSED
from pyshim.policy.kinds import Packed, packed
from pyshim.policy.layout import Record, Sections, assemble
from pyshim.policy.model import Match, Policy, Rule
from pyshim.policy.values import Range

_FIRST = ("name", "hash", "gpus", "kernels", "libraries", "stream_creators", "fixed_size")


def compile_table(policies: Sequence[Policy]) -> bytes:
    """Return the table of these policies. Raises OverlapError where they do not fit into one."""
    return _build(policies, [fingerprint(policy) for policy in policies])


def fingerprint(policy: Policy) -> str:
    """Return 16 hexadecimal digits that identify what a policy compiles to, wherever its rules stand in the file."""
    variables = repr(sorted(policy.environment.items()))
    return hashlib.sha256(_build([policy], [""], lines=False) + variables.encode()).hexdigest()[:16]


def _build(policies: Sequence[Policy], hashes: Sequence[str], lines: bool = True) -> bytes:
    sections = Sections()
    rules_of = [guarded(policy.rules) for policy in policies]
    packed_policies: list[Record] = [{} for _ in policies]
    packed_rules: list[Record] = [{} for own in rules_of for _ in own]
    first_rule = 0
    for index, policy in enumerate(policies):
        own = rules_of[index]
        packed_policies[index] = {
            **_structure({**packed(policy), "hash": hashes[index]}, sections),
            "first_rule": first_rule,
            "rule_count": len(own),
        }
        for offset, rule in enumerate(own):
            at = {"line": _place(rule) if lines else 0, "guard": int(rule.guard)}
            packed_rules[first_rule + offset] = _structure({**packed(rule), **at}, sections)
        first_rule += len(own)
    return assemble(packed_policies, packed_rules, sections)


def _place(rule: Rule) -> int:
    """Return the line, and above its bits which of the files that the policy extends has it: _native.line_of()."""
    bits: int = _native.header().OVERLAP_LINE_BITS
    return rule.line | min(rule.depth, 255) << bits


def guarded(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules; a rule that spares look-alikes stands before the first one that shapes a set of kernels."""
    first = next((i for i, rule in enumerate(rules) if rule.match.sets and rule.shape.kind != "leave"), None)
    if first is None:
        return list(rules)
    at = rules[first]
    guard = Rule(Match(kernels=FUSED), when="always", line=at.line, depth=at.depth, guard=True)
    return [*rules[:first], guard, *rules[first:]]


def _structure(fields: Mapping[str, Packed], sections: Sections) -> dict[str, object]:
    """Texts and patterns go into the sections in this order, of which fingerprints depend."""
    first = [name for name in _FIRST if name in fields]
    return {name: _value(fields[name], sections) for name in (*first, *(name for name in fields if name not in first))}


def _value(value: Packed, sections: Sections) -> object:
    if isinstance(value, str):
        return sections.string(value)
    if isinstance(value, tuple):
        return sections.span(value)
    return (value.minimum, value.maximum) if isinstance(value, Range) else value
