"""docs/overlap.md from made-up files: what is there is told, what is missing is left out whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import suite_files
from answers import comparing, facts, overlap, suite

from pyshim.errors import OverlapError

Page = Callable[..., str]


@pytest.fixture
def page(tmp_path: Path) -> Page:
    def made(*found: dict[str, Any]) -> str:
        for one in found:
            suite_files.write(tmp_path, one)
        suite.read.cache_clear()
        facts.results.cache_clear()
        files = overlap.files(tmp_path)
        text = files.pop("docs/overlap.md")
        for name, drawn in files.items():
            ElementTree.fromstring(drawn)
            assert f"(pictures/{Path(name).name})" in text and len(drawn) < 20000
        assert len(re.findall(r"\]\(pictures/", text)) == len(files)
        return text

    return made


def table(text: str, head: str) -> dict[str, list[str]]:
    """The first table behind the head, by its first column."""
    lines = text.partition(f"{head}\n")[2].partition("\n|")[2].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_nothing_measured_is_said_with_commands(page: Page) -> None:
    text = page()
    assert "**Answer.** Not measured yet." in text
    for name, command in overlap.COMMANDS.items():
        assert f"`{name}` (`{command}` measures it)" in " ".join(text.split())
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Predictions made before"]


def test_the_tables_of_a_set(page: Page) -> None:
    text = page(suite_files.suite(suite_files.matrix(), curves=True))
    arms = table(text, "Change of T against plain streams:")
    assert arms["`priority`"][0] == "8"
    assert arms["`priority`"][2] == "-10.0 %"
    assert arms["`priority`"][4] == "8, 0, 0"
    assert arms["`policy:observe`"][4] == "0, 8, 0"
    assert arms["`sequential`"][4] == "0, 0, 8"
    assert arms["best shape + priority"][2] == "-8.0 %" or arms["best shape + priority"][2] == "-8.1 %"
    against = table(text, "Against priority alone:")
    assert against["`plain`"][4] == "0, 0, 8" and "best shape + priority" in against
    assert "best shape" in arms and not [name for name in (*arms, *against) if "shape-" in name]
    assert table(text, "Against one after the other:")["`plain`"][2] == "-4.8 %"
    flat = " ".join(text.split())
    assert "| Stand-ins | plain streams | 8 | 7 % | -4.8 % | -4." in flat
    assert "| Stand-ins | the best shape with priority | 8 | 21 % | -12.4 % | -12." in flat
    assert "in the cells of shapes" not in flat
    assert (
        "- **Stand-ins**, 8 cells (worst, median, best): the default -9.9 %, -10.0 %, -10.1 %; priority -9.9 %," in flat
    )
    assert "; of the controls that all cells have, `order+priority` leads: -11.0 %, -11.0 %, -11." in flat
    cell = "tiled + link, one, 0.5"
    assert table(text, "### Stand-ins: milliseconds")[cell][:3] == ["1.000", "0.500", "1.000"]
    # 1.5225 / 1.305 - 1 of 0.5225
    assert table(text, "### Stand-ins: share of the ideal, %")[cell][1] == "32"
    assert table(text, "### Stand-ins: stretch of computation / of communication")[cell][0] == "1.10 / 1.20"
    sizes = table(text, "### tiled beside link")
    assert [row[0] for row in sizes.values()] == ["4", "3", "2", "1"]
    (marked,) = [row for name, row in sizes.items() if "← make_room" in name]
    assert marked[0] == "2" and marked[1].startswith("+19.")
    alone = text.partition("### Stand-ins: each kernel alone, by resident blocks\n")[2].partition("\n\n#")[0]
    assert "| tiled | 4 | 0.0 % | +4.5 % |" in alone and "| tiled | 2 | +18.2 % | +22.7 % |" in alone
    assert table(text, "Its time over that without communication:")["24"] == ["1.95", "1.00"]
    assert "beside 24 resident blocks, `overlap-standins`: 1.95 times" in text
    assert "Stand-ins: nothing was left out." in text
    assert "Libraries" not in text.partition("## How")[2]


def test_what_was_left_out_and_other_results_are_said(page: Page) -> None:
    found = suite_files.suite(suite_files.matrix())
    for at, cell in enumerate(found["runs"][0]["cells"]):
        cell["differences"] = int(at == 2)
    flat = " ".join(page({**found, "cut": "ended at its limit", "left_out": ["x + y: no time"]}).split())
    assert "Stand-ins: left out: ended at its limit; x + y: no time." in flat
    assert "results of 10 cells, before the first round and after the last: some arm computed other bits than" in flat
    assert "plain in warped + link, one, 0.5." in flat


@pytest.mark.parametrize(("factor", "within"), [(0.9, 8), (0.905, 8), (0.92, 0)])
def test_the_bound(page: Page, factor: float, within: int) -> None:
    """Priority has 0.9: half a per cent of loss is within the bound, two are not."""
    text = page(suite_files.suite(suite_files.matrix({**suite_files.FACTORS, "policy:h200": factor})))
    rows = text.partition("## The default policy")[2].split("| Stand-ins | `policy:h200`, `priority` |")[1]
    assert rows.split("\n")[0].endswith(f"| {within} of 8 | {within} of 8 |")
    flat = " ".join(text.split())
    words = "ruled out in all 8 cells" if within else "not ruled out in 8 of 8 cells (sure in 8)"
    bound = "Stand-ins, a loss of the default above 1 %: against plain ruled out in all 8 cells; against priority"
    assert f"{bound} {words}." in flat
    assert ("(sure in 8), from the worst:" in flat) is not bool(within)
    follows = flat.partition("## What follows")[2]
    assert "`order+priority` leads: -11.0 % in the median" in follows


def test_one_cell_beyond_the_bound_is_named(page: Page) -> None:
    cells = suite_files.matrix()
    cells[3] = suite_files.cell("warped", 1.0, "one", {**suite_files.FACTORS, "policy:h200": 0.93})
    flat = " ".join(page(suite_files.suite(cells)).split())
    assert "against priority not ruled out in 1 of 8 cells (sure in 1)." in flat
    assert (
        "against `priority`: not ruled out in 1 of 8 cells (sure in 1), from the worst: warped + link, one, 1 +3."
        in flat
    )


def test_a_loss_that_noise_may_hide_is_not_ruled_out(page: Page) -> None:
    """Its median is within the bound, the upper end of its interval is not."""
    cells = suite_files.matrix()
    cells[2] = suite_files.cell("warped", 0.5, "one", {**suite_files.FACTORS, "policy:h200": 0.905}, noise=0.03)
    flat = " ".join(page(suite_files.suite(cells)).split())
    assert "against priority not ruled out in 1 of 8 cells (sure in 0)." in flat
    assert (
        "against `priority`: not ruled out in 1 of 8 cells (sure in 0), from the worst: warped + link, one, 0.5" in flat
    )


@pytest.mark.parametrize(("shapes", "verdict"), [(6, -1), (7, 0)])
def test_the_best_of_many_is_corrected_for_all(tmp_path: Path, shapes: int, verdict: int) -> None:
    """2 * 2 ** -8 is below 0.05 / 6 and above 0.05 / 7."""
    factors = {"priority": 0.9, **{f"shape-{number}+priority": 0.8 for number in range(1, shapes + 1)}}
    path = suite_files.write(tmp_path, suite_files.suite([suite_files.cell("tiled", 0.5, "one", factors, rounds=8)]))
    (cell,) = suite.parse(path).runs[0].cells
    found = comparing.against([cell], "best", "priority", lambda one: comparing.shapes(one, True))
    assert found is not None and [change.verdict for change in found.changes] == [verdict]
    assert found.changes[0].arm == comparing.fastest(cell, comparing.shapes(cell, True))
    assert (comparing.counts(found) == "too few rounds to be sure") is (verdict == 0)


def test_too_few_rounds_are_said_to_be_too_few(page: Page) -> None:
    """For eight cells nine are enough for two sides, eight for one."""
    for rounds, row, bound in (
        (9, "8, 0, 0", "against plain ruled out in all 8 cells"),
        (8, "too few rounds to be sure", "against plain ruled out in all 8 cells"),
        (7, "too few rounds to be sure", "against plain too few rounds to be sure"),
    ):
        text = page(suite_files.suite(suite_files.matrix(rounds=rounds)))
        assert table(text, "Change of T against plain streams:")["`priority`"][4] == row
        flat = " ".join(text.split())
        assert f"a loss of the default above 1 %: {bound};" in flat
        assert "against priority alone: too few rounds to be sure." in flat  # of 16 shapes


def test_shapes_of_few_cells_are_held_against_priority_there(page: Page) -> None:
    cells = suite_files.matrix({name: one for name, one in suite_files.FACTORS.items() if "shape" not in name})
    cells[1] = suite_files.cell("tiled", 1.0, "one", {**suite_files.FACTORS, "priority": 0.8})
    flat = " ".join(page(suite_files.suite(cells)).split())
    assert "the best shape with priority (in 1 cells) -8." in flat
    assert "| Stand-ins | the best shape with priority | 1 | 14 %" in flat
    assert "| Stand-ins | priority, in the cells of shapes | 1 | 31 % | -23.8 % |" in flat


def test_what_leads_and_what_leads_safely(page: Page) -> None:
    """Order leads in the median and loses in one cell, which is its worst and the first arm's best."""
    cells = suite_files.matrix()
    cells[5] = suite_files.cell(
        "persistent", 1.0, "one", {**suite_files.FACTORS, "order+priority": 1.3, "shape-1": 0.7}
    )
    text = page(suite_files.suite(cells))
    arms = table(text, "Change of T against plain streams:")
    assert arms["`order+priority`"][3] == "+30.0 % (persistent + link, one, 1)"
    assert arms["best shape"][1] == "-30.0 % (persistent + link, one, 1)"
    follows = " ".join(text.partition("## What follows")[2].split())
    assert "`order+priority` leads: -11.0 % in the median against plain, +30.0 % at worst (persistent" in follows
    assert re.search(r"that rule out a loss above 1 % in every cell, `(priority|policy:\S+)` leads: -10.0 %", follows)


