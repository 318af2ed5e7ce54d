"""Walks YAML nodes and gathers findings with their positions; knows nothing of policies."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import yaml

from pyshim.policy.finding import Finding, Severity, closest, did_you_mean, quote
from pyshim.policy.values import Bad

Value = TypeVar("Value")

_CORE = "tag:yaml.org,2002:"
# What YAML 1.1 makes of an untagged scalar (`on`, `1e3`, `2024-01-01`); all of it is text to us.
_PLAIN_TAGS = {_CORE + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")}
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class Keys:
    """The keys of one mapping."""

    known: tuple[str, ...]
    required: tuple[str, ...] = ()


class Walker:
    """Each method returns what the node says, or None after it has noted what is wrong."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._told: set[Finding] = set()

    def note(self, node: yaml.Node, code: str, sentence: str, hint: str = "", severity: Severity = "error") -> None:
        mark, end = node.start_mark, node.end_mark
        length = end.column - mark.column if end.line == mark.line else 1
        finding = Finding(code, sentence, mark.line + 1, mark.column + 1, hint, severity, max(1, length))
        # An alias leads to the same node again, and one mistake is told once.
        if finding not in self._told:
            self._told.add(finding)
            self.findings.append(finding)

    def mapping(self, node: yaml.Node, what: str, keys: Keys) -> dict[str, yaml.Node] | None:
        """The values by key: known keys only, the first of each."""
        if not isinstance(node, yaml.MappingNode):
            hint = f"its keys are: {', '.join(keys.known)}"
            self.note(node, "type", f"{what} must be a mapping of keys to values, not {_kind(node)}", hint)
            return None
        if not self._tag_ok(node):
            return None
        found: dict[str, yaml.Node] = {}
        first: dict[str, int] = {}
        typos: set[str] = set()
        unread = False
        for key_node, value in node.value:
            key = self._key(key_node)
            if key is None:
                unread = True
                continue
            line = key_node.start_mark.line + 1
            if key in first:
                hint = f"the first is on line {first[key]}"
                self.note(key_node, "duplicate-key", f"`{key}` stands here for the second time", hint)
            elif key in keys.known:
                found[key] = value
            else:
                typos.add(closest(key, keys.known))
                hint = did_you_mean(key, keys.known) or f"{what} has: {', '.join(keys.known)}"
                self.note(key_node, "unknown-key", f"unknown key {quote(key)}", hint)
            if key in keys.known:
                first.setdefault(key, line)
        for key in keys.required:
            # A key that was misspelt, or could not be read, has been told already.
            if key not in first and key not in typos and not unread:
                self.note(_first(node), "missing-key", f"{what} has no `{key}`", f"add `{key}: ...`")
        return found

    def pairs(self, node: yaml.Node, what: str, hint: str) -> list[tuple[yaml.Node, str, yaml.Node]] | None:
        """The keys of a mapping that may be any word, each once: where it stands, the word, the value."""
        if not isinstance(node, yaml.MappingNode):
            self.note(node, "type", f"{what} must be a mapping of keys to values, not {_kind(node)}", hint)
            return None
        if not self._tag_ok(node):
            return None
        first: dict[str, int] = {}
        found = []
        for key_node, value in node.value:
            key = self._key(key_node)
            if key is None:
                continue
            if key in first:
                hint = f"the first is on line {first[key]}"
                self.note(key_node, "duplicate-key", f"{quote(key)} stands here for the second time", hint)
                continue
            first[key] = key_node.start_mark.line + 1
            found.append((key_node, key, value))
        return found

    def items(self, node: yaml.Node, what: str, hint: str = "") -> list[yaml.Node] | None:
        """The elements of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.note(node, "type", f"{what} must be a list, not {_kind(node)}", hint)
            return None
        return list(node.value) if self._tag_ok(node) else None

    def scalar(self, node: yaml.Node, what: str) -> str | None:
        """The text of a single value."""
        if not isinstance(node, yaml.ScalarNode):
            self.note(node, "type", f"{what} must be a single value, not {_kind(node)}")
            return None
        if not self._tag_ok(node):
            return None
        text: str = node.value
        if node.style is None and text in _NULLS:
            self.note(node, "type", f"{what} has no value")
            return None
        if not text:
            self.note(node, "type", f"{what} is empty")
            return None
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
            self.note(node, "type", f"{what} holds a character that cannot be printed")
            return None
        return text

    def value(self, node: yaml.Node, what: str, parse: Callable[[str], Value]) -> Value | None:
        """A single value, through one of the functions of values.py."""
        text = self.scalar(node, what)
        return None if text is None else self.attempt(node, lambda: parse(text))

    def values(self, node: yaml.Node, what: str, parse: Callable[[str], Value]) -> tuple[Value, ...] | None:
        """A single value or a list of them; None if any is wrong."""
        if isinstance(node, yaml.SequenceNode):
            nodes = self.items(node, what)
            if nodes == []:
                self.note(node, "type", f"{what} is an empty list", "leave the key out")
                return None
        elif isinstance(node, yaml.MappingNode):
            self.note(node, "type", f"{what} must be a value or a list of values, not {_kind(node)}")
            return None
        else:
            nodes = [node]
        if nodes is None:
            return None
        parsed = [self.value(item, what, parse) for item in nodes]
        good = tuple(value for value in parsed if value is not None)
        return good if len(good) == len(parsed) else None

    def attempt(self, node: yaml.Node, act: Callable[[], Value]) -> Value | None:
        try:
            return act()
        except Bad as bad:
            self.note(node, bad.code, bad.sentence, bad.hint)
            return None

    def _key(self, node: yaml.Node) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == _CORE + "merge":
            hint = "write the keys out, or alias a whole value"
            self.note(node, "merge-key", "the merge key `<<` is not used in policies", hint)
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.note(node, "type", f"a key must be a word, not {_kind(node)}")
            return None
        return str(node.value) if self._tag_ok(node) else None

    def _tag_ok(self, node: yaml.Node) -> bool:
        if isinstance(node, yaml.ScalarNode):
            usual = node.tag in _PLAIN_TAGS
        else:
            usual = node.tag == _CORE + ("map" if isinstance(node, yaml.MappingNode) else "seq")
        if usual:
            return True
        tag = quote(node.tag.replace(_CORE, "!!"))
        self.note(node, "tag", f"the tag {tag} is not used in policies", "leave it out")
        return False


def has_error(findings: Sequence[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _first(node: yaml.MappingNode) -> yaml.Node:
    """Where a mapping is pointed at: its first key, as the whole may go over many lines."""
    key: yaml.Node = node.value[0][0] if node.value else node
    return key


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULLS:
        return "nothing"
    return f"the value {quote(str(node.value))}"


Nodes = Mapping[str, yaml.Node]
