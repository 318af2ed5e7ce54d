"""The tables of docs/results.md and the files of docs/data are what their data and the library say today."""

from __future__ import annotations

import csv
import json
import re
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.answers import gpu, overlap, predictions, programs, results, rows, simulated, table
from tools.answers.table import Table
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.table import FAMILIES, ROUNDS, SMALL

Answers = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/results.md")
DATA = Path("docs/data")
STEPS = ("ddp", "fsdp", "tensor", "pipeline", "llama")
STENCILS = sorted({name for family, names in FAMILIES.items() if family.startswith("stencils") for name in names})


def test_the_tables_are_of_today(answers: Answers) -> None:
    done = answers(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "old", "new"), [("stencils", "-25.3 to", "-35.3 to"), ("critical", "-25.31", "-35.31")]
)
def test_a_number_that_was_edited_is_found_and_written_back(
    name: str, old: str, new: str, answers: Answers, copy: Path
) -> None:
    path = PAGE if name == "stencils" else DATA / f"{name}.csv"
    before = (copy / path).read_text(encoding="utf-8")
    assert old in before
    (copy / path).write_text(before.replace(old, new), encoding="utf-8")
    done = answers(copy, "--check", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{path}: {name} differs from its data: .venv/bin/python -m tools.answers --write {name}\n"
    assert answers(copy, "--write", name).returncode == 0
    assert (copy / path).read_text(encoding="utf-8") == before


def test_a_changed_footprint_is_seen(answers: Answers, copy: Path) -> None:
    assert answers(copy, "--check", "sizes-by-kernel").returncode == 0
    planned = copy / "tools" / "answers" / "planned.py"
    before = planned.read_text(encoding="utf-8")
    assert "21568" in before
    planned.write_text(before.replace("21568", "30016"), encoding="utf-8")
    assert answers(copy, "--check", "sizes-by-kernel").returncode == 1


def test_rows_that_a_run_does_not_repeat_are_seen(answers: Answers, copy: Path) -> None:
    data = copy / "tools" / "bench" / "results" / "suite.csv"
    before = data.read_text(encoding="utf-8")
    (row,) = re.findall(r"^h100,hold,h100,one-long-kernel/gemm,.*$", before, re.MULTILINE)
    data.write_text(before.replace(row, row.replace(",-2", ",-1", 1)), encoding="utf-8")
    done = answers(copy, "--check", "simulated")
    assert done.returncode == 1
    assert "tools/bench/results/suite.csv: h100 on h100, hold, one-long-kernel/gemm: " in done.stderr
    assert "tools.answers --measure" in done.stderr


def test_a_page_without_the_markers_is_not_written(answers: Answers, copy: Path) -> None:
    page = (copy / PAGE).read_text(encoding="utf-8").replace("<!-- end of table costs -->", "")
    (copy / PAGE).write_text(page, encoding="utf-8")
    done = answers(copy, "--write", "costs")
    assert done.returncode == 1
    assert "needs one `<!-- table costs -->`" in done.stderr
    assert (copy / PAGE).read_text(encoding="utf-8") == page


def test_an_unknown_name(answers: Answers) -> None:
    done = answers(ROOT, "--check", "size")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no table is called size; tables: comd, stencils, " in done.stderr


# ---- The page and the files ----


def test_every_table_of_the_page_is_made_and_narrow() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    made = re.findall(r"<!-- table [\w-]+ -->\n\n(.*?)\n\n<!-- end of table", text, re.DOTALL)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines == [line for part in made for line in part.splitlines()]
    for part in made:
        assert len({line.count("|") for line in part.splitlines()}) == 1
        assert part.splitlines()[0].count("|") <= 8


def test_every_table_has_its_command() -> None:
    """Named in the text between it and the next table."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for after in text.split("<!-- end of table ")[1:]:
        name = after.partition(" ")[0]
        rest = after.partition("<!-- table ")[0]
        command = r"`[^`]*(?:tools/gpu/run|tools\.answers|tools\.gpu\.critical)[^`]*`"
        assert re.search(command, rest), name


def test_simulated_numbers_say_so() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    _, part = text.split("## What was only simulated", 1)
    for line in re.findall(r"^- .*?%.*$", part.partition("\n## ")[0], re.MULTILINE):
        assert "simulated" in line, line
    assert "simulated" in part.partition("| a40 ")[0]


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


def apart(n: int) -> float:
    """How much longer the slowest process of an arm of a stencil takes than the fastest, at most."""
    of: dict[tuple[str, str], list[float]] = {}
    for row in results.read(ROOT, "critical")["rows"]:
        if row["n"] == n and row["arm"] in ("bare", "raised", "default") and row["program"] != "host-copy":
            turns = [statistics.median(batches) for batches in row["ms"] if batches]
            of.setdefault((row["program"], row["arm"]), []).append(statistics.median(turns))
    return max(max(ms) / min(ms) - 1 for ms in of.values())


def test_what_the_page_concludes_is_in_the_data() -> None:
    """Numbers that were written by hand. Where one of these fails, the sentence must be written again."""
    page = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    cells = [dict(zip(table_.heads, row)) for table_ in [programs.every_stencil(ROOT)] for row in table_.rows]
    stencils = [cell for cell in cells if cell["raised_percent"] is not None]
    default, paper = ([float(str(one[f"{arm}_percent"])) for one in stencils] for arm in ("default", "paper"))
    whole = put_together(results.read(ROOT, "whole"))
    changes = [(one["n"], 100 * one["change"]["default"][0]) for one in whole if one["program"] in STENCILS]
    default += [change for n, change in changes if n != SMALL]
    short = [change for n, change in changes if n == SMALL]
    said = f"{min(default):.0f} to {max(default):+.0f} %, very short steps by {min(short):.0f} to {max(short):+.0f} %"
    assert f"stencils changed by {said}" in page
    halved = max(100 * one["change"]["published"][0] for one in whole if one["bits"] == 32)
    said = f"by up to {max(paper):.0f} %, in whole programs by {halved:.0f} %"
    assert f"slower, {said}" in page and sum(change > 0 for change in paper) == len(paper) - 2
    shares = [100 * float(str(one["default_share_of_raised"])) for one in stencils if one["default_share_of_raised"]]
    few = [share for share in shares if share < 90]
    assert f"In {len(few)} of the {len(stencils)} programs it got only {min(few):.0f} to {max(few):.0f} %" in page
    steps = [one for one in (*results.read(ROOT, "critical")["cells"], *whole) if one["program"] in STEPS]
    raw = [one["change"]["default"] for one in steps]
    middles, lows, highs = zip(*raw)
    shown = [table.percent(100 * value) for value in (min(middles), max(middles), min(lows), max(highs))]
    for other in (PAGE, Path("docs/explanation/limits.md"), Path("docs/how-to/training.md")):
        said = "changed by {} to {} % (90 % intervals: {} to {} %)".format(*shown)
        assert said in " ".join((ROOT / other).read_text(encoding="utf-8").split()), other
    assert f"processes of one arm differ by up to {100 * apart(192):.0f} %" in page
    of_arm: dict[str, list[float]] = {}
    for step in programs.training(ROOT):
        of_arm.setdefault(step.arm, []).append(step.change)
    for arm, words in (("bare, against itself", "noise"), ("h200", "the default"), ("paper", "published method")):
        assert f"{words} {table.percent(min(of_arm[arm]))} to {table.percent(max(of_arm[arm]))} %" in page
    room = of_arm["room"] + of_arm["room in windows"]
    assert f"`make_room` {min(room):+.1f} to {max(room):+.1f} %" in page
    verdicts = [row[-1] for row in overlap.lost(ROOT).rows]
    assert (verdicts.count("sure"), len(verdicts)) == (2, 6)
    assert "Two cells surely lose" in page and "[All six]" in page
    outcomes = [row[-1] for row in predictions.table(ROOT).rows]
    assert (outcomes.count("held"), outcomes.count("open"), len(outcomes)) == (4, 3, 7)
    first = max(float(str(row[-1])) for row in simulated.every_policy(ROOT).rows if row[0] in simulated.DEFAULTS)
    assert f"the default costs up to {first:.0f} % of a step" in page
    errors = [float(str(row[2])) for row in overlap.model(ROOT).rows]
    assert f"off by {min(errors)} to {max(errors)} points" in page


# ---- What computes them ----


def test_a_table_goes_between_its_markers() -> None:
    page = "a\n<!-- table t -->\n\nold\n\n<!-- end of table t -->\nb\n"
    made = table.put(page, "t", Table(("x", "y"), [["one", 2], ["two", None]]))
    rows = "| x | y |\n| :-- | --: |\n| one | 2 |\n| two | – |"
    assert made == f"a\n<!-- table t -->\n\n{rows}\n\n<!-- end of table t -->\nb\n"
    assert table.put(made, "t", Table(("x", "y"), [["one", 2], ["two", None]])) == made
    assert Table(("x", "y"), [["a, b", None]]).csv() == 'x,y\n"a, b",\n'


def test_what_the_page_says_of_whole_programs_is_in_the_data() -> None:
    page = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    limits = " ".join((ROOT / "docs/explanation/limits.md").read_text(encoding="utf-8").split())
    cells = put_together(results.read(ROOT, "whole"))
    assert not [cell["wrong"] for cell in cells if cell["wrong"]]
    without = {row["program"] for row in results.read(ROOT, "whole")["rows"] if not row.get("digest")}
    assert without == {"ddp", "fsdp", "tensor", "pipeline"} and "DDP, FSDP2, tensor and pipeline have none" in page
    all_rounds = [cell for cell in cells if cell["rounds"] >= ROUNDS]
    fewer = [cell for cell in cells if cell["rounds"] < ROUNDS]
    assert [(cell["program"], cell["rounds"]) for cell in fewer] == [
        ("token", 1), ("token-graph", 4), ("host-stream", 1), ("host-stream", 1),
    ]  # fmt: skip
    at_768 = " and ".join(table.percent(100 * cell["change"]["default"][0]) for cell in fewer[2:])
    assert f"768\u00b3 points (one; the default {at_768} %)" in page
    sure = [cell["change"]["default"] for cell in all_rounds if cell["change"]["default"][1] > 0.01]
    (worst, low), (second, other) = sorted(([100 * value for value in one[:2]] for one in sure), reverse=True)
    lost = f"(+{worst:.1f} and +{second:.1f} %; 90 % intervals from +{low:.1f} and +{other:.1f})"
    assert f"two with 128\u00b3 points surely {lost}" in page
    more = [cell for cell in all_rounds if cell["change"]["default"][0] < cell["possible"] - 0.005]
    assert len(more) == 9 and "nine cells gained more" in page
    small = [cell for cell in cells if cell["n"] == 128]
    observe, default = (100 * max(cell["change"][arm][0] for cell in small) for arm in ("observe", "default"))
    assert f"`observe` up to {observe:+.1f} %, the default up to {default:+.1f} %" in page
    assert f"the default cost up to {default:.1f} % on two H200, `observe` up to {observe:.1f} %" in limits
    least, most = (f"{value:.2f}" for value in (min(one["ms"] for one in small), max(one["ms"] for one in small)))
    assert f"({least} to {most} ms a step)" in page
    large = [cell for cell in cells if cell["n"] != 128 and cell["program"] != "token"]
    own = max(100 * (cell["change"]["default"][0] - cell["change"]["own"][0]) for cell in large)
    assert f"Own priorities gain at most {own:.1f} points more, except with 128\u00b3 points" in page


def test_what_the_page_says_of_one_gpu_is_in_the_data() -> None:
    page = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    cells = put_together(results.read(ROOT, "whole-one"))
    assert not [cell["wrong"] for cell in cells if cell["wrong"]] and f"whole-one`, {len(cells)} cells" in page

    def span(arm: str, small: bool) -> tuple[float, float]:
        found = [100 * cell["change"][arm][0] for cell in cells if (cell["n"] == 128) is small]
        return min(found), max(found)

    large, small, noise = span("default", False), span("default", True), span("observe", True)
    said = f"the default {large[0]:+.1f} to {large[1]:+.1f} %, with 128\u00b3 points {small[0]:+.1f} to {small[1]:+.1f}"
    assert f"{said} % (`observe` {noise[0]:+.1f} to {noise[1]:+.1f})" in page


def test_what_the_page_says_of_costs_is_in_the_data() -> None:
    page = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    rows = results.read(ROOT, "whole-costs")["rows"]

    def median(arm: str, key: str) -> float:
        return statistics.median(row[key] for row in rows if row["part"] == "start" and row["arm"] == arm)

    def call(arm: str, name: str) -> float:
        own = [row["median_ns"][name] for row in rows if row["part"] == "calls" and row["arm"] == arm]
        return statistics.median(value for one in own for value in one)

    bare, default = median("bare", "start_s"), median("default", "start_s")
    more = median("default", "resident_mib") - median("bare", "resident_mib")
    assert f"after {bare:.2f} s, behind the default {default:.2f} s and with {more:.1f} MiB more" in page
    launch = [call(arm, "cuLaunchKernel") for arm in ("bare", "default")]
    assert f"a launch takes {launch[1] - launch[0]:.0f} ns more of {launch[0]:,.0f}" in page
    names = [name for name in next(row for row in rows if row["part"] == "calls")["median_ns"] if "Synchronize" in name]
    waits = [call("default", name) - call("bare", name) for name in names]
    assert f"host waits {min(waits):+.0f} to {max(waits):+.0f} ns" in page


def test_spans_and_percents() -> None:
    assert table.percent(-0.04) == "0.0" and table.percent(3.14) == "+3.1"
    assert table.span([1.0, None, -2.0]) == "-2.0 to +1.0" and table.span([0.01, -0.01]) == "0.0"


def test_an_arm_is_compared_with_the_bare_one_of_its_run(tmp_path: Path) -> None:
    def sample(run: int, arm: str, steps: list[float]) -> dict[str, Any]:
        made = {"run": run, "kind": "pairs", "ratio": "2:1", "size": 1, "arm": arm}
        return {**made, "median_step_ms": steps[0], "ranks": [{"steps_ms": steps}]}

    samples = [
        sample(1, "bare", [10.0] * 8 + [11.0] * 8),
        sample(1, "room", [12.0] * 16),
        sample(2, "bare", [20.0] * 8),
        sample(2, "room", [19.0] * 8),
        sample(3, "room", [1.0] * 8),  # has no bare one
    ]
    write(tmp_path, "two-gpus", {"samples": samples})
    found = [(step.run, step.case, step.arm, round(step.change, 6)) for step in programs.training(tmp_path)]
    assert sorted(found) == [
        (1, "pairs 2:1", "bare, against itself", 10.0),
        (1, "pairs 2:1", "room", 20.0),
        (2, "pairs 2:1", "room", -5.0),
    ]


@pytest.mark.parametrize(("late", "own", "expected"), [(5.0, 0, "hold"), (400.0, 0, "drain"), (400.0, 3, "backfill")])
def test_the_rule_is_read_from_the_runs(late: float, own: int, expected: str, tmp_path: Path) -> None:
    """drain: lower blocks start elsewhere, and so not on the multiprocessor of the raised one."""
    sample = {
        "variant": "stream priority",
        "repetitions": 3,
        "marker_after_launch_us": [1.0] * 3,
        "low_left_at_marker_us": [4000.0] * 3,
        "while_waiting.last_start_us": [late] * 3,
        "while_waiting.starts_on_its_sm": [own] * 3,
    }
    write(tmp_path, "dispatch-rule", {"samples": [sample]})
    assert gpu.rule(tmp_path) == expected


def test_a_missing_file_names_its_command(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"critical\.json is missing: `tools/gpu/run critical` measures it"):
        programs.stencils(tmp_path)


def test_defaults_lose_in_the_simulated_rows_where_the_programs_own_priority_does() -> None:
    """Communication that is waited for, but not needed early: raised, it takes multiprocessors from what is."""
    lost = [row for row in rows.read(ROOT).rows if row.policy in simulated.DEFAULTS and row.change > 1]
    assert {row.shape for row in lost} == {"not-needed-yet", "tail-bound", "data-parallel"}
    assert all(row.change < row.priority + 0.1 for row in lost)


def write(root: Path, name: str, found: dict[str, Any]) -> None:
    path = root / "tools" / "gpu" / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found), encoding="utf-8")
