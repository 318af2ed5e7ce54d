"""The JSON Schema of policy files, for editors: made from the keys, words, patterns and ranges that the reader uses.

Draft 7 is the one that yaml-language-server and the editors around it read. What a schema cannot say (two numbers that
contradict each other, names of files, how a number is spelt, rules that never match) only the reader knows.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from pyshim.enums import CRITICAL_KINDS, DISPATCHES, KNOWN_DISPATCHES
from pyshim.policy import values, variables
from pyshim.policy.communication import FAMILIES, MAX_COMPUTE_UNITS
from pyshim.policy.describe import (
    CARVEOUTS,
    COMMUNICATION_CARVEOUTS,
    CRITICALS,
    FOOTPRINTS,
    PRIORITIES,
    SHAPES,
    STREAM_PRIORITIES,
    WHENS,
    YES_NO,
    Key,
    below,
)
from pyshim.policy.kernels import SETS
from pyshim.policy.model import UNLIMITED
from pyshim.policy.parts import MAX_REGISTERS, MAX_THREADS
from pyshim.policy.rules import MAX_BLOCKS_PER_SM, MAX_RULES, QUANTITIES
from pyshim.policy.schema import NAME, VERSION

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
_INT32 = 2**31
# What YAML makes of a word or a number that stands there without quotes.
_SINGLE = ["string", "number", "boolean"]
_PERCENT = "0{0,6}(100|[1-9][0-9]?)%"
_PRINTED = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"


def text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=True) + "\n"


def schema() -> Schema:
    return {
        "$schema": _DRAFT,
        "title": "overlap-run policy",
        **_mapping(""),
    }


def _mapping(path: str) -> Schema:
    keys = below(path)
    required = [key.name for key in keys if key.required]
    return {
        "type": "object",
        "properties": {key.name: _described(key) for key in keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **_TOGETHER.get(path, {}),
    }


def _described(key: Key) -> Schema:
    default = "Required." if key.required else f"Default: {key.default}."
    return {
        "description": f"{key.sentence} {key.type[0].upper()}{key.type[1:]}. {default}",
        "examples": [yaml.safe_load(key.example)],
        **_form(key),
    }


def _form(key: Key) -> Schema:
    found = _FORMS[key.path]
    return found() if callable(found) else found


# ---- forms of single values ----


def _words(words: Iterable[str]) -> Schema:
    return {"enum": list(words)}


def _whole(lowest: int, highest: int) -> Schema:
    """As a number, or as the same digits in quotes."""
    digits = {"type": "string", "pattern": "^-?(0|[1-9][0-9]{0,19})$" if lowest < 0 else "^(0|[1-9][0-9]{0,19})$"}
    return {"anyOf": [{"type": "integer", "minimum": lowest, "maximum": highest}, digits]}


def _any_of(*forms: Schema) -> Schema:
    flat = [inner for form in forms for inner in (form["anyOf"] if set(form) == {"anyOf"} else [form])]
    return {"anyOf": flat}


def _one_or_more(form: Schema, most: int | None = None) -> Schema:
    items = {"type": "array", "items": form, "minItems": 1, **({"maxItems": most} if most else {})}
    return _any_of(form, items)


def _single(*patterns: str) -> Schema:
    """Any word or number, of the patterns all of which must fit."""
    found: Schema = {"type": _SINGLE, "minLength": 1, "maxLength": values.MAX_PATTERN}
    return {**found, "allOf": [{"pattern": pattern} for pattern in (_PRINTED, *patterns)]}


_BRACKETS = r"^([^\[]|\[(![\s\S]|[^!])[^\]]*\])*$"
_PART = r"([A-Za-z_$][A-Za-z0-9_$]*|\*|\(anonymous namespace\))"
_QUALIFIED = rf"^((?![\s\S]*::)[\s\S]*|{_PART}(::{_PART})+)$"
_GLOB = _single(_BRACKETS)
_KERNEL = _single(_BRACKETS, _QUALIFIED)
_LIBRARY = _single(_BRACKETS, "^[^/]*$")


def _named(words: Iterable[str], pattern: Schema) -> Schema:
    """A pattern, where an editor is to propose these words."""
    return _one_or_more({"anyOf": [_words(words), pattern]})


def _size(lowest: int = 0) -> Schema:
    pattern = values.SIZE.pattern if lowest == 0 else values.SIZE.pattern.replace("(0|", "(", 1)
    return {"anyOf": [{"type": "integer", "minimum": lowest}, {"type": "string", "pattern": f"^{pattern}$"}]}


def _comparison(quantity: values.Quantity) -> Schema:
    decimal = r"(0|[1-9][0-9]{0,17})" + (r"(\.[0-9]{1,2})?" if quantity.parts > 1 else "")
    highest = {} if quantity.highest == UNLIMITED else {"maximum": quantity.highest}
    number = {"type": "number" if quantity.parts > 1 else "integer", "minimum": quantity.lowest, **highest}
    return _one_or_more(
        _any_of(number, {"type": "string", "pattern": rf"^((>=|<=|==|>|<)\s*)?{decimal}$"}),
        most=2,
    )


def _priority(words: tuple[str, ...]) -> Schema:
    return _any_of(_words(words), _whole(-_INT32, _INT32 - 1))


def _variables(kind: str) -> Schema:
    refused = variables.NEVER + (variables.MUST_AGREE if kind == variables.ENVIRONMENT else ())
    never = "|".join(re.escape(glob).replace(r"\*", ".*") for glob in refused)
    ascii_text = {"type": "string", "minLength": 1, "maxLength": variables.LONGEST, "pattern": "^[ -~]*$"}
    return {
        "type": "object",
        "propertyNames": {"pattern": f"^{variables.NAME.pattern}$", "not": {"pattern": f"^({never})$"}},
        "additionalProperties": {"anyOf": [ascii_text, {"type": "number"}]},
    }


def _yes_no() -> Schema:
    return {"enum": [False, True, *YES_NO]}


def _name() -> Schema:
    """A number may be a name, and then has a digit in front."""
    return {"type": _SINGLE, "pattern": f"^{NAME.pattern}$", "minimum": 0}


# ---- keys that depend on each other ----

_TOGETHER: dict[str, Schema] = {
    # Neither of the first two kinds leaves nothing for the third.
    "critical": {
        "not": {
            "properties": {kind: {"enum": [False, YES_NO[1]]} for kind in CRITICAL_KINDS[:2]},
            "required": list(CRITICAL_KINDS[:2]),
        }
    },
    "compute[].match": {"minProperties": 1},
    "compute[].shape": {"minProperties": 1, "maxProperties": 1},
}

_SIZES = ("static_shared_memory", "dynamic_shared_memory")
_FORMS: dict[str, Schema | Callable[[], Schema]] = {
    "policy": {"enum": [VERSION, str(VERSION)]},
    "name": _name,
    "extends": _single(),
    "gpu": _one_or_more(_GLOB),
    "when": _words(WHENS),
    "dispatch": _words(DISPATCHES),
    "reads_dynamic_size": _named(SETS, _KERNEL),
    "critical": lambda: {"anyOf": [_words(CRITICALS), _mapping("critical")]},
    **{f"critical.{kind}": _yes_no for kind in CRITICAL_KINDS},
    "critical.share": {"type": "string", "pattern": f"^{_PERCENT}$"},
    "communication": functools.partial(_mapping, "communication"),
    "communication.kernels": _named(FAMILIES, _KERNEL),
    "communication.libraries": _one_or_more(_LIBRARY),
    "communication.priority": _priority(PRIORITIES),
    "communication.streams": functools.partial(_mapping, "communication.streams"),
    "communication.streams.created_by": _one_or_more(_LIBRARY),
    "communication.streams.priority": _priority(STREAM_PRIORITIES),
    "communication.footprint": lambda: {"anyOf": [_words(FOOTPRINTS), _mapping("communication.footprint")]},
    "communication.footprint.threads": _whole(1, MAX_THREADS),
    "communication.footprint.registers": _whole(1, MAX_REGISTERS),
    **{f"communication.footprint.{name}": _size() for name in _SIZES},
    "communication.carveout": _words(COMMUNICATION_CARVEOUTS),
    "communication.reserve_cus": _whole(0, MAX_COMPUTE_UNITS),
    "communication.environment": _variables(variables.ENVIRONMENT),
    "communication.all_ranks_environment": _variables(variables.ALL_RANKS),
    "compute": lambda: {"type": "array", "maxItems": MAX_RULES, "items": _mapping("compute[]")},
    "compute[].match": functools.partial(_mapping, "compute[].match"),
    "compute[].match.kernel": _named(SETS, _KERNEL),
    "compute[].match.library": _one_or_more(_LIBRARY),
    **{f"compute[].match.{quantity.name}": _comparison(quantity) for quantity in QUANTITIES},
    "compute[].shape": lambda: {"anyOf": [_words(SHAPES), _mapping("compute[].shape")]},
    "compute[].shape.blocks_per_sm": _any_of(
        _whole(1, MAX_BLOCKS_PER_SM), {"type": "string", "pattern": f"^{_PERCENT}$"}
    ),
    "compute[].shape.dynamic_shared_memory": _size(lowest=1),
    "compute[].keep_at_least": {"type": "string", "pattern": f"^{_PERCENT}$"},
    "compute[].when": _words(WHENS),
    "compute[].when_dispatch": _words(KNOWN_DISPATCHES),
    "compute[].carveout": _words(CARVEOUTS),
}
