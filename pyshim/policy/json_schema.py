"""The JSON Schema of policy files, for editors: made from the table of keys that the reader uses.

Draft 7 is the one that yaml-language-server and the editors around it read. What a schema cannot say (two numbers that
contradict each other, names of files, how a number is spelt, rules that never match) only the reader knows.
"""

from __future__ import annotations

import json

import yaml

from pyshim.policy.key import Key, Schema, below
from pyshim.policy.model import KEYS


def text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=True) + "\n"


def schema() -> Schema:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "overlap-run policy", **_mapping("")}


def _mapping(path: str, together: Schema | None = None) -> Schema:
    keys = below(path, KEYS)
    required = [key.name for key in keys if key.required]
    return {
        "type": "object",
        "properties": {key.name: _described(key) for key in keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **(together or {}),
    }


def _described(key: Key) -> Schema:
    default = "Required." if key.required else f"Default: {key.default}."
    return {
        "description": f"{key.sentence} {key.type[0].upper()}{key.type[1:]}. {default}",
        "examples": [yaml.safe_load(key.example)],
        **_form(key),
    }


def _form(key: Key) -> Schema:
    form = key.kind.form()
    if below(f"{key.path}[]", KEYS):
        return {**form, "items": _mapping(f"{key.path}[]")}
    if not below(key.path, KEYS):
        return form
    inside = _mapping(key.path, key.kind.together)
    return {"anyOf": [form, inside]} if form else inside
