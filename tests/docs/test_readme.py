"""README is short, and its picture and numbers are those of their commands. All pages together are short, too."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from subprocess import CompletedProcess

import pytest
from blocks import ROOT, pages

from tools.answers import programs
from tools.answers.table import percent, span
from tools.gpu.whole.table import SMALLEST

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
def families() -> dict[str, list[dict[str, str]]]:
    return programs.families(ROOT, programs.ONE)


def test_the_readme_is_short() -> None:
    assert words(README) < LIMIT


def test_all_pages_together_are_short() -> None:
    """What is longer is data, or said twice: docs/data takes the first, and the second goes."""
    counted = {page: words((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert sum(counted.values()) <= ALL, sorted(counted.items(), key=lambda item: -item[1])


def test_the_table_is_that_of_the_data(families: dict[str, list[dict[str, str]]]) -> None:
    for begin, name in ROWS.items():
        _, default, own = row(begin)
        assert [default, own] == [span(programs.changes(families[name], arm)) for arm in ("default", "own")], begin
    assert families.keys() == set(ROWS.values())
    loops = {one["program"]: one for one in programs.rows(ROOT, programs.ONE)}
    for begin, program in LOOPS.items():
        _, default, own = row(begin)
        assert [default, own] == [percent(float(loops[program][f"{arm}_percent"])) for arm in ("default", "own")]


def comd(arm: str, cells: Iterable[str] = ("30", "49", "70", "100")) -> list[float]:
    with (RESULTS / "foreign.csv").open(encoding="ascii") as file:
        rows = [one for one in csv.DictReader(file) if one["arm"] == arm]
    wanted = {f"comd-eam-{edge}" for edge in cells}
    return [float(one["change_percent"]) for one in rows if one["program"] in wanted]


def test_what_comd_gains_is_that_of_the_data() -> None:
    for begin, cells in COMD.items():
        _, default, own = row(begin)
        assert [default, own] == [span(comd(arm, cells)) for arm in ("default", "own")]


def test_the_noise_is_under_the_table(families: dict[str, list[dict[str, str]]]) -> None:
    of = {name: programs.changes(own, "observe") for name, own in families.items()}
    small, large = span(of.pop(SMALLEST)), span(change for own in of.values() for change in own)
    told = f"`observe`, which changes nothing: {large} %, with 128³ points {small} %, CoMD {span(comd('observe'))} %"
    assert told in " ".join(README.split())


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.picture", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
