"""The picture and the numbers of the README are those of their commands."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from blocks import ROOT

from tools.docs import programs
from tools.docs.table import span
from tools.gpu.whole.table import SMALLEST

README = (ROOT / "README.md").read_text(encoding="utf-8")
FAMILIES = {
    "our stencils, exchange through host memory": "stencils, through host memory",
    "our stencils, exchange by NCCL": "stencils, halo by NCCL",
    "our stencils, blocking copies": "stencils, blocking copies",
    "PyTorch training": "training steps with cuBLAS",
    "stencils with 128³ points": SMALLEST,
}
FOREIGN = {
    "CoMD (molecular dynamics), 70³ and 100³": ("comd-eam-70", "comd-eam-100", "comd-eam-warp-70", "comd-eam-cta-70"),
    "NVIDIA's Jacobi, copies": ("jacobi-threads-2",),
    "other Jacobis, FDTD2D": ("jacobi-threads", "jacobi-nccl-2", "fdtd2d", "xsbench", "babelstream"),
    "CoMD 30³ and 49³, OpenMM": (
        *("comd-eam-30", "comd-eam-49", "openmm-pme", "llm.c", "llm.c-2", "timm-loader", "pyg-loader"),
        *("gasal2", "cupy-map-reduce", "simpleStreams", "simpleMultiCopy", "jacobiCudaGraphs"),
    ),
}


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.fixture(scope="module")
def families() -> dict[str, list[dict[str, str]]]:
    return programs.families(ROOT, programs.TWO)


def test_the_table_is_that_of_the_data(families: dict[str, list[dict[str, str]]]) -> None:
    for begin, name in FAMILIES.items():
        gpu, told = row(begin)
        assert gpu == "2 H100" and all("H100" in one["gpu"] for one in families[name])
        assert told.split(": ")[-1] == span(programs.changes(families[name], "default")), begin
    foreign = {(one["program"], one["arm"]): one for one in programs.rows(ROOT, programs.FOREIGN)}
    for begin, names in FOREIGN.items():
        gpus, told = row(begin)
        measured = {(foreign[name, "default"]["gpus"], foreign[name, "default"]["gpu"].split()[1]) for name in names}
        assert {" ".join(one).replace("1 ", "") for one in measured} == set(gpus.split(", ")), begin
        assert told.split(": ")[-1] == span(float(foreign[name, "default"]["change_percent"]) for name in names), begin
    told = {name for names in FOREIGN.values() for name in names}
    assert told == {program for program, arm in foreign if arm == "default"}, "the README leaves none out"


def test_the_noise_is_under_the_table(families: dict[str, list[dict[str, str]]]) -> None:
    of = {name: max(map(abs, programs.changes(own, "again"))) for name, own in families.items()}
    short = of.pop(SMALLEST)
    told = f"differ by up to {short:.1f} % in the last row, by up to {max(of.values()):.1f} % in our other rows"
    assert told in " ".join(README.split())


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.write", "--check", "picture", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
