"""The files of the overlap suite, as read, and what is surely lost in them. The files are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import suite_files

from pyshim.errors import OverlapError
from tools.answers import overlap, suite
from tools.answers.comparing import against

LOSS = {"within": (1.0, -1), "beyond": (1.03, 1), "in the noise": (1.01, 0)}


@pytest.mark.parametrize("name", LOSS)
def test_a_loss_is_ruled_out_sure_or_neither(name: str, tmp_path: Path) -> None:
    factor, expected = LOSS[name]
    cells = suite_files.matrix({"policy:h200": factor}, noise=0.001 if expected else 0.02)
    found = against(
        suite.parse(suite_files.write(tmp_path, suite_files.suite(cells))).runs[0].primary, "policy:h200", "plain"
    )
    assert found is not None and {change.loss for change in found.changes} == {expected}
    assert bool(found.unbounded) is (expected != -1)


def test_every_cell_has_a_row_for_every_arm(tmp_path: Path) -> None:
    for name in overlap.SETS:
        suite_files.write(tmp_path, suite_files.suite(suite_files.matrix(), name))
    rows = [dict(zip(overlap.CELLS, row)) for row in overlap.every_cell(tmp_path).rows]
    assert len(rows) == len(overlap.SETS) * 10 * (len(suite_files.FACTORS) + 3)
    by = {(row["set"], row["cell"], row["arm"]): row for row in rows}
    one = by["overlap-two-gpus", "tiled + link, one, 0.5", "priority"]
    low, middle, high = (float(one[key]) for key in ("low", "vs_plain_percent", "high"))
    assert low < middle < high and abs(middle + 10) < 1
    assert by["overlap-two-gpus", "tiled + link, one, 0.5", "computation"]["vs_plain_percent"] is None


def test_the_model_is_compared_over_common_cells(tmp_path: Path) -> None:
    for name in overlap.SETS:
        suite_files.write(tmp_path, suite_files.suite(suite_files.matrix(), name))
    suite_files.write(
        tmp_path,
        suite_files.simulated({"hold": suite_files.FACTORS, "backfill": {"priority": 1.0, "order+priority": 0.99}}),
    )
    (hold, backfill) = overlap.model(tmp_path).rows
    assert hold[0] == "hold" and float(str(hold[2])) < 0.5 and float(str(hold[3])) > 0.95
    assert backfill[0] == "backfill" and float(str(backfill[2])) > 9


BROKEN: dict[str, tuple[Any, str]] = {
    "another version": (lambda one: one.update(version=2), "format version 2"),
    "another set": (lambda one: one.update(set="x"), "it says that it is x"),
    "no cells": (lambda one: one["runs"][0].update(cells=[]), "no cells"),
    "no times": (lambda one: one["runs"][0]["cells"][0]["arms"]["plain"].update(ms=[0.0]), "not above 0"),
    "simulated": (lambda one: one["machine"].update(simulated=True), "simulated, in a file of measured times"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_of_another_form_is_one_error(name: str, tmp_path: Path) -> None:
    change, expected = BROKEN[name]
    found = suite_files.suite(suite_files.matrix())
    change(found)
    path = tmp_path / "overlap-standins.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(OverlapError, match=expected):
        suite.parse(path)
