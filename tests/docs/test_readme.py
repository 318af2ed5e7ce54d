"""The picture and the numbers of the README are those of their commands."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from blocks import ROOT

from tools.docs import programs
from tools.docs.table import span
from tools.gpu.whole.table import SMALLEST

WORDS = {5: "five"}
QUIET = {
    "jacobi-threads": "NVIDIA's Jacobis", "jacobi-threads-2": "NVIDIA's Jacobis", "jacobi-nccl-2": "NVIDIA's Jacobis",
    "jacobi3d": "jacobi3d by copies between peers", "jacobi3d-2": "jacobi3d by copies between peers",
    "jacobi3d-ranks-2": "jacobi3d by copies between peers",
    **dict.fromkeys(("comd-eam-30", "comd-eam-49"), "CoMD with 30³ and 49³ cells"),
    "cufhe": "cuFHE", "fsdp-offload": "FSDP2 with weights on the host", "fdtd2d": "FDTD2D",
    "llm.c": "llm.c", "llm.c-2": "llm.c",
    "xsbench": "XSBench", "babelstream": "BabelStream",
}  # fmt: skip
found = {(one["program"], one["arm"]): one for one in programs.rows(ROOT, programs.FOREIGN)}
changes = {key: float(one["change_percent"]) for key, one in found.items()}
README = (ROOT / "README.md").read_text(encoding="utf-8")
ONE_GPU = (programs.ONE, Path("docs/data/stencils-one-gpu.csv"), Path("docs/data/rule-choices.csv"))
STENCILS = ("stencils, through host memory", "stencils, halo by NCCL")
FAMILIES = {
    "our stencils": STENCILS,
    "PyTorch on NVLink": ("training steps with cuBLAS",),
    "may lose: stencils with blocking copies": ("stencils, blocking copies", SMALLEST),
}
COMD = ("comd-eam-70", "comd-eam-100")
EARLIER = ("comd-eam-70, H100", "comd-eam-100, H100", "comd-eam-warp-70", "comd-eam-cta-70")  # of few processes
STAGED = ("jacobi3d-staged", "jacobi3d-staged-2")
FOREIGN = {"jacobi3d, 512³": STAGED, "CoMD with 70³": (*COMD, "astaroth", "gromacs-water")}


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.fixture(scope="module")
def families() -> dict[str, list[dict[str, str]]]:
    return programs.families(ROOT, programs.TWO)


def most(values: Iterable[float]) -> str:
    return f"{max(map(abs, values)):.1f}"


def test_the_table_is_that_of_the_data(families: dict[str, list[dict[str, str]]]) -> None:
    for begin, names in FAMILIES.items():
        gpu, told, own, noise = row(begin)
        cells = [one for name in names for one in families[name]]
        assert gpu == "2 H100" and all("H100" in one["gpu"] for one in cells)
        assert told.split(": ")[-1] == span(programs.changes(cells, "default")), begin
        assert (own, noise) == (span(programs.changes(cells, "own")), most(programs.changes(cells, "again"))), begin
    for begin, names in FOREIGN.items():
        gpus, told, own, noise = row(begin)
        arms = [[changes[name, arm] for name in names] for arm in ("default", "own", "again")]
        assert {found[name, "default"]["gpu"].split()[1] for name in names} == set(gpus.split(", ")), begin
        assert (told, own, noise) == (span(arms[0]), span(arms[1]), most(arms[2])), begin


def test_the_sentence_under_the_table_is_of_all_others() -> None:
    told = {*EARLIER, *(name for names in FOREIGN.values() for name in names)}
    others = {name: changes[name, "default"] for name, arm in changes if arm == "again" and name not in told}
    noisy = [name for name in others if abs(changes[name, "again"]) > programs.NOISY]
    quiet = [change for name, change in others.items() if name not in noisy]
    sentence = " ".join(README.split())
    assert (
        f"changed by {span(quiet)} %, not all of them surely; {WORDS[len(noisy)]} more programs are too noisy to tell"
        in sentence
    )
    assert len(quiet) == len(QUIET) and all(word in sentence for word in QUIET.values())
    with (ROOT / "tools/gpu/results/tuned.csv").open(newline="") as file:
        (best,) = [one for one in csv.DictReader(file) if one["program"] == "fsdp" and one["ranks"] == "2"
                   and one["what"] == "apart" and "BUFFSIZE" in one["arm"]]  # fmt: skip
    assert f"found {float(best['change_percent']):.1f} % for an FSDP2 step on two H200" in sentence
    with (ROOT / "tools/gpu/results/tuned.csv").open(newline="") as file:
        (four,) = [one for one in csv.DictReader(file) if one["program"] == "fsdp" and one["ranks"] == "4"
                   and "BUFFSIZE" in one["arm"] and one["peer_access"] == best["peer_access"]]  # fmt: skip
    assert f"and {float(four['change_percent']):.1f} % on four (one run)." in sentence


def test_what_the_trace_that_ships_gained_is_in_the_data() -> None:
    """It is that of a pair of estimate and gain, which another test compares with what was measured."""
    shipped = (ROOT / "pyshim/_lib/demo/demo-stencil.json.gz").read_bytes()
    (pair,) = [one for one in programs.rows(ROOT, Path("docs/data/estimates.csv"))
               if one["trace"] and (ROOT / "tests/traces/data" / one["trace"]).read_bytes() == shipped]  # fmt: skip
    expected, gained = (-float(pair[f"{what}_percent"]) for what in ("expected", "gained"))
    assert f"raising should save {expected:.0f} %; on two H200 it saved {gained:.0f} %" in " ".join(README.split())


def test_what_estimates_missed_is_in_the_data() -> None:
    pairs = programs.rows(ROOT, Path("docs/data/estimates.csv"))
    about = [pair for pair in pairs if pair["estimate"] == "about"]
    found = [-float(pair["gained_percent"]) for pair in about if float(pair["expected_percent"]) >= -2]
    missed = [gained for gained in found if gained >= 3]
    said = f"of {len(found)} measured for which next to nothing was expected, four gained {min(missed):.0f} to"
    assert f"{said} {max(missed):.0f} %." in " ".join(README.split()) and len(missed) == 4


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.write", "--check", "picture", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/who-gains.md"])
def test_what_observe_costs_is_that_of_all_our_programs(page: str) -> None:
    """On two GPUs and on one, beside what two series of bare runs differ by; blocking copies change most."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    two, one = programs.rows(ROOT, programs.TWO), [cell for file in ONE_GPU for cell in programs.rows(ROOT, file)]
    cells = [*two, *one]
    assert max(cells, key=lambda cell: float(cell["observe_percent"]))["program"] == "host-copy"
    changes = programs.changes(cells, "observe")
    few = sum(abs(change) <= 2 for change in changes)
    assert f"2 % in {few} of {len(changes)} measurements of our programs on H100 and H200" in text
    assert f"at most {span(changes)} % (the most in stencils with blocking copies)" in text
    assert f"Two series of runs without it differ by {span(programs.changes(two, 'again'))} %" in text


def test_the_generated_table_of_the_page_is_that_of_its_commands(
    python: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    """Pages of a device that observes, some damaged; the warnings are on stderr."""
    folder = str(tmp_path / "runs")
    made = python("-m", "tools.bench.jobs", "--runs", "2", "--folder", folder, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    done = python("-m", "pyshim", "report", folder, "--jobs", cwd=ROOT, env={"COLUMNS": "", "TZ": "UTC"})
    page = (ROOT / "docs" / "how-to" / "who-gains.md").read_text(encoding="utf-8")
    assert f"```text\n{done.stdout}```" in page
