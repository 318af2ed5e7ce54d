"""Kinds of lists: patterns of GPUs, kernels and libraries, and variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from pyshim.policy import gpus, kernels, values, variables
from pyshim.policy.finding import quote
from pyshim.policy.key import Key, Kind, Packed, Schema
from pyshim.policy.kinds import one_or_more, single, words_form
from pyshim.policy.parts import PartsReader, items
from pyshim.policy.words import FAMILIES

Texts = tuple[str, ...]

_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,6}")
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
        if not found or not gpus.checkable():
            return found
        for item, pattern in zip(items(node), found):
            if not gpus.matching([pattern]) and not _ARCHITECTURE.fullmatch(pattern):
                sentence = f"no GPU that is known has the name {quote(pattern)}"
                reader.note(item, "unknown-gpu", sentence, gpus.hint(pattern), "warning")
        return found

    def form(self) -> Schema:
        return one_or_more(single(_BRACKETS))


@dataclass(frozen=True)
class Libraries(Patterns):
    """Patterns of the names of files. words: what else may be written, and the pattern that it stands for."""

    words: Mapping[str, str] = field(default_factory=dict)

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
        """Return each pattern as it is written and as it is read."""
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
        return tuple(kernels.SETS)

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Texts | None:
        if self.which == "sets":
            words = [item.value for item in items(node) if isinstance(item, yaml.ScalarNode)]
            return tuple(word for word in words if word in kernels.SETS)
        found = self.both(reader, node, key)
        if found is None:
            return None
        reader.count(node, sum(len(kernels.SETS.get(text, "1")) for text, _ in found))
        patterns = tuple(pattern for text, pattern in found if text not in kernels.SETS)
        return patterns + (() if self.which else tuple(text for text, _ in found if text in kernels.SETS))

    def packed(self, value: Texts, name: str) -> dict[str, Packed]:
        return {name: value if self.which == "patterns" else kernels.expanded(value)}


@dataclass(frozen=True)
class Variables(Kind[Mapping[str, str]]):
    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> Mapping[str, str] | None:
        pairs = reader.pairs(node, f"`{key.name}`", f"write {key.name}: {{NAME: value}}")
        found: dict[str, str] = {}
        for key_node, text, value_node in pairs.all if pairs else ():
            name = reader.attempt(key_node, lambda text=text: variables.name(text))  # type: ignore[misc]
            value = self._value(reader, value_node, text)
            if name is not None and value is not None:
                found[name] = value
        return found

    def _value(self, reader: PartsReader, node: yaml.Node, name: str) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.style is None and variables.is_boolean(node.value):
            sentence = f"{quote(node.value)} is neither a text nor a number"
            reader.note(node, "type", sentence, f'write 1 or 0, or "{node.value}" in quotes')
            return None
        return reader.value(node, f"the variable {quote(name)}", variables.value)

    def form(self) -> Schema:
        never = "|".join(re.escape(glob).replace(r"\*", ".*") for glob in variables.NEVER + variables.MUST_AGREE)
        ascii_text = {"type": "string", "minLength": 1, "maxLength": variables.LONGEST, "pattern": "^[ -~]*$"}
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{variables.NAME.pattern}$", "not": {"pattern": f"^({never})$"}},
            "additionalProperties": {"anyOf": [ascii_text, {"type": "number"}]},
        }

    def shown(self, value: Mapping[str, str]) -> dict[str, str] | None:
        return dict(value) or None

    def extended(self, own: Mapping[str, str], base: Mapping[str, str]) -> Mapping[str, str]:
        return {**base, **own}
