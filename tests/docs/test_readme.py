"""README is short, and its picture and numbers are those of their commands. All pages together are short, too."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from subprocess import CompletedProcess
from typing import Any

import pytest
from blocks import ROOT, pages

from tools.docs.table import span
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.table import SMALLEST, by_family

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "tools" / "gpu" / "results"
LIMIT, ALL = 900, 35_000  # words, as `wc -w` counts them
ROWS = {
    "stencils, halo by NCCL": "stencils, halo by NCCL",
    "through host memory": "stencils, through host memory",
    "by blocking copies": "stencils, blocking copies",
    "stencils in one order": "stencils in one order",
    "transpose in chunks (FFT)": "transpose of an FFT, in chunks",
    "any with 128³ points": SMALLEST,
}
LOOPS = {"a loop where priority helps": "gaining-loop-alone", "a loop where priority harms": "losing-loop"}
COMD = {"CoMD, 70³ and 100³ cells": ("70", "100"), "CoMD, 30³ and 49³ cells": ("30", "49")}


def words(text: str) -> int:
    return len(text.split())


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.fixture(scope="module")
def families() -> dict[str, list[Any]]:
    made = json.loads((RESULTS / "whole-one.json").read_text(encoding="utf-8"))
    return {**by_family(put_together(made)), "cells": put_together(made)}


def changes(cells: Iterable[Any], arm: str) -> list[float]:
    return [100 * cell["change"][arm][0] for cell in cells]


def test_the_readme_is_short() -> None:
    assert words(README) < LIMIT


def test_all_pages_together_are_short() -> None:
    """What is longer is data, or said twice: docs/data takes the first, and the second goes."""
    counted = {page: words((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert sum(counted.values()) <= ALL, sorted(counted.items(), key=lambda item: -item[1])


def test_the_table_is_that_of_the_data(families: dict[str, list[Any]]) -> None:
    for begin, name in ROWS.items():
        _, default, own = row(begin)
        found = [changes(families[name], arm) for arm in ("default", "own")]
        assert [default, own] == [span(values) if len(values) > 1 else f"{values[0]:+.1f}" for values in found], begin
    assert families.keys() - {"cells"} == set(ROWS.values())
    for begin, program in LOOPS.items():
        (cell,) = [cell for cell in families["cells"] if cell["program"] == program]
        _, default, own = row(begin)
        assert [default, own] == [f"{100 * cell['change'][arm][0]:+.1f}" for arm in ("default", "own")]


def comd(arm: str, cells: Iterable[str] = ("30", "49", "70", "100")) -> list[float]:
    with (RESULTS / "comd.csv").open(encoding="ascii") as file:
        rows = [one for one in csv.DictReader(file) if one["arm"] == arm and one["steps"] == "200"]
    return [float(one["change_percent"]) for one in rows if one["cells"] in cells]


def test_what_comd_gains_is_that_of_the_data() -> None:
    for begin, cells in COMD.items():
        _, default, own = row(begin)
        assert [default, own] == [span(comd(arm, cells)) for arm in ("default", "own")]


def test_the_noise_is_under_the_table(families: dict[str, list[Any]]) -> None:
    small = span(changes(families[SMALLEST], "observe"))
    large = span(change for name in ROWS.values() if name != SMALLEST for change in changes(families[name], "observe"))
    told = f"`observe`, which changes nothing: {large} %, with 128³ points {small} %, CoMD {span(comd('observe'))} %"
    assert told in " ".join(README.split())


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.write", "--check", "picture", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
