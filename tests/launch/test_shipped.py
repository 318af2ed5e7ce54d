from __future__ import annotations

import builtins
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pyshim.launch import compile_shipped, policies, shipped


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that this checkout has just made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "overlap_abi.h").write_bytes(Path(shipped._HEADER).read_bytes())
    compile_shipped.write(str(tmp_path))
    return tmp_path / "shipped.json"


@pytest.mark.parametrize("value", ["auto", "observe", "observe.yaml", "h100-paper"])
def test_what_is_kept_is_what_would_be_compiled(kept: Path, value: str) -> None:
    found = shipped.look_up(value, {}, str(kept))
    assert found is not None
    assert policies.Chosen(*found) == policies.compile_now(value, {})
    assert policies.choose(value, {}) == policies.compile_now(value, {})


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
    assert set(item) == {"name", "hash", "file"}


@pytest.fixture(params=["checkout", "wheel"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built checkout and an installed wheel: the folder of the package in each."""
    package = tmp_path / "pyshim"
    original = Path(shipped._PACKAGE)
    shutil.copytree(original / "policy", package / "policy")
    shutil.copy(original / "enums.py", package)
    shutil.copytree(original.parent / "policies", tmp_path / "policies")
    (package / "_lib").mkdir()
    shutil.copy(shipped._HEADER, package / "_lib")
    monkeypatch.setattr(shipped, "_PACKAGE", str(package))
    monkeypatch.setattr(shipped, "_INSTALLED", str(package / "policies"))
    monkeypatch.setattr(shipped, "_HEADER", str(package / "_lib" / "overlap_abi.h"))
    monkeypatch.setattr(shipped, "KEPT", str(package / "_lib" / "shipped.json"))
    monkeypatch.chdir(tmp_path)
    compile_shipped.write(str(package / "_lib"))
    if request.param == "wheel":
        (tmp_path / "policies").rename(package / "policies")
    return package


def _look_up(package: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, list[str]]:
    """Whether the kept policy is used, and the names of the files that were opened for that."""
    opened: list[str] = []
    real = builtins.open

    def count(path: Any, *arguments: Any, **keywords: Any) -> Any:
        opened.append(os.path.basename(path))
        return real(path, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", count)
        found = shipped.look_up("observe", {}, str(package / "_lib" / "shipped.json"))
    return found is not None, opened


def test_a_start_opens_the_kept_file_alone_and_no_source(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _look_up(tree, monkeypatch) == (True, ["shipped.json"])


@pytest.mark.parametrize("tree", ["checkout"], indirect=True)
@pytest.mark.parametrize(("name", "word"), [("policies/observe.yaml", "observe"), ("pyshim/enums.py", "hold")])
def test_a_source_that_changed_is_noticed_whatever_its_time_says(
    name: str, word: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tree.parent / name
    before, text = source.stat(), source.read_text()
    changed = text.replace(word, word.upper(), 1)
    assert len(changed) == len(text) and changed != text
    source.write_text(changed)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not _look_up(tree, monkeypatch)[0]


@pytest.mark.parametrize("tree", ["checkout"], indirect=True)
def test_a_copy_of_a_checkout_is_judged_by_content(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tree.parent / "policies" / "observe.yaml"
    policy.write_bytes(policy.read_bytes())
    used, opened = _look_up(tree, monkeypatch)
    assert used and "observe.yaml" in opened


def test_what_is_kept_for_a_wheel_does_not_depend_on_the_time_of_the_build(kept: Path) -> None:
    first = kept.read_bytes()
    os.utime(shipped._HEADER)
    compile_shipped.write(str(kept.parent))
    assert kept.read_bytes() == first
