"""Requests: the options of the command line about one kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyshim.explain.planner import Footprint, member
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.values import KEEP, SHAPES, Bad, number, percent, size

NEEDED = ("gpu", "threads", "registers")
COMMUNICATION = ("comm_threads", "comm_registers")
SPELLINGS = "make_room, leave, blocks_per_sm=1, blocks_per_sm=50%, dynamic_shared_memory=96KiB"

# Names; the options of the command line have `-` for `_`.
FOOTPRINT = ("threads", "registers", "static_smem", "dynamic_smem", "barriers", "sgprs")  # in the order of Footprint
COMM_FOOTPRINT = tuple(f"comm_{name}" for name in FOOTPRINT)
SIZES = ("static_smem", "dynamic_smem", "comm_static_smem", "comm_dynamic_smem")
COUNTS = tuple(name for name in (*FOOTPRINT, *COMM_FOOTPRINT) if name not in SIZES)
WORDS = ("gpu", "policy", "kernel", "library")

_LARGEST = 2**32 - 1  # of a footprint's numbers: any larger number makes the launch just as impossible
_LARGEST_GRID = 2**64 - 1
_ZEROS = dict.fromkeys((*COUNTS, *SIZES), 0)
_SHAPE_NUMBERS = ("blocks_per_sm", "dynamic_shared_memory")
_PAIR = re.compile(r"\{?\s*(\w+)\s*[=:]\s*([^\s}]+(?: ?[KMG]iB)?)\s*\}?")


class Mistake(Exception):
    """A request that cannot be answered. name: the option at fault, or the empty string."""

    def __init__(self, name: str, sentence: str, hint: str = "", missing: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.name, self.sentence, self.hint, self.missing = name, sentence, hint, missing

    def spoken(self, spell: Callable[[str], str]) -> str:
        """Return the sentence. spell: from a name to how the user writes that option."""
        if self.missing:
            return f"{self.sentence}: {', '.join(spell(name) for name in self.missing)}"
        return f"{spell(self.name)}: {self.sentence}" if self.name else self.sentence


class Shape(NamedTuple):
    """What a rule does, in the words of the policy language."""

    kind: int  # OVERLAP_SHAPE_...
    value: int
    text: str  # as it is written
    keep: int = 0  # the default keep_at_least, percent of the kernel's own blocks


class Request(NamedTuple):
    """One kernel launch, one block of communication and a rule or a policy. None: not said."""

    said: frozenset[str]  # the names that were given, or filled in
    computation: Footprint  # sizes in bytes of a block, registers of a thread, all cut to 32 bits
    communication: Footprint
    asked: int  # the dynamic size before it was cut
    gpu: str | None = None
    policy: str | None = None
    kernel: str | None = None
    library: str | None = None
    blocks: int | None = None  # of the grid; cut to 64 bits
    shape: Shape | None = None
    keep_at_least: int | None = None  # percent

    def need(self, names: tuple[str, ...]) -> None:
        """Raise Mistake if one of the options was not given."""
        if not self.said.issuperset(names):
            missing = tuple(name for name in names if name not in self.said)
            raise Mistake("", f"missing required option{'s' * (len(missing) > 1)}", "", missing)

    def beside(self, block: Footprint) -> Request:
        """Return the request beside another block of communication."""
        return self._replace(said=self.said | {*COMMUNICATION}, communication=block)


def read(request: Mapping[str, str]) -> Request:
    """Return the request that the options make. Numbers are decimal digits; sizes may have a unit. Raise Mistake."""
    numbers: dict[str, Any] = _ZEROS.copy()
    others: dict[str, Any] = {}
    for name, value in request.items():
        try:
            (numbers if name in _ZEROS else others)[name] = _value(name, value)
        except Bad as bad:
            raise Mistake(name, bad.sentence, bad.hint) from None
    asked = numbers["dynamic_smem"]
    numbers["dynamic_smem"] = min(asked, _LARGEST)
    own, beside = (Footprint(*(numbers[name] for name in names)) for names in (FOOTPRINT, COMM_FOOTPRINT))
    return Request(frozenset(request), own, beside, asked, **others)


def _value(name: str, value: str) -> object:
    if name in WORDS:
        return value
    if name == "shape":
        return parse(value)
    if name == "keep_at_least":
        return _percent(value)
    largest = _LARGEST_GRID if name == "blocks" else _LARGEST
    found = _whole(value, name in SIZES)
    return found if name == "dynamic_smem" else min(found, largest)


def _whole(value: str, is_size: bool) -> int:
    """Return a number from 0 on. Digits alone may be any number of them; sizes may have a unit."""
    text = value.strip()
    digits = text[1:] if text.startswith("-") else text
    if digits.isascii() and digits.isdigit() and len(digits) < 4000:
        if int(text) < 0:
            raise Bad("out-of-range", f"{quote(text)} is below 0")
        return int(text)
    if is_size:
        return size(text)
    raise Bad("type", f"{quote(value)} is not a whole number", "write decimal digits only")


def _percent(value: str) -> int:
    text = value.strip()
    found = _whole(text[:-1] if text.endswith("%") else text, False)
    if found > 100:
        raise Bad("percent", f"{quote(value)} is not between 0% and 100%")
    return found


def parse(text: str) -> Shape:
    """Return the shape of a word, or of `blocks_per_sm=50%` as options and policy files write it. Raise Bad."""
    if text in SHAPES:
        return Shape(member("SHAPE", text), 0, text, 0 if text == "leave" else KEEP)
    pair = _PAIR.fullmatch(text.strip())
    if pair is None or pair[1] not in _SHAPE_NUMBERS:
        hint = did_you_mean(pair[1] if pair else text, (*SHAPES, *_SHAPE_NUMBERS)) or f"write {SPELLINGS}"
        raise Bad("shape", f"{quote(text)} is not a shape", hint)
    name, operand = pair.groups()
    if name == "dynamic_shared_memory":
        kind, value = "bytes", min(size(operand), _LARGEST)
    elif operand.endswith("%"):
        kind, value = "percent", percent(operand)
    else:
        kind, value = "blocks", number(operand, 1, _LARGEST)
    return Shape(member("SHAPE", kind), value, f"{name}={operand}")


def written(kind: int, value: int) -> str:
    """Return the words for a shape of a compiled rule."""
    word = next(word for word in (*SHAPES, "blocks", "percent", "bytes") if member("SHAPE", word) == kind)
    numbers = {"blocks": f"blocks_per_sm={value}", "percent": f"blocks_per_sm={value}%"}
    return {**numbers, "bytes": f"dynamic_shared_memory={value}"}.get(word, word)
