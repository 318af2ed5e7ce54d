"""What a rule does, as `overlap explain` is told it: in the words of the policy language."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.policy.finding import did_you_mean, quote
from pyshim.policy.layout import Sections, assemble
from pyshim.policy.values import Bad, number, percent, size
from pyshim.policy.words import KEEP, SHAPES, UNLIMITED

SPELLINGS = "make_room, quick_entry, leave, blocks_per_sm=1, blocks_per_sm=50%, dynamic_shared_memory=96KiB"

_NUMBERS = ("blocks_per_sm", "dynamic_shared_memory")
_PAIR = re.compile(r"\{?\s*(\w+)\s*[=:]\s*([^\s}]+(?: ?[KMG]iB)?)\s*\}?")


class Shape(NamedTuple):
    kind: int  # OVERLAP_SHAPE_...
    value: int
    text: str  # as it is written

    @property
    def keep(self) -> int:
        """Per cent of the kernel's own blocks that must stay resident where the rule does not say it."""
        constants = _native.header()
        return KEEP if self.kind in (constants.OVERLAP_SHAPE_MAKE_ROOM, constants.OVERLAP_SHAPE_QUICK_ENTRY) else 0


def parse(value: object) -> Shape:
    """A word, `blocks_per_sm=50%`, or a policy file's {blocks_per_sm: 50%}. Raises Bad."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, operand),) = value.items()
        return _parse(f"{name}={operand}")
    if not isinstance(value, str):
        raise Bad("shape", f"{quote(str(value))} is not a shape", f"write {SPELLINGS}")
    return _parse(value)


@functools.lru_cache(maxsize=256)
def _parse(text: str) -> Shape:
    constants = _native.header()
    if text in SHAPES:
        return Shape(getattr(constants, f"OVERLAP_SHAPE_{text.upper()}"), 0, text)
    pair = _PAIR.fullmatch(text.strip())
    if pair is None or pair[1] not in _NUMBERS:
        hint = did_you_mean(pair[1] if pair else text, (*SHAPES, *_NUMBERS)) or f"write {SPELLINGS}"
        raise Bad("shape", f"{quote(text)} is not a shape", hint)
    written = f"{pair[1]}={pair[2]}"
    if pair[1] == "dynamic_shared_memory":
        return Shape(constants.OVERLAP_SHAPE_BYTES, min(size(pair[2]), 2**32 - 1), written)
    if pair[2].endswith("%"):
        return Shape(constants.OVERLAP_SHAPE_PERCENT, percent(pair[2]), written)
    return Shape(constants.OVERLAP_SHAPE_BLOCKS, number(pair[2], 1, 2**32 - 1), written)


def written(kind: int, value: int) -> str:
    """The same words for a rule that is in a table."""
    constants = _native.header()
    if kind == constants.OVERLAP_SHAPE_BLOCKS:
        return f"blocks_per_sm={value}"
    if kind == constants.OVERLAP_SHAPE_PERCENT:
        return f"blocks_per_sm={value}%"
    if kind == constants.OVERLAP_SHAPE_BYTES:
        return f"dynamic_shared_memory={value}"
    return next(word for word in SHAPES if getattr(constants, f"OVERLAP_SHAPE_{word.upper()}") == kind)


def named(values: Mapping[str, Any]) -> str:
    """The rule of values that were read, for a headline."""
    if "policy" in values:
        return f"the first of {values['policy']} that matches"
    wanted = values.get("shape") or parse("make_room")
    return f"{wanted.text}, keep_at_least {values.get('keep_at_least', wanted.keep)}%"


@functools.lru_cache(maxsize=256)
def table_of(kind: int, value: int, keep: int) -> bytes:
    """Return the table of one policy with one rule: this shape for every launch, at any time."""
    everything = dict.fromkeys(("blocks", "threads", "registers", "waves_percent", "resident_blocks"), (0, UNLIMITED))
    shaped = {"shape": kind, "value": value, "keep_at_least": keep, "when": _native.header().OVERLAP_WHEN_ALWAYS}
    return assemble([{"rule_count": 1}], [{**everything, **shaped}], Sections())
