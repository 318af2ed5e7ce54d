"""README is short, and its picture and numbers are those of their commands. All pages together are short, too."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from blocks import ROOT, pages

from tools.docs import programs
from tools.docs.table import span
from tools.gpu.whole.table import SMALLEST

README = (ROOT / "README.md").read_text(encoding="utf-8")
LIMIT, ALL = 900, 35_000  # words, as `wc -w` counts them
FAMILIES = {
    "our stencils, halo by NCCL": "stencils, halo by NCCL",
    "our stencils, through host memory": "stencils, through host memory",
    "transpose of an FFT": "transpose of an FFT, in chunks",
    "training: DDP, FSDP2, tensor, pipeline": "training steps with cuBLAS",
    "short steps: 128³ points": SMALLEST,
}
FOREIGN = {
    "CoMD, 70³ and 100³ cells": ("comd-eam-70", "comd-eam-100"),
    "CoMD, 30³ and 49³ cells": ("comd-eam-30", "comd-eam-49"),
    "NVIDIA's Jacobi with NCCL": ("jacobi-nccl-2",),
}


def words(text: str) -> int:
    return len(text.split())


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.fixture(scope="module")
def families() -> dict[str, list[dict[str, str]]]:
    return programs.families(ROOT, programs.TWO)


def test_the_readme_is_short() -> None:
    assert words(README) < LIMIT


def test_all_pages_together_are_short() -> None:
    """What is longer is data, or said twice: docs/data takes the first, and the second goes."""
    counted = {page: words((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert sum(counted.values()) <= ALL, sorted(counted.items(), key=lambda item: -item[1])


def test_the_table_is_that_of_the_data(families: dict[str, list[dict[str, str]]]) -> None:
    for begin, name in FAMILIES.items():
        _, default, own = row(begin)
        assert [default, own] == [span(programs.changes(families[name], arm)) for arm in ("default", "own")], begin
    foreign = {(one["program"], one["arm"]): one for one in programs.rows(ROOT, programs.FOREIGN)}
    for begin, names in FOREIGN.items():
        gpu, *found = row(begin)
        assert gpu.split()[-1] in foreign[names[0], "bare"]["gpu"]
        for arm, said in zip(("default", "own"), found):
            assert said == span(float(foreign[name, arm]["change_percent"]) for name in names), begin


def test_the_noise_is_under_the_table(families: dict[str, list[dict[str, str]]]) -> None:
    of = {name: max(map(abs, programs.changes(own, "again"))) for name, own in families.items()}
    short = of.pop(SMALLEST)
    told = f"two bare runs differ by up to {short:.1f} % there, by up to {max(of.values()):.1f} % elsewhere"
    assert told in " ".join(README.split())


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.write", "--check", "picture", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
