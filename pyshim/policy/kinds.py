"""The table of keys: what one entry says, the kinds of values, and what is done with a whole mapping of them.

The table is the fields of the model: `key()` declares one of Policy, Raise, Match or Rule. Reader, schema, `overlap
policy show`, table and reference follow from it. A `Key` as a ClassVar is a key without a field. A path names a key
from the top; `compute[]` is one rule.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Generic, Optional, TypeVar, Union, cast

import yaml

from pyshim import _native
from pyshim.counts import counted
from pyshim.policy import gpus, values
from pyshim.policy.document import Keys, Nodes, Walker
from pyshim.policy.finding import Severity, closest, quote
from pyshim.policy.kernel_sets import SETS, expanded
from pyshim.policy.values import (
    ANY,
    FAMILIES,
    UNLIMITED,
    Quantity,
    Range,
)

# The table that travels in the environment holds fewer; beyond this a file is not worth comparing rule by rule.
MAX_PATTERNS = 2000


class PartsReader(Walker):
    def __init__(self) -> None:
        super().__init__()
        self.gpus: tuple[str, ...] = ()  # that the policy is for
        self.gpus_known = True  # all of them, so that a number can be compared with what they have
        self.patterns = 0  # read so far, sets counted in full

    def fitting(self) -> tuple[gpus.KnownGpu, ...]:
        """Return the GPUs of the policy; none where not all of them are known."""
        return gpus.matching(self.gpus) if self.gpus_known else ()

    def most_blocks(self) -> int:
        """Return the most blocks on one multiprocessor of the policy's GPUs; 0 where not all are known."""
        return max((gpu.blocks for gpu in self.fitting()), default=0)

    def count(self, node: yaml.Node, patterns: int) -> None:
        before = self.patterns
        self.patterns += patterns
        if before <= MAX_PATTERNS < self.patterns:
            hint = "one pattern with a `*` may stand for many names"
            self.note(node, "too-large", f"the policy has more than {MAX_PATTERNS:,} patterns", hint)


