"""The fields of JSON answers that the reference lists are those that the commands print, no more and no fewer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_blocks import World

from tools.docs.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]

_POLICY = """\
policy: 1
name: fields
compute:
  - match: {kernel: "stencil_i*"}
    shape: {blocks_per_sm: 1}
  - match: {kernel: nothing}
    shape: leave
"""
_TRACE = ROOT / "tests/traces/data/stencil-nccl-events.json.gz"
COMMANDS = {
    "overlap report DIR --json": "overlap report run --json",
    "overlap report FOLDER --jobs --json": "overlap report run --jobs --json",
    "overlap tune ... --json": "overlap tune --simulate h100 --metric '([0-9.]+) ms an' --json -- demo-stencil",
    "overlap explain TRACE --json": f"overlap explain {_TRACE} --json",
    "overlap policy list --json": "overlap policy list --json",
    "overlap policy room --json": "overlap policy room --gpu mi250x --kernel 256:64:8192 --json",
    "overlap doctor --json": "overlap doctor --json",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> World:
    made = World(tmp_path_factory.mktemp("fields"), clean_environment)
    made.write("fields.yaml", _POLICY)
    made.write("wrong.yaml", _POLICY.replace("leave", "leaf"))
    for report in ("run", "again"):
        done = made.run(f"overlap-run --policy ./fields.yaml --report {report} ./program")
        assert done.returncode == 0, done.stdout
    return made


def paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, dict):
        return
    elif isinstance(value, list):
        yield path + "[]"
        for inner in value:
            if isinstance(inner, dict):
                yield from paths(inner, path + "[]")
    else:
        yield path


def covers(listed: str, path: str) -> bool:
    if listed.endswith("*"):
        return path.startswith(listed[:-2]) or listed == "*"
    segments = listed.split(".")
    pattern = r"\.".join(r"[^.]+" if part.isupper() else re.escape(part) for part in segments)
    return re.fullmatch(pattern, path) is not None


@pytest.mark.parametrize("command", FORMATS)
def test_fields_of(command: str, world: World) -> None:
    done = world.run(COMMANDS[command] + " 2>said")
    printed = set(paths(json.loads(done.stdout)))
    fields = FORMATS[command]
    lists = {path for path in printed if path.endswith("[]")}
    unknown = {path for path in printed - lists if not any(covers(listed, path) for listed in fields)}
    assert not unknown, "tools/docs/formats.py does not list them"
    gone = {path for path, meaning in fields.items() if not meaning.startswith("?") and not _seen(path, printed)}
    assert not gone, "no answer has them any more"


def _seen(listed: str, printed: set[str]) -> bool:
    """An empty list says nothing of what would be in it."""
    empty = listed.rpartition("[].")[0] + "[]"
    return any(covers(listed, path) for path in printed) or (
        "[]." in listed and empty in printed and not any(path.startswith(empty + ".") for path in printed)
    )


def test_every_answer_is_asked_for() -> None:
    assert set(COMMANDS) == set(FORMATS)
