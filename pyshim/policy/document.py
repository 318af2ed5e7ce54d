"""Bytes -> the nodes of one YAML document -> values and findings with their positions; knows nothing of policies.

Nothing is constructed: a policy reads the text of each scalar itself, so `on` stays `on` and `1e3` stays `1e3`. What a
hostile file could do to a recursive reader (nesting, aliases that multiply or contain themselves) is refused here.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

import yaml

from pyshim.policy.finding import Finding, Severity, closest, quote
from pyshim.policy.values import Bad

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
MAX_NODES = 20_000  # after aliases are followed; as many rules and patterns as a policy may have are half as many
UTF_8 = "UTF-8"
# Byte order marks of what editors write besides; that of UTF-32 begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_BETWEEN = " \t\r\n,[]{}\x85\u2028\u2029"

_REFUSED = {
    "too-deep": "no policy is: look for brackets that are not closed",
    "too-large": "no policy does: is this the right file?",
    "alias": "write out what is meant",
}

Outcome = Union[yaml.Node, Finding]

# What PyYAML says -> what is said instead, and what to do. Else it is said as PyYAML says it.
_HINTS = {
    r"found character '\t'": ("a tab, where YAML takes spaces only", "indent with spaces"),
    **dict.fromkeys(
        ("expected chomping or indentation", "found character '>'", "expected a comment or a line break"),
        ("an unquoted `>` begins a block of text", 'write a comparison in quotes: ">=128"'),
    ),
    **dict.fromkeys(
        ("found undefined alias", "expected alphabetic or numeric character, but found"),
        ("an unquoted `*` begins an alias", 'write a pattern in quotes: "*gemm*"'),
    ),
}
_OPEN = {
    "found unexpected end of stream": ("this quote is not closed", "write another one behind the text"),
    "could not find expected ':'": ("this is no key with a value", "write `key: value`, with a space after the colon"),
    "expected ',' or ']'": ("this bracket is not closed", "write `]` behind the list"),
    "expected ',' or '}'": ("this bracket is not closed", "write `}` behind the mapping"),
}
_LOOK = "look at this line and the one above it: a quote, a bracket or a colon too many or too few"


def encoding(data: bytes) -> str:
    """Return the encoding that the byte order mark says."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), UTF_8)


