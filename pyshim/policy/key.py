"""One entry of the table of keys, and what is done with a whole mapping of them.

The table is the fields of the model: `key()` declares one of Policy, Raise, Match or Rule. Reader,
schema, `overlap policy show`, table and reference follow from it. A `Key` as a ClassVar is a key without a field.
A path names a key from the top; `compute[]` is one rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, Union, cast

import yaml

from pyshim.policy import gone
from pyshim.policy.nodes import Keys, Nodes
from pyshim.policy.parts import PartsReader
from pyshim.policy.words import Range

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
) -> tuple[Nodes, dict[str, object]] | None:
    """Read the keys of a mapping; their values are by field of the model."""
    nodes = reader.mapping(node, what, keys_of(holder, path))
    return None if nodes is None else (nodes, said(reader, nodes, below(path, entries(holder))))


def keys_of(holder: Class, path: str) -> Keys:
    named = [key for key in below(path, entries(holder)) if key.type]
    only = {key.name: key.example for key in named if key.type == key.example}
    required = tuple(key.name for key in named if key.required)
    return Keys(tuple(key.name for key in named), required, only, gone.KEYS.get(path, {}))


def said(reader: PartsReader, nodes: Nodes, keys: Iterable[Key]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in keys:
        if key.name not in nodes or not (key.field or isinstance(key.kind, Section)):
            continue
        value = key.kind.read(reader, nodes[key.name], key)
        if isinstance(key.kind, Section):
            found.update(value or {})
        elif value is not None:
            found[key.field] = value
    return found


def made(make: Callable[..., Value], fields: Mapping[str, object]) -> Value:
    return make(**fields)


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


class Section(Kind[dict[str, object]]):
    """A mapping whose keys are fields of the class that has it."""

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> dict[str, object] | None:
        assert key.owner
        found = mapping(reader, node, f"`{key.name}`", key.owner, key.path)
        return found[1] if found else None
