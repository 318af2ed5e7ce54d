"""Bytes -> the nodes of one YAML document, with their positions, or the findings that stop us before that.

Nothing is constructed: a policy reads the text of each scalar itself, so `on` stays `on` and `1e3` stays `1e3`. What a
hostile file could do to a recursive reader (nesting, aliases that multiply or contain themselves) is refused here.
"""

from __future__ import annotations

import codecs
from typing import Any, Union

import yaml

from pyshim.policy.finding import Finding, quote

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

# What goes wrong where a comparison or a pattern stands without quotes, and what YAML takes it for.
_UNQUOTED = {
    "expected chomping or indentation indicators": "YAML reads the `>` of {} as the start of a block of text",
    "found character '>' that cannot start any token": "YAML reads the `>` of {} as the start of a block of text",
    "expected a comment or a line break": "YAML reads the `>` of {} as the start of a block of text",
    "found undefined alias": "YAML reads {} as an alias, and no anchor of that name stands before it",
    "expected alphabetic or numeric character, but found": "YAML reads the `*` of {} as an alias",
}
_OPEN = {
    "found unexpected end of stream": ("this quote is not closed", "write another one behind the text"),
    "could not find expected ':'": ("this is no key with a value", "write `key: value`, with a space after the colon"),
    "expected ',' or ']'": ("this bracket is not closed", "write `]` behind the list"),
    "expected ',' or '}'": ("this bracket is not closed", "write `}` behind the mapping"),
}
_INDENTED = (
    "the indentation fits nothing above it",
    "keys of one mapping begin in the same column, and so do the rules of a list",
)
# What PyYAML says, what is said instead (nothing: that it is not YAML, and what PyYAML says), and what to do.
_HINTS = {
    r"found character '\t'": ("a tab, where YAML takes spaces only", "indent with spaces"),
    "mapping values are not allowed here": (
        "a colon where no key can stand",
        "look for a wrong indentation, or put quotes around a text with a colon",
    ),
    "expected <block end>, but found '<": _INDENTED,
    "expected <block end>, but found '-'": _INDENTED,
    "found duplicate anchor": ("", "give each &NAME a name of its own"),
    "found character '`'": ("a text cannot begin with `", "put quotes around it"),
    "found character '@'": ("a text cannot begin with @", "put quotes around it"),
    "found character '%'": ("a text cannot begin with %", "write a percentage with its number first: 50%"),
    "expected ',' or ']'": ("", "look for a `]` that is missing, or a text that needs quotes"),
    "expected ',' or '}'": ("", "look for a `}` that is missing, or a text that needs quotes"),
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
            column, word = _word(opening, back=False)
            length = len(word) if "key" in str(error.context) else 1
            return Finding("yaml", f"not YAML: {sentence}", opening.line + 1, column, hint, length=max(1, length))
    return None


def _marked(error: yaml.MarkedYAMLError) -> Finding:
    found = _opening(error)
    if found:
        return found
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = str(error.problem or error.context or "cannot be read")
    if isinstance(error, _Refused):
        length = len(_word(mark, back=False)[1]) if mark else 1
        return Finding(str(error.context), problem, line, column, _REFUSED[str(error.context)], length=max(1, length))
    context = f" ({error.context})" if error.context and error.problem else ""
    sentence = f"not YAML: {problem}{context}"
    plain, hint = next((said for start, said in _HINTS.items() if problem.startswith(start)), ("", _LOOK))
    sentence = f"not YAML: {plain}" if plain else sentence
    if mark is None:
        return Finding("yaml", sentence, line, column, hint)
    unquoted = next((text for start, text in _UNQUOTED.items() if problem.startswith(start)), "")
    column, word = _word(mark, back=bool(unquoted))
    if unquoted and word[:1] not in (">", "*"):
        column, word = _after_a_space(mark) or (column, word)
    if unquoted and word[:1] in (">", "*"):
        sentence, hint = unquoted.format(quote(word)), f'write it in quotes: "{word}"'
    return Finding("yaml", sentence, line, column, hint, length=max(1, len(word)))


def _word(mark: yaml.Mark, back: bool) -> tuple[int, str]:
    """Return the word at a mark, and its column. back: it may begin before the mark."""
    text = str(mark.buffer or "").rstrip("\0")
    start = end = mark.pointer
    while back and start > 0 and text[start - 1] not in _BETWEEN:
        start -= 1
    while end < len(text) and text[end] not in _BETWEEN:
        end += 1
    return mark.column + 1 - (mark.pointer - start), text[start:end]


def _after_a_space(mark: yaml.Mark) -> tuple[int, str] | None:
    """Return the column and text of a comparison such as `> 2`, in front of whose number the mark is."""
    text = str(mark.buffer or "").rstrip("\0")
    before = text[mark.pointer - mark.column : mark.pointer]
    start = len(before.rstrip(" ="))
    if before[:start][-1:] != ">":
        return None
    _, word = _word(mark, back=False)
    return start, before[start - 1 :] + word


def _next(loader: yaml.SafeLoader) -> yaml.Event:
    """Return the next event, and leave it to be taken."""
    event: yaml.Event = loader.peek_event()  # type: ignore[no-untyped-call]
    return event


def _code_point(character: object) -> str:
    number = ord(character) if isinstance(character, str) else int(str(character))
    return f"U+{number:04X}"
