"""The tables of docs/results.md and the files of docs/data are what their data and the library say today."""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tools.docs import programs, table

Answers = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/results.md")
DATA = Path("docs/data")
GROMACS = "gromacs-water"


def test_the_tables_are_of_today(answers: Answers) -> None:
    done = answers(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "old", "new"), [("whole", "-17.7 to", "-30.7 to"), ("sizes-limits", "h100,", "h101,")]
)
def test_a_number_that_was_edited_is_found_and_written_back(
    name: str, old: str, new: str, answers: Answers, copy: Path
) -> None:
    path = PAGE if name == "whole" else DATA / f"{name}.csv"
    before = (copy / path).read_text(encoding="utf-8")
    assert old in before
    (copy / path).write_text(before.replace(old, new), encoding="utf-8")
    done = answers(copy, "--check", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"{path}: {name} differs from its sources: .venv/bin/python -m tools.docs.write --write {name}\n"
    )
    assert answers(copy, "--write", name).returncode == 0
    assert (copy / path).read_text(encoding="utf-8") == before


def test_a_changed_footprint_is_seen(answers: Answers, copy: Path) -> None:
    assert answers(copy, "--check", "sizes-by-kernel").returncode == 0
    planned = copy / "tools" / "docs" / "planned.py"
    before = planned.read_text(encoding="utf-8")
    assert "21568" in before
    planned.write_text(before.replace("21568", "30016"), encoding="utf-8")
    assert answers(copy, "--check", "sizes-by-kernel").returncode == 1


# ---- The page and the files ----


