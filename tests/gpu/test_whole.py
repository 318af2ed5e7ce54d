"""Whole programs: how samples become changes, what is called possible, and which cells run together. No GPU."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from tools.gpu.whole import table
from tools.gpu.whole.cells import put_together

BARE = [[1.0], [1.02], [0.98], [1.0], [1.01], [0.99]]


def row(arm: str, factor: float = 1.0, start: int = 0, **more: Any) -> dict[str, Any]:
    ms = [[one * factor for one in turn] for turn in BARE]
    base = {"program": "halo-stream", "n": 256, "bits": 64, "arm": arm, "start": start, "ms": ms, "digest": "d"}
    return {**base, **more}


def one(*rows: dict[str, Any], **file: Any) -> dict[str, Any]:
    (found,) = put_together({"rows": list(rows), **file})
    return found


def test_a_change_is_of_rounds_and_has_an_interval() -> None:
    found = one(row("bare"), row("default", 0.8), row("observe"))
    assert found["ms"] == 1.0 and found["change"]["default"] == [-0.2, -0.2, -0.2]
    assert found["change"]["observe"] == [0.0, 0.0, 0.0] and not found["wrong"]


def test_starts_count_as_one_and_a_missing_one_is_left_out() -> None:
    found = one(row("bare"), row("bare", 2.0, 1), row("default", 0.9), row("default", 1.8, 1), row("own", 0.5))
    assert found["starts"] == 2 and found["rounds"] == 12
    assert found["change"]["default"][0] == -0.1 and found["change"]["own"][0] == -0.5


def test_what_is_possible_is_the_longer_part() -> None:
    found = one(row("bare", computation=[0.7, 0.7], communication=[0.4]), row("own", 0.8))
    assert found["possible"] == -0.3
    assert one(row("bare", computation=[1.2], communication=[0.4]))["possible"] == 0.0


def test_the_kept_table_has_the_last_of_each_cell(tmp_path: Path) -> None:
    machine = {"gpus": [{"name": "H"}], "driver": "1", "nccl": "2", "torch": "3", "begun": "2026-11-27T01:02:03"}
    totals = {"raised": 7, "launches": 9}
    for name, default in (("first", 0.9), ("last", 0.8)):
        rows = [row("bare"), row("again", 1.01), row("default", default, totals=totals)]
        (tmp_path / name).write_text(json.dumps({"machine": machine, "rows": rows}))
    assert table.main([str(tmp_path / "first"), str(tmp_path / "last"), "--csv", str(tmp_path / "kept.csv")]) == 0
    with (tmp_path / "kept.csv").open(newline="") as file:
        (kept,) = csv.DictReader(file)
    expected = {"program": "halo-stream", "points": "256", "bare_ms": "1.0", "default_percent": "-20.0", "raised": "7"}
    expected |= {"again_percent": "1.0", "gpu": "H", "driver": "1", "date": "2026-11-27", "wrong": ""}
    assert {key: kept[key] for key in expected} == expected and "own_percent" not in kept


def test_what_is_wrong_is_said() -> None:
    assert one(row("bare"), row("default", digest="e"))["wrong"] == ["digests differ: ['d', 'e']"]
    assert one(row("bare"), row("default", broken="ended"))["wrong"] == ["a process failed: default"]
    assert one(row("bare"), row("default", broken="ended", cut=True))["wrong"] == []
    assert "wrong" in table.table([one(row("bare"), row("default", broken="ended"))])
