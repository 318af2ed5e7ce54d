"""docs/overlap.md and docs/answers.md from made-up files: what is there is told, what is missing is left out whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import suite_files
from answers import facts, overlap, questions, suite

from pyshim.errors import OverlapError

ROOT = Path(__file__).resolve().parents[2]
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
    assert against["`plain`"][4] == "0, 0, 8" and "share of the ideal" not in against
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
    assert rows.split("\n")[0].endswith(f"| {within} of 8 |")
    flat = " ".join(text.split())
    words = "is ruled out in all 8 cells" if within else "cannot be ruled out in 8 of 8 cells (in 8 it is sure)"
    assert f"a loss of the default above 1 % {words} against priority alone" in flat
    assert ("not within the bound, from the worst:" in flat) is not within
    follows = flat.partition("## What follows")[2]
    assert "`order+priority` leads: -11.0 % in the median" in follows


def test_one_cell_beyond_the_bound_is_named(page: Page) -> None:
    cells = suite_files.matrix()
    cells[3] = suite_files.cell("warped", 1.0, "one", {**suite_files.FACTORS, "policy:h200": 0.93})
    flat = " ".join(page(suite_files.suite(cells)).split())
    assert "cannot be ruled out in 1 of 8 cells (in 1 it is sure) against priority alone, against plain it is" in flat
    assert "against `priority`: not within the bound, from the worst: warped + link, one, 1 +3." in flat


def test_model_and_machine(page: Page) -> None:
    fitting, other = suite_files.FACTORS, {**suite_files.FACTORS, "priority": 1.0, "policy:h200": 1.0}
    simulated = suite_files.simulated({"hold": other, "drain": other, "backfill": fitting})
    text = page(suite_files.suite(suite_files.matrix()), simulated)
    rules = table(text, "![Simulated against measured](pictures/overlap-model.svg)")
    assert (
        rules["`backfill`"][0] == "80" and rules["`backfill`"][1] in ("0.0", "0.1") and rules["`backfill`"][3] == "met"
    )
    assert rules["`hold`"][1] == "2.0"
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


# ---- docs/answers.md ----


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of this repository, to change."""
    folder = tmp_path / facts.FOLDER
    folder.mkdir(parents=True)
    for path in (ROOT / facts.FOLDER).glob("*.json"):
        (folder / path.name).symlink_to(path)
    facts.results.cache_clear()
    return tmp_path


def rewrite(root: Path, name: str, found: Any) -> None:
    path = root / facts.FOLDER / f"{name}.json"
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(found), encoding="utf-8")
    facts.results.cache_clear()


def answer(root: Path, text: str) -> tuple[str, ...]:
    (row,) = [row for row in questions._rows(root) if text in row[1]]
    return row


def test_a_missing_file_names_its_command(results: Path) -> None:
    assert answer(results, "carve-out")[2] == "**yes**"
    (results / facts.FOLDER / "carveout.json").unlink()
    facts.results.cache_clear()
    assert answer(results, "carve-out")[2:] == ("not measured", "`tools/gpu/run carveout` measures it", "–")


def test_the_rule_is_read_from_the_runs(results: Path) -> None:
    """Lower blocks start all the time: on other multiprocessors only, and on that one, too."""
    assert facts.rule(results) == "hold"
    found = json.loads((results / facts.FOLDER / "dispatch-rule.json").read_text(encoding="utf-8"))
    for own, rule in ((0, "drain"), (4, "backfill")):
        for sample in found["samples"]:
            count = len(sample["while_waiting.last_start_us"])
            sample["while_waiting.last_start_us"] = [1000.0] * count
            sample["while_waiting.starts_on_its_sm"] = [own] * count
        rewrite(results, "dispatch-rule", found)
        assert answer(results, "hold, drain, backfill")[2] == f"**{rule}**"