def items(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes of a value or of a list of values."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


# ---- keys ----


Value = TypeVar("Value")
Schema = dict[str, Any]
Class = type  # `type` of a key are words
# For the library: patterns and texts go into the table's sections, the rest into the structure itself.
Packed = Union[int, str, tuple[str, ...], Range, "dict[str, Packed]"]
REQUIRED = "required"


class Kind(Generic[Value]):
    """Values of one kind."""

    holder: ClassVar[Class | None] = None  # whose fields are the keys of the value, where it is a mapping
    together: ClassVar[Schema] = {}  # of such a mapping: keys that depend on each other

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Value | None:
        """Read a node; None after a finding was noted."""
        raise NotImplementedError

    def form(self) -> Schema:
        """Return the schema of the value for editors, but for the keys of a mapping; {}: only that mapping."""
        return {}

    def shown(self, value: Value) -> object:
        """Return the value as a file says it; None: not said."""
        return value

    def packed(self, value: Value, name: str) -> dict[str, Packed]:
        """Return fields of the library's structure; name: the usual one."""
        return {}

    def extended(self, own: Value, base: Value) -> Value:
        """Combine the values of a policy and of the one that it extends."""
        return own


@dataclass(frozen=True)
class Key:
    path: str
    kind: Kind[Any]
    type: str = ""  # in words; empty: the rest of the key before it, which has the same path
    default: str = ""  # in words; REQUIRED
    sentence: str = ""
    example: str = ""  # the value, as YAML
    packed_as: str = ""  # the field of the library's structure
    field: str = ""  # of the model
    owner: Class | None = None  # the class of the model

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def parent(self) -> str:
        """The path of the mapping that holds the key; empty for the file itself."""
        return self.path.rpartition(".")[0]

    @property
    def required(self) -> bool:
        return self.default == REQUIRED


def key(
    start: Value,
    path: str,
    kind: Kind[Value],
    type: str = "",
    default: str = "",
    sentence: str = "",
    example: str = "",
    packed_as: str = "",
) -> Value:
    """Declare a field of the model with its key. start: its value where no file says one."""
    entry = Key(path, kind, type, default, sentence, example, packed_as)
    return dataclasses.field(default_factory=lambda: start, metadata={"key": entry})


@cache
def entries(holder: Class) -> tuple[Key, ...]:
    """Return the keys that a class of the model declares, in its order."""
    found: list[Key] = []
    for name, field in cast("dict[str, dataclasses.Field[object]]", vars(holder)["__dataclass_fields__"]).items():
        if "key" in field.metadata:
            declared: Key = field.metadata["key"]
            found.append(replace(declared, field=name, packed_as=declared.packed_as or name, owner=holder))
        elif isinstance(field.default, Key):
            found.append(replace(field.default, owner=holder))
    return tuple(found)


def below(path: str, keys: Iterable[Key]) -> tuple[Key, ...]:
    """Return the keys of one mapping, in the order in which they are named."""
    return tuple(key for key in keys if key.parent == path)


def all_keys(holder: Class) -> tuple[Key, ...]:
    """Return the keys with those of the mappings inside; each path once."""
    found: list[Key] = []
    for key in entries(holder):
        if key.type:
            found += [key, *(all_keys(key.kind.holder) if key.kind.holder else ())]
    return tuple(found)


def mapping(
    reader: PartsReader, node: yaml.Node, what: str, holder: Class, path: str
) -> tuple[Nodes, dict[str, Any]] | None:
    """Read the keys of a mapping; their values are by field of the model."""
    nodes = reader.mapping(node, what, keys_of(holder, path))
    return None if nodes is None else (nodes, said(reader, nodes, below(path, entries(holder))))


def keys_of(holder: Class, path: str) -> Keys:
    named = [key for key in below(path, entries(holder)) if key.type]
    only = {key.name: key.example for key in named if key.type == key.example}
    required = tuple(key.name for key in named if key.required)
    return Keys(tuple(key.name for key in named), required, only)


def said(reader: PartsReader, nodes: Nodes, keys: Iterable[Key]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in keys:
        if key.name not in nodes or not (key.field or isinstance(key.kind, Section)):
            continue
        value = key.kind.read(reader, nodes[key.name], key)
        if isinstance(key.kind, Section):
            found.update(value or {})
        elif value is not None:
            found[key.field] = value
    return found


def packed(holder: Hashable) -> dict[str, Packed]:
    """Return the fields; the patterns of keys of one field are joined."""
    found: dict[str, Packed] = {}
    for key in entries(type(holder)):
        if key.field:
            for name, value in key.kind.packed(getattr(holder, key.field), key.packed_as).items():
                before = found.get(name)
                if isinstance(value, tuple) and isinstance(before, tuple):
                    value = before + value
                found[name] = value
    return found


def shown(holder: Hashable, path: str) -> dict[str, Any]:
    """Return the mapping at a path as a file says it; None for a key that is not said."""
    own = entries(type(holder))
    found: dict[str, Any] = {}
    for key in below(path, own):
        inside = below(key.path, own)
        if key.field:
            value: Any = key.kind.shown(getattr(holder, key.field))
            found[key.name] = [*(found[key.name] or ()), *(value or ())] or None if key.name in found else value
        elif inside:
            values = shown(holder, key.path)
            found[key.name] = None if any(key.required and values[key.name] is None for key in inside) else values
    return found


class Section(Kind[dict[str, Any]]):
    """A mapping whose keys are fields of the class that has it."""

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> dict[str, Any] | None:
        assert key.owner
        found = mapping(reader, node, f"`{key.name}`", key.owner, key.path)
        return found[1] if found else None


# ---- kinds of single values ----


Choice = TypeVar("Choice", bound=str)
# Looks at a value that can be read; None: it is a mistake, which has been noted.
Check = Callable[[PartsReader, yaml.Node, Value], Optional[Value]]

# What YAML makes of a word or a number that stands there without quotes.
SINGLE = ["string", "number", "boolean"]
_PRINTED = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"


def member(enum: str, name: str) -> int:
    """Return the header's number for a word of the model: overlap_when, always -> OVERLAP_WHEN_ALWAYS."""
    number: int = getattr(_native.header(), f"OVERLAP_{enum}_{name}".upper())
    return number


# ---- forms for editors ----


def words_form(words: Iterable[str]) -> Schema:
    return {"enum": list(words)}


def any_of(*forms: Schema) -> Schema:
    flat = [inner for form in forms for inner in (form["anyOf"] if set(form) == {"anyOf"} else [form])]
    return {"anyOf": flat}


def one_or_more(form: Schema, most: int | None = None) -> Schema:
    items = {"type": "array", "items": form, "minItems": 1, **({"maxItems": most} if most else {})}
    return any_of(form, items)


def single(*patterns: str) -> Schema:
    """Any word or number, of the patterns all of which must fit."""
    found: Schema = {"type": SINGLE, "minLength": 1, "maxLength": values.MAX_PATTERN}
    return {**found, "allOf": [{"pattern": pattern} for pattern in (_PRINTED, *patterns)]}


def whole_form(lowest: int, highest: int) -> Schema:
    """As a number, or as the same digits in quotes."""
    digits = {"type": "string", "pattern": "^-?(0|[1-9][0-9]{0,19})$" if lowest < 0 else "^(0|[1-9][0-9]{0,19})$"}
    return {"anyOf": [{"type": "integer", "minimum": lowest, "maximum": highest}, digits]}


# ---- kinds ----


@dataclass(frozen=True)
class Scalar(Kind[Value]):
    """One word or number."""

    def parse(self, text: str) -> Value:
        """Return the value of a text. Raises Bad."""
        raise NotImplementedError

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Value | None:
        return reader.value(node, f"`{key.name}`", self.parse)


@dataclass(frozen=True)
class Text(Scalar[str]):
    accepts: Callable[[str], str]
    schema: Schema

    def parse(self, text: str) -> str:
        return self.accepts(text)

    def form(self) -> Schema:
        return self.schema

    def packed(self, value: str, name: str) -> dict[str, Packed]:
        return {name: value}


@dataclass(frozen=True)
class Word(Scalar[Choice]):
    words: tuple[Choice, ...]
    what: str  # that another word is not
    enum: str  # of the library

    def parse(self, text: str) -> Choice:
        return values.choice(text, self.words, self.what)

    def form(self) -> Schema:
        return words_form(self.words)

    def shown(self, value: Choice) -> object:
        return value if value in self.words else None

    def packed(self, value: Choice, name: str) -> dict[str, Packed]:
        return {name: member(self.enum, value)}


@dataclass(frozen=True)
class Number(Kind[int]):
    def packed(self, value: int, name: str) -> dict[str, Packed]:
        return {name: value}


@dataclass(frozen=True)
class Percent(Number):
    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        return reader.value(node, f"`{key.name}`", values.percent)

    def form(self) -> Schema:
        return {"type": "string", "pattern": "^0{0,6}(100|[1-9][0-9]?)%$"}

    def shown(self, value: int) -> object:
        return f"{value}%" if value else None


@dataclass(frozen=True)
class Size(Number):
    """A size that one block can have on some GPU; one beyond the GPUs of this policy is a warning only."""

    lowest: int = 0

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        size = reader.value(node, "a size", values.size)
        if size is None or not gpus.checkable():
            return size
        checks: tuple[tuple[tuple[gpus.KnownGpu, ...], Severity], ...] = (
            (gpus.checkable(), "error"),
            (reader.fitting(), "warning"),
        )
        for fitting, severity in checks:
            most = max(fitting, key=lambda gpu: gpu.shared_memory_per_block, default=None)
            if most is None or size <= most.shared_memory_per_block:
                continue
            none = "no known GPU" if severity == "error" else "no GPU of this policy"
            limit = f"{none} gives a block more than {most.shared_memory_per_block:,} ({most.name})"
            hint = f"write at most {most.shared_memory_per_block // 1024}KiB"
            reader.note(node, "size", f"a block cannot have {counted(size, 'byte')}: {limit}", hint, severity)
            return None if severity == "error" else size
        return size

    def form(self) -> Schema:
        pattern = values.SIZE.pattern if self.lowest == 0 else values.SIZE.pattern.replace("(0|", "(", 1)
        return {"anyOf": [{"type": "integer", "minimum": self.lowest}, {"type": "string", "pattern": f"^{pattern}$"}]}


@dataclass(frozen=True)
class Comparison(Kind[Range]):
    """A range of what one key of `match` counts: its possible values, and in how many parts of one it is stored."""

    lowest: int = 0
    highest: int = UNLIMITED
    parts: int = 1
    check: Check[Range] = lambda reader, node, value: value

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Range | None:
        what, quantity = f"`{key.name}`", Quantity(key.name, self.lowest, self.highest, self.parts)
        found = reader.values(node, what, lambda text: (text, values.comparison(text, quantity)))
        if found is None:
            return None
        if len(found) > 2:
            sentence = f"{what} takes one comparison, or two that must both hold"
            reader.note(node, "comparison", sentence, 'a range is [">=4", "<=8"]; other values need another rule')
            return None
        both = Range(max(item.minimum for _, item in found), min(item.maximum for _, item in found))
        text = " and ".join(text for text, _ in found)
        asked = reader.attempt(node, lambda: values.possible(both, text, quantity))
        return asked and self.check(reader, node, asked)

    def form(self) -> Schema:
        decimal = r"(0|[1-9][0-9]{0,17})" + (r"(\.[0-9]{1,2})?" if self.parts > 1 else "")
        highest = {} if self.highest == UNLIMITED else {"maximum": self.highest}
        number = {"type": "number" if self.parts > 1 else "integer", "minimum": self.lowest, **highest}
        compared = {"type": "string", "pattern": rf"^((>=|<=|==|>|<)\s*)?{decimal}$"}
        return one_or_more(any_of(number, compared), most=2)

    def shown(self, value: Range) -> str | list[str] | None:
        if value == ANY:
            return None
        if value.minimum == value.maximum:
            return self._decimal(value.minimum)
        least = f">={self._decimal(value.minimum)}" if value.minimum else ""
        most = f"<={self._decimal(value.maximum)}" if value.maximum != UNLIMITED else ""
        return [least, most] if least and most else least or most

    def _decimal(self, value: int) -> str:
        whole, rest = divmod(value, self.parts)
        return f"{whole}.{rest:02}".rstrip("0") if rest else str(whole)

    def packed(self, value: Range, name: str) -> dict[str, Packed]:
        return {name: value}


# ---- kinds of lists, and variables ----


Texts = tuple[str, ...]

_LIKE_A_WORD = 0.75  # of difflib: gem, gemmm and ncll are like gemm and nccl, my_gemm is not
_BRACKETS = r"^([^\[]|\[(![\s\S]|[^!])[^\]]*\])*$"
_PART = r"([A-Za-z_$][A-Za-z0-9_$]*|\*|\(anonymous namespace\))"
_QUALIFIED = rf"^((?![\s\S]*::)[\s\S]*|{_PART}(::{_PART})+)$"


@dataclass(frozen=True)
class Patterns(Kind[Texts]):
    """adds: to those of the policy that is extended."""

    adds: bool = False

    def shown(self, value: Texts) -> list[str] | None:
        return list(value) or None

    def packed(self, value: Texts, name: str) -> dict[str, Packed]:
        return {name: value}

    def extended(self, own: Texts, base: Texts) -> Texts:
        return own + tuple(item for item in base if item not in own) if self.adds else own


@dataclass(frozen=True)
class Gpus(Patterns):
    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Texts | None:
        found = reader.values(node, f"`{key.name}`", values.glob)
        for item, pattern in zip(items(node), found or ()):
            if gpus.is_unknown(pattern):
                reader.note(item, "unknown-gpu", gpus.unknown(pattern), gpus.hint(pattern), "warning")
        return found

    def form(self) -> Schema:
        return one_or_more(single(_BRACKETS))


@dataclass(frozen=True)
class Libraries(Patterns):
    """Patterns of the names of files. words: what else may be written, and the pattern that it stands for."""

    words: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Texts | None:
        found = reader.values(node, f"`{key.name}`", self.pattern)
        reader.count(node, len(found or ()))
        return found

    def pattern(self, text: str) -> str:
        return self.words.get(text) or values.library_pattern(text)

    def form(self) -> Schema:
        pattern = single(_BRACKETS, "^[^/]*$")
        return one_or_more({"anyOf": [words_form(self.words), pattern]} if self.words else pattern)


@dataclass(frozen=True)
class _Kernels(Patterns):
    """Patterns of kernels, and words for many of them, which an editor proposes."""

    def words(self) -> tuple[str, ...]:
        raise NotImplementedError

    def form(self) -> Schema:
        return one_or_more({"anyOf": [words_form(self.words()), single(_BRACKETS, _QUALIFIED)]})

    def both(self, reader: PartsReader, node: yaml.Node, key: Key) -> tuple[tuple[str, str], ...] | None:
        """Return each pattern as it is written and as it is read; note a name that may be a mistyped word."""
        for item in items(node):
            text = item.value if isinstance(item, yaml.ScalarNode) else ""
            near = closest(text, self.words(), _LIKE_A_WORD) if text.isidentifier() else ""
            if near and text not in self.words():
                sentence = f"{quote(text)} matches kernels of exactly that name"
                hint = f'did you mean `{near}`, which stands for many kernels? A pattern has `*`: "*{text}*"'
                reader.note(item, "near-word", sentence, hint, "warning")
        return reader.values(node, f"`{key.name}`", lambda text: (text, values.kernel_pattern(text)))


@dataclass(frozen=True)
class CommunicationKernels(_Kernels):
    """The patterns. The library knows its families whatever the policy says, so they need no room in the table."""

    def words(self) -> tuple[str, ...]:
        return FAMILIES

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Texts | None:
        found = self.both(reader, node, key)
        if found is None:
            return None
        patterns = tuple(pattern for text, pattern in found if text not in FAMILIES)
        reader.count(node, len(patterns))
        return patterns

    def shown(self, value: Texts) -> list[str]:
        return ["all", *value]


@dataclass(frozen=True)
class Kernels(_Kernels):
    """Patterns of kernels, then words of sets. which: `patterns` or `sets` only."""

    which: str = ""

    def words(self) -> tuple[str, ...]:
        return tuple(SETS)

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Texts | None:
        if self.which == "sets":
            words = [item.value for item in items(node) if isinstance(item, yaml.ScalarNode)]
            return tuple(word for word in words if word in SETS)
        found = self.both(reader, node, key)
        if found is None:
            return None
        reader.count(node, sum(len(SETS.get(text, "1")) for text, _ in found))
        patterns = tuple(pattern for text, pattern in found if text not in SETS)
        return patterns + (() if self.which else tuple(text for text, _ in found if text in SETS))

    def packed(self, value: Texts, name: str) -> dict[str, Packed]:
        return {name: value if self.which == "patterns" else expanded(value)}


@dataclass(frozen=True)
class Variables(Kind[Mapping[str, str]]):
    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Mapping[str, str] | None:
        pairs = reader.pairs(node, f"`{key.name}`", f"write {key.name}: {{NAME: value}}")
        found: dict[str, str] = {}
        for key_node, text, value_node in pairs.all if pairs else ():
            name = reader.attempt(key_node, partial(values.variable_name, text))
            value = self._value(reader, value_node, text)
            if name is not None and value is not None:
                found[name] = value
        return found

    def _value(self, reader: PartsReader, node: yaml.Node, name: str) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.style is None and values.is_boolean(node.value):
            sentence = f"{quote(node.value)} is neither a text nor a number"
            reader.note(node, "type", sentence, f'write 1 or 0, or "{node.value}" in quotes')
            return None
        return reader.value(node, f"the variable {quote(name)}", values.variable_value)

    def form(self) -> Schema:
        never = "|".join(re.escape(glob).replace(r"\*", ".*") for glob in values.NEVER + values.MUST_AGREE)
        ascii_text = {"type": "string", "minLength": 1, "maxLength": values.LONGEST_VARIABLE, "pattern": "^[ -~]*$"}
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{values.VARIABLE.pattern}$", "not": {"pattern": f"^({never})$"}},
            "additionalProperties": {"anyOf": [ascii_text, {"type": "number"}]},
        }

    def shown(self, value: Mapping[str, str]) -> dict[str, str] | None:
        return dict(value) or None

    def extended(self, own: Mapping[str, str], base: Mapping[str, str]) -> Mapping[str, str]:
        return {**base, **own}