def test_model_and_machine(page: Page) -> None:
    fitting, other = suite_files.FACTORS, {**suite_files.FACTORS, "priority": 1.0, "policy:h200": 1.0}
    simulated = suite_files.simulated({"hold": other, "drain": other, "backfill": fitting})
    text = page(suite_files.suite(suite_files.matrix()), simulated)
    rules = table(text, "![Simulated against measured](pictures/overlap-model.svg)")
    assert rules["`backfill`"][0] == "80" and rules["`backfill`"][1] in ("0.0", "0.1")
    assert rules["`backfill`"][4] == "met"
    assert rules["`hold`"][1] == "2.0"
    arms = table(text, "By arm, mean absolute error in points, and mean of simulated less measured under `backfill`:")
    assert arms["all `shape-K+priority`"][0] == "16" and arms["`priority`"][1] == "10.0"
    assert "fits best under `backfill`" in " ".join(text.split())


def test_simulated_alone_is_no_answer(page: Page) -> None:
    text = page(suite_files.simulated({"hold": suite_files.FACTORS}))
    assert "**Answer.** Not measured yet." in text
    assert "## Arms" not in text and "## Model" not in text


def test_arms_that_end_early_are_paired_as_far_as_they_go(page: Page) -> None:
    cells = suite_files.matrix()
    cells[0]["arms"]["priority"]["ms"] = cells[0]["arms"]["priority"]["ms"][:12]
    cells[1]["arms"]["priority"]["ms"] = [1.0, 1.0]
    text = page(suite_files.suite(cells))
    assert table(text, "Change of T against plain streams:")["`priority`"][0] == "7"
    assert "2 to 30 rounds" in text


WRONG = {
    "simulated": (lambda found: found["machine"].update(simulated=True), "simulated, in a file of measured times"),
    "another set": (lambda found: found.update(set="overlap-libraries"), "it says that it is overlap-libraries"),
    "version": (lambda found: found.update(version=2), "format version 2"),
    "no cells": (lambda found: found["runs"][0].update(cells=[]), "no cells"),
    "no arms": (lambda found: found["runs"][0]["cells"][0].pop("arms"), "KeyError: 'arms'"),
    "no times": (lambda found: found["runs"][0]["cells"][0]["arms"]["plain"].update(ms=[]), "plain: times are missing"),
    "words": (lambda found: found["runs"][0]["cells"][0]["arms"]["plain"].update(ms=["x"]), "could not convert"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=list(WRONG))
def test_a_file_of_another_form_is_one_error(tmp_path: Path, change: Any, words: str) -> None:
    found = suite_files.suite(suite_files.matrix())
    change(found)
    path = tmp_path / "overlap-standins.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(OverlapError, match=f"overlap-standins.json: .*{re.escape(words)}") as error:
        suite.parse(path)
    assert error.value.hint
