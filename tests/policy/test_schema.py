"""The JSON Schema for editors says of a file what the reader says, but for a listed few reasons."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.policy import files
from pyshim.policy.kinds import Key
from pyshim.policy.model import KEYS, schema
from pyshim.policy.reader import Reading, read_bytes
from tests.policy.random_policies import POLICIES
from tests.policy.test_planted import FILE, MISTAKES, RICH
from tools.docs import write

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "policies" / "policy.schema.json"

# What the reader refuses and no schema can: by the code of the finding, and why.
BEYOND = {
    "never": "numbers that contradict each other, or that no launch has",
    "size": "what a GPU gives a block",
    "missing-policy": "other files",
    "duplicate-key": "what is loaded has each key once; the two kinds of variables know nothing of each other",
    "tag": "what is loaded has no tags",
    "merge-key": "what is loaded has no merges",
    "version": "a number is spelt in several ways: 1.0",
    "type": "a number is spelt in several ways: 0x10; `yes` is a word in YAML 1.2 and none in YAML 1.1",
    "comparison": "a number is spelt in several ways: 1.0",
    "blocks": "a number is spelt in several ways",
    "out-of-range": "a number in quotes",
    "value": "`True` is spelt `true`",
}


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, which yaml-language-server reads by: `on` and 2024-01-01 are texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def _number(loader: Any, node: yaml.Node) -> object:
    text = str(node.value)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text)
    return int(text, 0)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", "<<", "<"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
Loader.add_constructor("tag:yaml.org,2002:int", _number)
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(SCHEMA.read_text(encoding="ascii"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_the_committed_schema_is_what_the_reader_makes(overlap: Any) -> None:
    done = overlap("policy", "schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == SCHEMA.read_text(encoding="ascii")
    assert not list(write.each("schema", False))


def test_every_key_says_what_it_means() -> None:
    for key in KEYS:
        assert key.sentence.endswith(".") and key.type and key.default
        assert json.loads(json.dumps(yaml.safe_load(key.example))) is not None


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_the_example_of_a_key_is_valid(key: Key, validator: Any) -> None:
    data = yaml.load(RICH, Loader)
    if key.path.endswith(("shape.dynamic_shared_memory", "shape.blocks_per_sm")):
        data["compute"][0]["shape"] = {}
    holder: Any = data
    for part in filter(None, key.parent.split(".")):
        holder = holder["compute"][0] if part == "compute[]" else holder[part]
    holder[key.name] = yaml.load(key.example, Loader)
    assert list(validator.iter_errors(data)) == []
    if key.path != "extends":
        reading = read_bytes(yaml.safe_dump(data).encode(), str(FILE))
        assert reading.ok, reading.findings


@pytest.mark.parametrize("name", files.names({}))
def test_a_shipped_policy_is_valid_and_names_the_schema(name: str, validator: Any) -> None:
    text = files.find(name, {}).read_text(encoding="utf-8")
    assert list(validator.iter_errors(yaml.load(text, Loader))) == []
    (line,) = re.findall(r"^# yaml-language-server: \$schema=(.*)$", text, re.M)
    assert (files.find(name, {}).parent / line).resolve() == SCHEMA


def agree(reading: Reading, validator: Any) -> None:
    try:
        data = yaml.load(reading.source, Loader)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError):
        return  # an editor shows these without a schema
    valid = validator.is_valid(data)
    if reading.ok:
        assert valid, [error.message for error in validator.iter_errors(data)]
    elif valid:
        errors = {finding.code for finding in reading.findings if finding.severity == "error"}
        assert errors <= set(BEYOND), reading.findings


def test_the_schema_and_the_reader_agree_on_planted_mistakes(validator: Any, library: object) -> None:
    both = 0
    for mistake in MISTAKES[::20]:
        reading = read_bytes(mistake.text.encode(), str(FILE))
        agree(reading, validator)
        both += not reading.ok and is_refused(mistake.text, validator)
    assert both > 35  # of 53; most others are no YAML, or warnings


def is_refused(text: str, validator: Any) -> bool:
    try:
        return not validator.is_valid(yaml.load(text, Loader))
    except (yaml.YAMLError, ValueError, TypeError):
        return False


@settings(max_examples=100)
@given(POLICIES, st.data())
def test_the_schema_and_the_reader_agree_on_policies_made(values: dict[str, Any], data: st.DataObject) -> None:
    """As they are, and with one value that may be anything."""
    validator = _validator()
    agree(read_bytes(yaml.safe_dump(values, allow_unicode=True).encode(), "f"), validator)
    path = data.draw(st.sampled_from(sorted(_paths(values))))
    holder: Any = values
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = data.draw(ANYTHING)
    agree(read_bytes(yaml.safe_dump(values, allow_unicode=True).encode(), "f"), validator)


ANYTHING = st.one_of(
    st.sampled_from(["50%", "0%", ">=4", "=>4", "96KiB", "0x10", "leave", "all", "a::b", "[", "a::b c", "/x", "on"]),
    st.integers(-3, 2000),
    st.floats(0, 10).map(lambda number: round(number, 3)),
    st.booleans(),
    st.none(),
    st.text(max_size=5),
    st.lists(st.sampled_from(["a", 1, ">=4", "gemm"]), max_size=3),
    st.dictionaries(st.sampled_from(["match", "kernel", "threads", "A", "blocks_per_sm"]), st.just("1"), max_size=2),
)


def _validator() -> Any:
    return jsonschema.Draft7Validator(schema())


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    return sorted([*found, *(each for key, item in inner for each in _paths(item, (*path, key)))], key=repr)
