"""Policies -> the bytes that the preloaded library reads, exactly as shim/overlap_abi.h lays them out."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy import kernels
from pyshim.policy.key import Packed, packed
from pyshim.policy.kinds import member
from pyshim.policy.layout import Undecided
from pyshim.policy.model import Policy
from pyshim.policy.rule import Match, Rule
from pyshim.policy.words import KNOWN_DISPATCHES, Range

_FIRST = ("name", "hash", "gpus", "kernels", "libraries", "stream_creators", "families", "fixed_size")


def compile_table(policies: Sequence[Policy]) -> bytes:
    """The table of these policies. Raises OverlapError where they do not fit into one."""
    return _build(policies, [fingerprint(policy) for policy in policies])


def fingerprint(policy: Policy) -> str:
    """16 hexadecimal digits that identify what the policy compiles to, wherever its rules stand in the file, and the
    variables that it sets."""
    variables = repr([sorted(policy.environment.items()), sorted(policy.all_ranks_environment.items())])
    return hashlib.sha256(_build([policy], [""], lines=False) + variables.encode()).hexdigest()[:16]


def undecided(policies: Sequence[Policy], table: bytes) -> tuple[Undecided, ...]:
    """Those that say `dispatch: unknown`. table: that of the policies."""
    ffi = _native.ffi
    start = ffi.cast("uint8_t *", ffi.from_buffer(table))
    head = ffi.cast("struct overlap_table *", start)
    first = ffi.sizeof("struct overlap_table")
    packed = ffi.cast("struct overlap_policy *", start + first)
    strings = head.size - head.string_size
    at = first + ffi.offsetof("struct overlap_policy", "dispatch")
    return tuple(
        Undecided(
            index,
            policy.gpus,
            at + index * ffi.sizeof("struct overlap_policy"),
            strings + packed[index].hash,
            {
                rule: (member("dispatch", rule), fingerprint(replace(policy, dispatch=rule)))
                for rule in KNOWN_DISPATCHES
            },
        )
        for index, policy in enumerate(policies)
        if policy.dispatch == "unknown"
    )


def encode(table: bytes) -> str:
    """For the environment."""
    return base64.b64encode(table).decode("ascii")


def decode(text: str) -> bytes:
    """The inverse of encode. Raises OverlapError where the text is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise OverlapError(f"the policy table is not base64: {error}") from error


@dataclass
class _Sections:
    """The growing end of a table: patterns point into strings, policies and rules point at patterns."""

    patterns: list[int] = field(default_factory=list)
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))  # offset 0: the empty string
    offsets: dict[str, int] = field(default_factory=lambda: {"": 0})
    spans: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)

    def string(self, text: str) -> int:
        if text not in self.offsets:
            self.offsets[text] = len(self.strings)
            self.strings += text.encode("utf-8") + b"\0"
        return self.offsets[text]

    def span(self, texts: Iterable[str]) -> tuple[int, int]:
        wanted = tuple(texts)
        if wanted not in self.spans:
            self.spans[wanted] = (len(self.patterns), len(wanted))
            self.patterns += [self.string(text) for text in wanted]
        return self.spans[wanted]


def _build(policies: Sequence[Policy], hashes: Sequence[str], lines: bool = True) -> bytes:
    constants = _native.header()
    ffi = _native.ffi
    sections = _Sections()
    rules_of = [guarded(policy.rules) for policy in policies]
    rules = [rule for own in rules_of for rule in own]
    head: Any = ffi.new("struct overlap_table *")
    packed_policies = ffi.new("struct overlap_policy[]", len(policies))
    packed_rules = ffi.new("struct overlap_rule[]", len(rules))
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
    patterns = ffi.new("uint32_t[]", sections.patterns)
    body = b"".join(bytes(ffi.buffer(part)) for part in (packed_policies, packed_rules, patterns))
    body += bytes(sections.strings)
    size = ffi.sizeof("struct overlap_table") + len(body)
    limit = constants.OVERLAP_TABLE_MAX_SIZE
    if size > limit:
        raise OverlapError(
            f"the policy compiles to {size:,} bytes, and the table that travels in the environment holds {limit:,}",
            "merge rules that have the same shape: a rule may list several kernels",
        )
    head.magic = constants.OVERLAP_TABLE_MAGIC
    head.version = constants.OVERLAP_ABI_VERSION
    head.size = size
    head.checksum = zlib.crc32(body)
    head.policy_count = len(policies)
    head.rule_count = len(rules)
    head.pattern_count = len(sections.patterns)
    head.string_size = len(sections.strings)
    return bytes(ffi.buffer(head)) + body


def _place(rule: Rule) -> int:
    """Return the line, and above its bits which of the files that the policy extends has it: _native.line_of()."""
    bits: int = _native.header().OVERLAP_LINE_BITS
    return rule.line | min(rule.depth, 255) << bits


def guarded(rules: Sequence[Rule]) -> list[Rule]:
    """The rules, and before the first one that shapes a set of kernels the one that spares what only looks like it."""
    first = next((i for i, rule in enumerate(rules) if rule.match.sets and rule.shape.kind != "leave"), None)
    if first is None:
        return list(rules)
    at = rules[first]
    guard = Rule(Match(kernels=kernels.FUSED), when="always", line=at.line, depth=at.depth, guard=True)
    return [*rules[:first], guard, *rules[first:]]


def _structure(fields: Mapping[str, Packed], sections: _Sections) -> dict[str, object]:
    """Texts and patterns go into the sections in this order, of which fingerprints depend."""
    first = [name for name in _FIRST if name in fields]
    return {name: _value(fields[name], sections) for name in (*first, *(name for name in fields if name not in first))}


def _value(value: Packed, sections: _Sections) -> object:
    if isinstance(value, str):
        return sections.string(value)
    if isinstance(value, tuple):
        return sections.span(value)
    return (value.minimum, value.maximum) if isinstance(value, Range) else value
