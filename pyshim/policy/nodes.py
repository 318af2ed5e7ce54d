"""Walks YAML nodes and gathers findings with their positions; knows nothing of policies."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from pyshim.policy.finding import Finding, Severity, closest, quote
from pyshim.policy.values import Bad

Value = TypeVar("Value")
# How alike a key that was misspelt is to the one that was meant, for its value to be read as that one's.
_SURELY = 0.7
# What keys of policies are called elsewhere.
_WORDS = {"rules": "compute", "rule": "compute", "computation": "compute"}

_CORE = "tag:yaml.org,2002:"
# What YAML 1.1 makes of an untagged scalar (`on`, `1e3`, `2024-01-01`); all of it is text to us.
_PLAIN_TAGS = {_CORE + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")}
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class Keys:
    """The keys of one mapping."""

    known: tuple[str, ...]
    required: tuple[str, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)  # key -> the one value that it may have
    gone: Mapping[str, str] = field(default_factory=dict)  # key of an earlier version -> what to write instead


class Nodes(dict[str, yaml.Node]):
    """The values of a mapping by key. clean: no key of it was wrong, so what is missing was never written."""

    clean = True


# Where a key stands, its text, its value.
Pair = tuple[yaml.Node, str, yaml.Node]


@dataclass
class Pairs:
    all: list[Pair]
    clean: bool = True  # every key could be read, and stood there once


class Walker:
    """Each method returns what the node says, or None after it has noted what is wrong."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.paths: dict[str, str] = {}  # of the keys of mappings inside, by name: what may have been meant
        self._told: set[Finding] = set()

    def note(self, node: yaml.Node, code: str, sentence: str, hint: str = "", severity: Severity = "error") -> None:
        mark = node.start_mark
        finding = Finding(code, sentence, mark.line + 1, mark.column + 1, hint, severity, max(1, _width(node)))
        # An alias or a merge leads to the same node again, and one mistake is told once.
        if finding not in self._told:
            self._told.add(finding)
            self.findings.append(finding)

    def mapping(self, node: yaml.Node, what: str, keys: Keys) -> Nodes | None:
        """Return the values by key: known keys only, the first of each."""
        pairs = self.pairs(node, what, f"its keys are: {', '.join(keys.known)}")
        if pairs is None:
            return None
        texts = [text for _, text, _ in pairs.all]
        found = Nodes((text, value) for _, text, value in pairs.all if text in keys.known)
        found.clean = pairs.clean and len(found) == len(pairs.all)
        absent = [key for key in keys.known if key not in texts]
        meant: set[str] = set()
        for key_node, text, value in pairs.all:
            if text in keys.known:
                continue
            if text in keys.gone:
                meant.add("")
                self.note(key_node, "unknown-key", f"{what} has no key {quote(text)} any more", keys.gone[text])
                continue
            # One that is not there yet is meant sooner than one that is.
            near = closest(text, absent) or closest(text, keys.known)
            meant.add(near)
            if near in absent and closest(text, [near], _SURELY):
                found.setdefault(near, value)  # so that its mistakes are told in the same run
            guess = f"`{near}`" if near else _elsewhere(text, self.paths)
            hint = f"did you mean {guess}?" if guess else f"{what} has: {', '.join(keys.known)}"
            self.note(key_node, "unknown-key", f"unknown key {quote(text)}", hint)
        for key in keys.required:
            # A key that was misspelt, or could not be read, or that nobody can guess, has been told already.
            if key not in texts and key not in meant and "" not in meant and pairs.clean:
                self.note(
                    _first(node), "missing-key", f"{what} has no `{key}`", f"add `{key}: {keys.only.get(key, '...')}`"
                )
        return found

    def pairs(self, node: yaml.Node, what: str, hint: str) -> Pairs | None:
        """Return the keys of a mapping, each once; merged keys come after its own."""
        if not isinstance(node, yaml.MappingNode):
            self.note(node, "type", f"{what} must be a mapping of keys to values, not {_kind(node)}", hint)
            return None
        return self._pairs(node) if self._tag_ok(node) else None

    def _pairs(self, node: yaml.MappingNode) -> Pairs:
        found = Pairs([])
        merged: list[Pair] = []
        first: dict[str, int] = {}
        for key_node, value in node.value:
            key = self._key(key_node)
            if key is None:
                found.clean = False
                continue
            line = key_node.start_mark.line + 1
            if key in first:
                where = "earlier on this line" if first[key] == line else f"already on line {first[key]}"
                self.note(key_node, "duplicate-key", f"{quote(key)} stands {where}", "keep one of them")
                found.clean = False
                continue
            first[key] = line
            if _is_merge(key_node):
                merged += self._merged(value, found)
            else:
                found.all.append((key_node, key, value))
        for pair in merged:
            if pair[1] not in first:
                first[pair[1]] = 0
                found.all.append(pair)
        return found

    def _merged(self, node: yaml.Node, into: Pairs) -> list[Pair]:
        """Return what `<<` brings, as YAML 1.1 has it: of several mappings an earlier one stands over a later one."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: list[Pair] = []
        for part in parts:
            if isinstance(part, yaml.MappingNode) and self._tag_ok(part):
                inner = self._pairs(part)
                into.clean &= inner.clean
                found += inner.all
            else:
                into.clean = False
                if not isinstance(part, yaml.MappingNode):
                    sentence = f"`<<` merges a mapping, or a list of them, not {_kind(part)}"
                    self.note(part, "merge-key", sentence, "write <<: *NAME, where &NAME stands before a mapping")
        return found

    def items(self, node: yaml.Node, what: str, hint: str = "") -> list[yaml.Node] | None:
        """Return the elements of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.note(node, "type", f"{what} must be a list, not {_kind(node)}", hint)
            return None
        return list(node.value) if self._tag_ok(node) else None

    def scalar(self, node: yaml.Node, what: str) -> str | None:
        """Return the text of a single value."""
        if not isinstance(node, yaml.ScalarNode):
            self.note(node, "type", f"{what} must be a single value, not {_kind(node)}", "write one word or number")
            return None
        if not self._tag_ok(node):
            return None
        text: str = node.value
        if node.style is None and text in _NULLS:
            self.note(node, "type", f"{what} has no value", "write one, or leave the key out")
            return None
        if not text:
            block = _header(node)
            if block:  # `waves: >2`, where 2 is an indentation to YAML
                sentence = f"YAML reads the `{block[0]}` of {quote(block)} as the start of a block of text"
                self.note(node, "yaml", sentence, f'write it in quotes: "{block}"')
            else:
                self.note(node, "type", f"{what} is empty", "write a value, or leave the key out")
            return None
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
            self.note(node, "type", f"{what} holds a character that cannot be printed", "write it without")
            return None
        return text

    def value(self, node: yaml.Node, what: str, parse: Callable[[str], Value]) -> Value | None:
        """Read a single value, through one of the functions of values.py."""
        text = self.scalar(node, what)
        return None if text is None else self.attempt(node, lambda: parse(text))

    def values(self, node: yaml.Node, what: str, parse: Callable[[str], Value]) -> tuple[Value, ...] | None:
        """Read a single value or a list of them; None if any is wrong."""
        if isinstance(node, yaml.SequenceNode):
            nodes = self.items(node, what)
            if nodes == []:
                self.note(node, "type", f"{what} is an empty list", "leave the key out")
                return None
        elif isinstance(node, yaml.MappingNode):
            sentence = f"{what} must be a value or a list of values, not {_kind(node)}"
            self.note(node, "type", sentence, "write one value, or several as [a, b]")
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
        if not isinstance(node, yaml.ScalarNode):
            self.note(node, "type", f"a key must be a word, not {_kind(node)}", "look for a bracket or `?` too many")
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