def decode(data: bytes) -> str | Finding:
    """Return the text of a file, without a byte order mark."""
    if len(data) > MAX_BYTES:
        return Finding("too-large", "the file is larger than 1 MiB, and no policy is", hint="is this the right file?")
    name = encoding(data)
    if name != UTF_8:
        return Finding("encoding", f"the file is {name} text, not UTF-8", 1, 1, "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Finding("encoding", "the file is not UTF-8 text", line, column, "save it as UTF-8")


def compose(text: str) -> Outcome:
    """Return the root node of the only document in the text."""
    try:
        return _compose(text)
    except yaml.MarkedYAMLError as error:
        return _marked(error)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        sentence = f"the character {_code_point(error.character)} is not allowed in YAML"
        return Finding("yaml", sentence, line, column, "take it out; an editor may show it as nothing")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets some of Python's own errors through, for example for the escape "\UFFFFFFFF".
        return Finding("yaml", f"not YAML: {' '.join(str(error).split())[:100]}", 1, 1, _LOOK)


def _compose(text: str) -> Outcome:
    loader = _Loader(text)
    if not loader.check_node():
        return Finding("empty", "the file holds no policy", 1, 1, "it begins with `policy: 1` and `name: NAME`")
    root = loader.get_node()
    if loader.check_node():
        mark = _next(loader).start_mark
        return Finding(
            "several-documents", "the file holds several YAML documents", mark.line + 1, mark.column + 1,
            "a file is one policy: put each into a file of its own", length=3,
        )  # fmt: skip
    assert root is not None
    return root


class _Refused(yaml.MarkedYAMLError):
    """Raised while composing; context is the code of the finding."""


class _Loader(yaml.SafeLoader):
    """Composes with the size and depth of each node in hand, so that nothing big is ever walked."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open = 0
        # By identity: an alias leads to the same node again. The node is kept, so its identity is not given to another.
        self._weights: dict[int, tuple[yaml.Node, int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = _next(self)
        alias, mark = isinstance(event, yaml.AliasEvent), event.start_mark
        self._open += 1
        if self._open > MAX_DEPTH:
            raise _Refused("too-deep", None, f"the file is nested deeper than {MAX_DEPTH} levels", mark)
        node = super().compose_node(parent, index)
        self._open -= 1
        if node is None:
            return None
        if alias and id(node) not in self._weights:
            raise _Refused("alias", None, "the alias leads to what it stands in", mark)
        if id(node) not in self._weights:
            self._weigh(node, mark)
        return node

    def _weigh(self, node: yaml.Node, mark: yaml.Mark) -> None:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        known = [self._weights[id(child)] for child in children]
        nodes = 1 + sum(weight for _, weight, _ in known)
        depth = 1 + max((depth for _, _, depth in known), default=0)
        if depth > MAX_DEPTH:
            raise _Refused("too-deep", None, f"the file is nested deeper than {MAX_DEPTH} levels", mark)
        if nodes > MAX_NODES or len(self._weights) >= MAX_NODES:
            raise _Refused("too-large", None, f"the file holds more than {MAX_NODES:,} values, aliases followed", mark)
        self._weights[id(node)] = (node, nodes, depth)


def _opening(error: yaml.MarkedYAMLError) -> Finding | None:
    """YAML notices what is not closed where the file or the next key is; the mistake is where it opens."""
    problem, opening, end = str(error.problem), error.context_mark, error.problem_mark
    if opening is None or end is None:
        return None
    for start, (sentence, hint) in _OPEN.items():
        if problem.startswith(start) and (opening.line != end.line or "," not in start):
            length = len(_word(opening)) if "key" in str(error.context) else 1
            place = opening.line + 1, opening.column + 1
            return Finding("yaml", f"not YAML: {sentence}", *place, hint, length=max(1, length))
    return None


def _marked(error: yaml.MarkedYAMLError) -> Finding:
    found = _opening(error)
    if found:
        return found
    # A glob without quotes: the mistake is where the alias begins, and YAML notices it at a later character.
    begins = str(error.context).endswith(("an alias", "an anchor"))
    mark = (error.context_mark if begins else None) or error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = str(error.problem or error.context or "cannot be read")
    if isinstance(error, _Refused):
        length = len(_word(mark)) if mark else 1
        return Finding(str(error.context), problem, line, column, _REFUSED[str(error.context)], length=max(1, length))
    context = f" ({error.context})" if error.context and error.problem else ""
    sentence = f"not YAML: {problem}{context}"
    plain, hint = next((said for start, said in _HINTS.items() if problem.startswith(start)), ("", _LOOK))
    sentence = f"not YAML: {plain}" if plain else sentence
    length = len(_word(mark)) if mark else 1
    return Finding("yaml", sentence, line, column, hint, length=max(1, length))


def _word(mark: yaml.Mark) -> str:
    """Return the word that begins at a mark."""
    text = str(mark.buffer or "").rstrip("\0")
    end = mark.pointer
    while end < len(text) and text[end] not in _BETWEEN:
        end += 1
    return text[mark.pointer : end]


def _next(loader: yaml.SafeLoader) -> yaml.Event:
    """Return the next event, and leave it to be taken."""
    event: yaml.Event = loader.peek_event()  # type: ignore[no-untyped-call]
    return event


def _code_point(character: object) -> str:
    number = ord(character) if isinstance(character, str) else int(str(character))
    return f"U+{number:04X}"


# ---- nodes ----


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
            if key_node.tag == _CORE + "merge":
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
