"""README is short, and its picture and numbers are those of their commands. All pages together are short, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from subprocess import CompletedProcess
from typing import Any

import pytest
from blocks import ROOT, pages

from tools.answers.table import span
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.table import SMALLEST, by_family

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "tools" / "gpu" / "results"
LIMIT, ALL = 900, 35_000  # words, as `wc -w` counts them
ROWS = {
    "stencils, halo by NCCL": ("stencils, halo by NCCL",),
    "through host memory": ("stencils, through host memory",),
    "ranks of MPI": ("stencils, ranks of MPI",),
    "by blocking copies": ("stencils, blocking copies",),
    "stencils in one order": ("stencils in one order",),
    "conjugate gradient": ("conjugate gradient",),
    "transpose in chunks (FFT)": ("transpose of an FFT, in chunks",),
    "training with cuBLAS": ("training steps with cuBLAS",),
    "experts, recommender": ("mixture of experts, Triton", "recommender, training"),
    "any with 128³ points": (SMALLEST,),
}


def words(text: str) -> int:
    return len(text.split())


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.fixture(scope="module")
def families() -> dict[str, list[Any]]:
    made = json.loads((RESULTS / "whole.json").read_text(encoding="utf-8"))
    return by_family(put_together(made))


def changes(cells: Iterable[Any], arm: str) -> list[float]:
    return [100 * cell["change"][arm][0] for cell in cells]


def test_the_readme_is_short() -> None:
    assert words(README) < LIMIT


def test_all_pages_together_are_short() -> None:
    """What is longer is data, or said twice: docs/data takes the first, and the second goes."""
    counted = {page: words((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert sum(counted.values()) <= ALL, sorted(counted.items(), key=lambda item: -item[1])


def test_the_table_is_that_of_the_data(families: dict[str, list[Any]]) -> None:
    for begin, names in ROWS.items():
        cells = [cell for name in names for cell in families[name]]
        _, default, possible, _ = row(begin)
        assert default == span(changes(cells, "default")), begin
        assert possible == span(100 * cell["possible"] for cell in cells), begin
    told = {name for names in ROWS.values() for name in names}
    assert families.keys() == told


def test_the_noise_is_under_the_table(families: dict[str, list[Any]]) -> None:
    small = span(changes(families[SMALLEST], "observe"))
    others = (name for names in ROWS.values() for name in names if name != SMALLEST)
    large = span(change for name in others for change in changes(families[name], "observe"))
    assert f"`observe`, which changes nothing: {large} %, with 128³ points {small} %" in " ".join(README.split())


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.picture", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