def _elsewhere(text: str, paths: Mapping[str, str]) -> str:
    """Return a key of another mapping that was probably meant, as it is written there, or the empty string."""
    path = _WORDS.get(text.casefold()) or paths.get(closest(text, paths, _SURELY))
    if not path or "." not in path:
        return f"`{path}`" if path else ""
    written = "..."
    for name in reversed(path.split(".")):
        written = f"{name[:-2]}: [{written}]" if name.endswith("[]") else f"{name}: {written}"
        written = f"{{{written}}}"
    return f"`{written[1:-1]}`"


def has_error(findings: Sequence[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _is_merge(node: yaml.Node) -> bool:
    return bool(node.tag == _CORE + "merge")


def _width(node: yaml.Node) -> int:
    """Characters of the node on the line where it begins."""
    line, column = node.start_mark.line, node.start_mark.column
    end = node.end_mark
    if end.line == line:
        return int(end.column - column)
    if isinstance(node, yaml.ScalarNode):
        text = str(end.buffer or "").rstrip("\0")[node.start_mark.pointer :]
        return len(text.splitlines()[0].rstrip()) if text else 1
    children = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else node.value
    on_it = [child for child in children if child.start_mark.line == line and child.start_mark.column >= column]
    # The bracket in which it begins, where nothing else stands there.
    return max((child.start_mark.column - column + _width(child) for child in on_it), default=1)


def _header(node: yaml.ScalarNode) -> str:
    """Return what stands on the first line of a block of text; the empty string for other scalars."""
    if node.style not in ("|", ">"):
        return ""
    text = str(node.start_mark.buffer or "").rstrip("\0")[node.start_mark.pointer :]
    return text.splitlines()[0].partition(" #")[0].strip()


def _first(node: yaml.Node) -> yaml.Node:
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