def test_every_table_of_the_page_is_made_and_narrow() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    made = re.findall(r"<!-- tools/docs/write.py: [\w-]+ -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines == [line for part in made for line in part.splitlines()]
    for part in made:
        assert len({line.count("|") for line in part.splitlines()}) == 1
        assert part.splitlines()[0].count("|") <= 8


def test_every_table_has_its_command() -> None:
    """Named in the text between it and the next table."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for part in text.split("<!-- tools/docs/write.py: ")[1:]:
        rest = part.partition("<!-- end -->")[2]
        command = r"`[^`]*(?:tools/gpu/run|tools\.docs\.write)[^`]*`"
        assert re.search(command, rest), part.partition(" ")[0]


def test_files_are_whole_and_linked() -> None:
    found = [*(ROOT / "docs").rglob("*.md"), ROOT / "shim" / "README.md"]
    pages = "".join(page.read_text(encoding="utf-8") for page in found)
    for path in sorted((ROOT / DATA).glob("*.csv")):
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1, path.name
        assert f"data/{path.name})" in pages, path.name


def test_the_published_number_has_its_baseline() -> None:
    for page in (PAGE, Path("docs/explanation/limits.md")):
        for paragraph in re.split(r"\n\n|\n(?=- )", (ROOT / page).read_text(encoding="utf-8")):
            if "25.5" in paragraph:
                assert "its baseline is not known to us" in " ".join(paragraph.split())


def cells(name: str) -> list[dict[str, str]]:
    return programs.rows(ROOT, DATA / f"{name}.csv")


def span(found: Iterable[dict[str, str]], column: str) -> tuple[float, float]:
    values = [float(row[column]) for row in found if row[column]]
    return min(values), max(values)


def words(page: str | Path) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def small(row: dict[str, str]) -> bool:
    return row["points"] == "128"


def shares(found: Iterable[dict[str, str]]) -> list[float]:
    """Of what own priorities gain, where that is 3 % or more and steps are not short; in per cent, the least first."""
    both = [(float(row["own_percent"]), float(row["default_percent"])) for row in found if row["own_percent"]]
    return sorted(100 * default / own for own, default in both if own <= -3)


def test_what_the_page_says_of_two_gpus_is_in_the_data() -> None:
    """Numbers that were written by hand. Where one of these fails, the sentence must be written again."""
    page, every = words(PAGE), cells("whole-programs")
    assert f"{len(every)} programs and sizes" in page and not [row for row in every if row["wrong"]]
    large, short = [row for row in every if not small(row)], [row for row in every if small(row)]
    found = shares(large)
    kept = [share for share in found if share > 50]
    said = f"gets {kept[0]:.0f} to {kept[-1]:.0f} % of what own priorities gain**, in {len(kept)} of the {len(found)} "
    assert f"{said}cells" in page
    noise = [max(map(abs, span(rows, "again_percent"))) for rows in (large, short)]
    assert f"by up to {noise[0]:.1f} %, and up to {noise[1]:.1f} % with 128\u00b3 points" in page
    changes = " and ".join(f"{value:+.1f}" for value in span(short, "default_percent"))
    assert f"the default's changes lie between {changes} %" in page
    (sure,) = [row for row in short if float(row["default_low"]) > 1]
    assert f"{float(sure['default_low']):+.1f} to {float(sure['default_high']):+.1f} %)" in page
    limits = words("docs/explanation/limits.md")
    said = f"cost up to {span(short, 'default_percent')[1]:.1f} % where two bare arms differ by up to {noise[1]:.1f} %"
    assert f"({span(short, 'bare_ms')[0]:.2f} to" in page and said in limits
    worst = span(every, "published_percent")[1]
    assert f"by up to {worst:.0f} %: a stencil needs" in page and f"cost up to {worst:.0f} % of a whole" in limits
    steps = [row for row in every if row["family"].startswith("training steps")]
    middles, lows, highs = (span(steps, f"default_{part}") for part in ("percent", "low", "high"))
    shown = [table.percent(value) for value in (*middles, lows[0], highs[1])]
    for other in (PAGE, "docs/explanation/limits.md", "docs/how-to/training.md"):
        assert "changed by {} to {} % (90 % intervals: {} to {} %)".format(*shown) in words(other), other
    stencils = [
        span([row for row in large if row["family"] == f"stencils, {how}"], "default_percent")
        for how in ("halo by NCCL", "through host memory")
    ]
    ranges = [f"{-most:.0f} to {-least:.0f} %" for least, most in stencils]
    assert "became {} faster with NCCL and {} with an exchange through host memory".format(*ranges) in words(
        "docs/how-to/hpc.md"
    )


def test_what_the_page_says_of_estimates_is_in_the_data() -> None:
    said = [row for row in cells("estimates") if float(row["expected_percent"]) < -2]
    about, bounds = (
        [float(row["gained_percent"]) - float(row["expected_percent"]) for row in said if row["estimate"] == estimate]
        for estimate in ("about", "at most")
    )
    assert f"off by {min(about):.1f} to {max(about):+.1f} points** of a step, in {len(about)} traces" in words(PAGE)
    assert f"{min(bounds):.0f} to {max(bounds):.0f} points above what came" in words(PAGE)
    others = [row for row in cells("estimates") if row["estimate"] == "about" and row not in said]
    assert f"For {len(others)} others next to nothing was expected" in words(PAGE)


def test_what_the_page_says_of_one_gpu_is_in_the_data() -> None:
    page, found = words(PAGE), programs.rows(ROOT, programs.ONE)
    assert not [row for row in found if row["wrong"]] and f"whole-one`, {len(found)} cells" in page
    more = [row for name in ("stencils-one-gpu", "rule-choices") for row in cells(name)]
    assert f"With {len(more)} cells more" in page
    known = shares([*more, *(row for row in found if not small(row))])
    assert f"gain 3 % or more in {len(known)} cells" in page
    assert known[1] == pytest.approx(69, abs=1) and known[0] < 0
    assert f"the default gets {known[2]:.0f} to {known[-1]:.0f} % of that gain" in page


def test_what_the_page_says_of_shaping_is_in_the_data() -> None:
    page = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    shaped = [row for row in cells("overlap") if row["arm"] == "published"]
    least, most = span(shaped, "against_priority_percent")
    assert f"Shaping saves up to {-least:.1f} % more in some cells, and costs up to {most:.0f} % in others" in page
    wide = [row for row in cells("overlap") if row["arm"] == "priority" and "attention + SendRecv" in row["cell"]]
    explained = " ".join((ROOT / "docs/explanation/how-it-works.md").read_text(encoding="utf-8").split())
    narrow = [row for row in cells("overlap") if row["arm"] == "priority" and "all-reduce" in row["cell"]]
    (_, most), (_, least) = span(wide, "change_percent"), span(narrow, "change_percent")
    assert (
        f"cost up to {most:.1f} % of a kernel and its collective on an H200, narrow ones up to {least:.1f} %"
        in explained
    )


def test_what_the_page_says_of_foreign_programs_is_in_the_data() -> None:
    page = words(PAGE)
    found = {(row["program"], row["arm"]): row for row in programs.rows(ROOT, programs.FOREIGN)}
    for (name, _), row in found.items():
        assert row["gpus"] == ("2" if name.endswith("-2") else "1"), "said once, for all"
    change = {key: float(row["change_percent"]) for key, row in found.items()}
    quiet = [name for name, arm in change if arm == "again" and abs(change[name, arm]) <= programs.NOISY]
    gaining = [name for name in quiet if change.get((name, "own"), 0) <= -3]
    h200, h100 = (
        sorted(
            100 * change[name, "default"] / change[name, "own"] for name in gaining if found[name, "own"]["gpu"] in gpu
        )
        for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3")
    )
    least, *of_own = h200
    said = f"gets {min(of_own):.0f} to {max(of_own):.0f} % of what the authors' own priorities gain** in seven of the"
    assert f"{said} eight rows where that is 3 % or more, and {least:.0f} % in `jacobi-threads-2`" in page
    assert least < 90 < of_own[0] and len(of_own) == 7
    assert f"default gets {h100[0]:.0f} to {h100[-1]:.0f} % of that" in page and len(h100) == 4
    for name in quiet:
        again, default = found[name, "again"], found[name, "default"]
        beyond = float(default["change_low"] or 0) - max(0.0, float(again["change_high"] or 0))
        assert beyond < 1, f"{name} surely loses 1 %"
    earlier = programs.rows(ROOT, Path("tools/gpu/results/foreign-earlier.csv"))
    ran = {(row["program"], row["arm"]): f"{float(row['change_percent']):+.1f}" for row in earlier}
    short, long = ([ran[name, arm] for arm in ("default", "own")] for name in (f"{GROMACS}, 10000 steps", GROMACS))
    assert f"{long[0]} % in 7 processes, and by {short[0]} % in 6 of half as many steps, where own" in page
    assert f"own priorities gave {long[1]} and {short[1]} ([rows]" in page
    of_comd = [
        float(row["change_percent"]) for row in earlier if (row["program"], row["arm"]) == ("comd-eam-49", "own")
    ]
    told = [f"{one:+.1f}" for one in sorted([*of_comd, change["comd-eam-49", "own"]])]
    assert f"{', '.join(told[:-1])} and {told[-1]} % in four series" in page
    observed = [change[name, "observe"] for name in quiet]
    assert f"changes the rows that are not noisy by {min(observed):.1f} to {max(observed):+.1f} %" in page


# ---- What computes them ----
