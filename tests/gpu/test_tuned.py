"""tools/gpu/tuned.py: `overlap tune` and processes of each arm in turns, in front of a program of made-up times."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import tuned

CODE = 'import os; print({"8": 80, "16": 90}.get(os.environ.get("NCCL_MIN_CTAS"), 100), "ms a step")'


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tuned, "steps", lambda program, ranks: [sys.executable, "-c", CODE])
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    out = tmp_path / "tuned.json"
    words = ["--out", str(out), "--programs", "ddp", "--processes", "2", "--values", "NCCL_MIN_CTAS=16"]
    assert tuned.main(words) == 0
    return json.loads(out.read_text())


def test_what_is_kept_is_measured_apart_as_well(made: Any) -> None:
    (found,), (apart,) = made["searches"], made["apart"]
    assert found["answer"]["kept"] == "NCCL_MIN_CTAS=8" and not made["peer_access"]
    assert apart["ms"] == {"bare": [100, 100], "NCCL_MIN_CTAS=16": [90, 90], "NCCL_MIN_CTAS=8": [80, 80]}


def test_the_table_has_both(made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned.main(["--table", str(tmp_path / "tuned.json")])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["peer_access"] for row in rows} == {"no"}
    kept = [row for row in rows if row["arm"] == "NCCL_MIN_CTAS=8"]
    assert [(row["what"], row["change_percent"]) for row in kept] == [("search", "-20.0"), ("apart", "-20.0")]
    assert kept[0]["verdict"] == "kept"


def test_a_program_that_cannot_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "steps", lambda program, ranks: [sys.executable, "-c", "raise SystemExit('no GPU')"])
    out = tmp_path / "tuned.json"
    assert tuned.main(["--out", str(out), "--programs", "ddp", "--processes", "0"]) == 1
    assert "no GPU" in json.loads(out.read_text())["searches"][0]["said"]
