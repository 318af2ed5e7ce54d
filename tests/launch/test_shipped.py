from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyshim.launch import policies, shipped


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that this checkout has just made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "overlap_abi.h").write_bytes(Path(shipped._HEADER).read_bytes())
    shipped.write(str(tmp_path))
    return tmp_path / "shipped.json"


@pytest.mark.parametrize("value", ["auto", "observe", "observe.yaml", "h100-paper"])
def test_what_is_kept_is_what_would_be_compiled(kept: Path, value: str) -> None:
    found = shipped.look_up(value, {}, str(kept))
    assert found is not None
    assert policies.Chosen(*found) == policies.compile_now(value, {})
    assert policies.choose(value, None, {}) == policies.compile_now(value, {})


def test_what_may_mean_something_else_is_not_looked_up(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "observe.yaml").write_text("policy: 1\nname: mine\n")
    for value in ("observe.yaml", "./observe", "a100-paper,h100-paper", "no-such", ""):
        assert shipped.look_up(value, {}, str(kept)) is None, value
    assert shipped.look_up("observe", {"OVERLAP_POLICY_PATH": "/x"}, str(kept)) is None


def test_a_file_from_other_sources_or_a_damaged_one_counts_for_nothing(kept: Path, tmp_path: Path) -> None:
    data = json.loads(kept.read_text())
    for text in ("", "[]", "{}", json.dumps({**data, "made_from": "0"}), json.dumps({**data, "policies": 1})):
        kept.write_text(text)
        assert shipped.look_up("observe", {}, str(kept)) is None
    assert shipped.look_up("observe", {}, str(tmp_path / "missing")) is None


def test_the_path_of_a_users_own_policy_is_said_and_a_shipped_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\n")
    chosen = policies.compile_now(str(tmp_path / "mine.yaml"), {})
    assert [(item["name"], item["file"]) for item in chosen.described] == [("mine", str(tmp_path / "mine.yaml"))]
    (item,) = policies.compile_now("observe", {}).described
    assert item["file"] == "observe.yaml"