def test_files_as_tools_gpu_run_writes_them(results: Path) -> None:
    """The same answers, from lines as the programs print them."""

    def lines(name: str, made: Callable[[Any], list[Any]]) -> None:
        found = json.loads((results / facts.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        printed = [line for sample in found["samples"] for line in made(sample)]
        steps = [{"step": f"./{name} 20", "lines": ["words", *printed]}]
        rewrite(results, name, {"version": 1, "set": name, "machine": suite_files.MACHINE, "steps": steps})

    def variant(sample: Any) -> list[Any]:
        made: list[Any] = []
        for at in range(len(sample["wait_first_us"])):
            line: dict[str, Any] = {"variant": sample["variant"], "repetition": at}
            for key, value in sample.items():
                if isinstance(value, list):
                    group, _, inner = key.rpartition(".")
                    (line.setdefault(group, {}) if group else line)[inner] = value[at]
            made.append(line)
        return made

    def carveout(sample: Any) -> list[Any]:
        low, high = ({"carveout": sample[at]} for at in (2, 6))
        return [{"low": low, "high": high, "beside_low": beside} for beside in sample[10]]

    texts = ("hold, drain", "equal priority", "freed place", "clusters", "captured", "carve-out")
    before = [answer(results, text)[2:4] for text in texts]
    lines("dispatch-rule", variant)
    lines("carveout", carveout)
    assert [answer(results, text)[2:4] for text in texts] == before


def test_a_file_of_another_form_is_one_error_there_too(results: Path) -> None:
    rewrite(results, "carveout", {"date": "2026-11-20"})
    with pytest.raises(OverlapError, match=r"carveout.json: Does another carve-out .*: KeyError: 'steps'"):
        answer(results, "carve-out")


def test_controls_of_the_wait(results: Path) -> None:
    made = (("alone", 0, 0, "latency", 1000), ("priority", 80, 0, "latency", 1010), ("shape-1", 10, 1, "latency", 3000))
    runs: list[dict[str, Any]] = []
    for arm, last, shaped, work, grid in made:
        setting = {"mode": "controls", "k": 4, "limit": "shared memory", "arm": arm, "shaped": shaped, "work": work}
        runs.append({**setting, "c": 32 if last else 0, "grid_us": grid, **({"last_us": last} if last else {})})
    rewrite(results, "raised", {**suite_files.MACHINE, "samples": runs})
    words, numbers = answer(results, "shortens the wait")[2:4]
    assert words == "**shape-1, bound by latency**; without shaping **priority**"
    assert "priority: 80 us, the grid 1.01 times; shape-1, bound by latency: 10 us, the grid 3.00 times" in numbers
    assert "| priority | 80 / 1.01 |" in questions.files(results)["docs/answers.md"]


def test_differences_are_counted(results: Path) -> None:
    row = {"program": "torch", "policy": "h200", "faults": [], "seen_by_profiler": 10, "launches": 10}
    found = {"machine": suite_files.MACHINE, "rows": [row, {**row, "policy": "observe", "seen_by_profiler": None}]}
    rewrite(results, "correctness", found)
    text = "compute the same"
    assert answer(results, text)[2] == "**no difference**"
    assert answer(results, text)[3].startswith("1 programs, 2 runs behind the library, 20 launches; 1 runs")
    found["rows"][1]["faults"] = ["other bits"]
    rewrite(results, "correctness", found)
    assert answer(results, text)[2] == "**1 differ**: torch, observe"


def test_what_the_default_loses(results: Path) -> None:
    """2 % against plain are 13.3 % against priority, which has 0.9."""
    (results / facts.FOLDER / "overlap-standins.json").unlink(missing_ok=True)
    cells = suite_files.matrix({**suite_files.FACTORS, "policy:h200": 1.02})
    rewrite(results, "overlap-libraries", suite_files.suite(cells, "overlap-libraries"))
    suite.read.cache_clear()
    assert answer(results, "lose at most? Stand-ins")[2] == "not measured"
    words, numbers = answer(results, "lose at most? Libraries")[2:4]
    assert words.startswith("**+13.") and numbers.count("8 of 8 cells not within 1 %") == 2


def test_raising_that_does_nothing_is_said(results: Path) -> None:
    found = json.loads((results / facts.FOLDER / "dispatch-rule.json").read_text(encoding="utf-8"))
    equal = next(sample for sample in found["samples"] if sample["variant"] == "equal priority")
    for sample in found["samples"]:
        if sample["variant"] == "launch priority":
            sample.update({key: value for key, value in equal.items() if key not in ("variant", "process")})
    rewrite(results, "dispatch-rule", found)
    assert answer(results, "per-launch priority")[2] == "**not all ways**: launch priority"
    assert answer(results, "after its creation")[2] == "**yes**"


def test_new_files_are_taken_up(results: Path) -> None:
    head = suite_files.MACHINE
    low = {"threads": 128, "registers": 64, "dynamic": 115713, "blocks": 1}
    high = {"threads": 288, "registers": 96, "dynamic": 103072}
    runs = [
        {"low": {**low, **more}, "high": high, "carveout": carveout, "repetition": 0, "beside": beside}
        for more, carveout, beside in (
            ({}, [-1, -1], 0),
            ({}, [100, -1], 32),
            ({"threads": 384, "registers": 168}, [100, 100], 0),
        )
    ]
    rewrite(results, "neighbours", {**head, "samples": runs})
    words, numbers = answer(results, "share a multiprocessor")[2:4]
    assert words == "never where it does not fit"
    assert "the driver's carve-outs: 0 of 1; the largest for computation: 1 of 1" in numbers and "both" not in numbers
    runs[2]["beside"] = 1
    rewrite(results, "neighbours", {**head, "samples": runs})
    assert answer(results, "share a multiprocessor")[2] == "also where it does not fit (1 runs)"
    setting = {key: runs[1][key] for key in ("low", "high", "carveout")}
    packed = {**setting, "repetitions": 3, "beside": [32, 0, None]}
    rewrite(results, "neighbours", {**head, "samples": [packed]})
    assert "the largest for computation: 1 of 2" in answer(results, "share a multiprocessor")[3]
    parts = {"communication": [2.0, 2.2, 2.1], "computation": [5.0] * 3}
    ranks = [{"case": "products", "arm": arm, "together": [ms] * 3, **parts} for arm, ms in (("plain", 7), ("own", 6))]
    rewrite(results, "two-ranks", {**head, "samples": ranks})
    assert answer(results, "two real ranks")[2:4] == (
        "**yes**",
        "products, ms: computation 5.00 and communication 2.10 alone; together: plain 7.00, own 6.00",
    )
    waves = [
        {"way": way, "communication_us": us, "c": c, "repetition": 0, "grid_us": 200.0 * factor}
        for way, factors in (("own share", (1, 2, 2)), ("fewer blocks", (1, 1.01, 1.25)))
        for us in (100, 2000)
        for c, factor in zip((0, 1, 24), factors)
    ]
    rewrite(results, "quantisation", {**head, "samples": waves})
    words, numbers = answer(results, "grid of one wave")[2:4]
    assert words == "**2.00 times** from the first block on"
    assert "fewer blocks: 1.01 times with 1, 1.25 with 24 resident" in numbers
