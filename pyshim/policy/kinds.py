"""Kinds of single values: words, numbers, sizes, comparisons. Lists of them: lists.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional, TypeVar

import yaml

from pyshim import _native
from pyshim.policy import gpus, values
from pyshim.policy.finding import Severity
from pyshim.policy.key import Key, Kind, Packed, Schema
from pyshim.policy.parts import PartsReader
from pyshim.policy.values import Quantity
from pyshim.policy.words import ANY, UNLIMITED, Range

Value = TypeVar("Value")
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
class Whole(Number):
    lowest: int
    highest: int

    def read(self, reader: PartsReader, node: yaml.Node, key: Key) -> int | None:
        return reader.value(node, f"`{key.name}`", lambda text: values.number(text, self.lowest, self.highest))

    def form(self) -> Schema:
        return whole_form(self.lowest, self.highest)


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
            reader.note(node, "size", f"a block cannot have {size:,} bytes: {limit}", hint, severity)
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
