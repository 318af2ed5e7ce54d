from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyshim.start import chosen, plan
from pyshim.start.environment import shipped


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that this checkout has just made."""
    monkeypatch.chdir(tmp_path)
    chosen.write_shipped(str(tmp_path))
    return tmp_path / "shipped.json"


@pytest.mark.parametrize("value", ["auto", "observe", "observe.yaml", "h100-paper"])
def test_what_is_kept_is_what_would_be_compiled(kept: Path, value: str) -> None:
    found = shipped(value, {}, str(kept))
    assert found is not None
    assert found == chosen.compiled(value, {})
    assert plan.choose(value, {}) == chosen.compiled(value, {})


def test_what_may_mean_something_else_is_not_looked_up(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "observe.yaml").write_text("policy: 1\nname: mine\n")
    for value in ("observe.yaml", "./observe", "a100-paper,h100-paper", "no-such", ""):
        assert shipped(value, {}, str(kept)) is None, value
    assert shipped("observe", {"OVERLAP_POLICY_PATH": "/x"}, str(kept)) is None


def test_a_folder_or_a_file_that_is_called_like_a_policy_changes_nothing(kept: Path, tmp_path: Path) -> None:
    """`--policy observe --report observe` makes such a folder."""
    (tmp_path / "observe").mkdir()
    (tmp_path / "h100-paper").write_text("no policy")
    (tmp_path / "auto.yaml").mkdir()
    for value in ("observe", "h100-paper", "auto.yaml"):
        assert shipped(value, {}, str(kept)) is not None, value


def test_a_damaged_file_counts_for_nothing(kept: Path, tmp_path: Path) -> None:
    data = json.loads(kept.read_text())
    for text in ("", "[]", "{}", json.dumps({**data, "observe": 1}), json.dumps({**data, "observe": {}})):
        kept.write_text(text)
        assert shipped("observe", {}, str(kept)) is None
    assert shipped("observe", {}, str(tmp_path / "missing")) is None


def test_the_path_of_a_users_own_policy_is_said_and_a_shipped_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\n")
    mine = chosen.compiled(str(tmp_path / "mine.yaml"), {})
    assert [(item["name"], item["file"]) for item in mine.described] == [("mine", str(tmp_path / "mine.yaml"))]
    (item,) = chosen.compiled("observe", {}).described
    assert item["file"] == "observe.yaml"
    assert set(item) == {"name", "hash", "file", "raise_share"}
    assert item["raise_share"] == "0" and mine.described[0]["raise_share"] == "50"
