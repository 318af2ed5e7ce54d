"""One entry of the table of keys is all that a key of a policy needs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from pyshim.policy import json_schema
from pyshim.policy.key import REQUIRED, all_keys, key, made, mapping, packed, shown
from pyshim.policy.kinds import Percent, Whole
from pyshim.policy.parts import PartsReader


@dataclass(frozen=True)
class Made:
    size: int = key(0, "size", Whole(1, 9), "a whole number", REQUIRED, "How many.", "3")
    part: int = key(0, "part", Percent(), "a percentage", "0%", "How much.", "25%", "packed_part")


def read(text: str) -> tuple[Made, list[str]]:
    reader = PartsReader()
    found = mapping(reader, yaml.compose(text), "a thing", Made, "")
    assert found
    return made(Made, found[1]), [finding.sentence for finding in reader.findings]


def test_an_entry_is_read_shown_and_packed() -> None:
    value, wrong = read("{size: 3, part: 25%}")
    assert (value, wrong) == (Made(3, 25), [])
    assert shown(value, "") == {"size": 3, "part": "25%"}
    assert packed(value) == {"size": 3, "packed_part": 25}


def test_what_is_wrong_with_its_value_is_noticed() -> None:
    assert read("{size: 10, prt: 25%}") == (Made(0, 25), ["unknown key `prt`", "`10` is not between 1 and 9"])
    assert read("{part: 25%}")[1] == ["a thing has no `size`"]


def test_editors_are_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "KEYS", all_keys(Made))
    found = json_schema.schema()
    assert found["required"] == ["size"]
    assert found["properties"]["part"]["description"] == "How much. A percentage. Default: 0%."
    assert found["properties"]["size"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
