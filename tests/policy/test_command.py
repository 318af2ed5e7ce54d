"""`overlap policy check`: what it prints where, and its exit status."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pyshim.cli import policy

GOOD = "policy: 1\nname: good\n"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    policy.add_to(parser.add_subparsers())
    parsed = parser.parse_args(["policy", "check", *arguments])
    status: int = parsed.run(parsed)
    return status


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "odd.yaml").write_text(GOOD + "gpu: NVIDIA Nothing\n", encoding="utf-8")
    (tmp_path / "bad.yaml").write_text("policy: 1\nnaem: bad\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_several_files_are_answered_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bad.yaml", "good.yaml") == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert (
        out
        == """\
bad.yaml:2:1: error[unknown-key]: unknown key `naem`
  |
2 | naem: bad
  | ^^^^
  = help: did you mean `name`?

bad.yaml: 1 error

good.yaml: ok, 0 rules
"""
    )


def test_warnings_alone_are_no_mistakes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("odd.yaml") == 0
    out = capsys.readouterr().out
    assert "warning[unknown-gpu]" in out
    assert out.endswith("odd.yaml: ok, 0 rules, 1 warning\n")


def test_a_shipped_policy_is_checked_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("h100-paper") == 0
    assert run("h100-paper.yaml") == 0
    assert capsys.readouterr().out.count("h100-paper.yaml: ok, 1 rule\n") == 2


def test_a_file_that_is_not_there_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("./none.yaml") == 1
    assert capsys.readouterr().out == "none.yaml: error[missing-file]: no such file\n\nnone.yaml: 1 error\n"


def test_a_policy_that_does_not_fit_into_the_table_is_a_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "".join(f"  - {{match: {{kernel: k{i}}}, shape: leave}}\n" for i in range(767))
    Path("big.yaml").write_text(f"{GOOD}compute:\n{rules}", encoding="utf-8")
    assert run("big.yaml") == 1
    assert "error[too-large]" in capsys.readouterr().out


def test_no_file_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 2
