"""docs/answers.md: answers follow the files, and a missing file names what makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import suite_files
from answers import facts, questions, suite

from pyshim.errors import OverlapError

ROOT = Path(__file__).resolve().parents[2]


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


def test_settings_that_let_nccl_start_sooner(results: Path) -> None:
    waits = {"as it is": 2900.0, "priority": 130.0, "priority + no clusters": 100.0, "no clusters": 2800.0}
    cases = ("graph, alone", "graph, behind 8 blocks", "graph, behind cuBLAS, fp32")
    rows = [
        {"setting": name, "environment": {}, "policy": None, "case": case, "median_us": us, "samples_us": [us] * 3}
        for name, us in waits.items()
        for case in cases
    ]
    rewrite(results, "nccl-start-matrix", {"machine": suite_files.MACHINE, "rows": rows})
    words, numbers = answer(results, "long grid? By setting")[2:4]
    assert words == "behind a grid of many waves at once where it is raised; behind cuBLAS, fp32 after 100 us at best"
    assert "behind cuBLAS, fp32: as it is 2,900 us, where it is raised 100 to 130, in 2 of 3 settings" in numbers
    assert "as it is 2,900 us; 2 of 3 settings start before the tail: 100 (priority + no clusters) to 130" in numbers
    page = questions.files(results)["docs/answers.md"]
    assert "| priority + no clusters | 100 | – | – | 100 | – | 100 | – |" in page
    assert "| make_room, priority: highest | 33 |" in page
    for row in rows:
        row["samples_us"] = [2950.0] * 3 if "cuBLAS" in row["case"] else row["samples_us"]
    rewrite(results, "nccl-start-matrix", {"machine": suite_files.MACHINE, "rows": rows})
    assert answer(results, "long grid? By setting")[2].endswith("behind cuBLAS, fp32 **nothing helps**")
    assert answer(results, "long grid? Behind the library")[2].endswith("products of a library: not measured here")


def test_a_kernel_that_shares_some_is_not_apart(results: Path) -> None:
    def runs(*counts: int) -> list[Any]:
        return [{"low": {"carveout": -1}, "high": {"carveout": -1}, "beside_low": beside} for beside in counts]

    for samples, words in ((runs(16, 5), "no"), (runs(16, 0), "**yes**")):
        rewrite(results, "carveout", {**suite_files.MACHINE, "samples": samples})
        assert answer(results, "carve-out")[2] == words


def test_controls_of_the_wait(results: Path) -> None:
    made = (
        *(("alone", 0, 0, "latency", 2000), ("priority", 80, 0, "latency", 2020)),
        *(("shape-1", 10, 1, "latency", 6000), ("shape-1", 8, 1, "throughput", 1900)),
    )
    runs: list[dict[str, Any]] = []
    for arm, last, shaped, work, grid in made:
        setting = {"mode": "controls", "k": 4, "limit": "shared memory", "arm": arm, "shaped": shaped, "work": work}
        runs.append({**setting, "c": 32 if last else 0, "grid_us": grid, **({"last_us": last} if last else {})})
    rewrite(results, "raised", {**suite_files.MACHINE, "samples": runs})
    words, numbers = answer(results, "shortens the wait")[2:4]
    assert words == "**shape-1**, at a price; without shaping **priority**"
    assert "priority: 80 us, the grid 1.01 times; shape-1: 10 us, the grid 0.95 to 3.00 times" in numbers
    assert "| priority | 80 / 1.01 |" in questions.files(results)["docs/answers.md"]


def test_differences_are_counted(results: Path) -> None:
    row: dict[str, Any] = {"program": "torch", "policy": "h200", "faults": [], "itself": ["scan"]}
    row.update(seen_by_profiler=10, launches=10)
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
    assert words.startswith("**+2.1 %** against plain, **+13.") and numbers.count("10 of 10 cells not within 1 %") == 2
    assert "race" not in numbers and "priority alone loses" not in numbers


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ({"priority": 1.04, "policy:observe": 1.0}, "priority alone loses +4"),
        ({"priority": 1.0, "policy:observe": 0.95}, "`policy:observe`, which changes nothing, is -5"),
        ({"priority": 1.0, "policy:observe": 1.0}, None),
    ],
)
def test_why_the_default_loses(results: Path, factors: dict[str, float], reason: str | None) -> None:
    good = suite_files.cell("tiled", 0.5, "one", {"priority": 0.9, "policy:h200": 0.9, "policy:observe": 1.0})
    bad = suite_files.cell("copy", 0.5, "pairs", {**factors, "policy:h200": 1.05})
    rewrite(results, "overlap-libraries", suite_files.suite([good, bad], "overlap-libraries"))
    suite.read.cache_clear()
    numbers = answer(results, "lose at most? Libraries")[3]
    assert "against plain: copy + link, pairs, 0.5, +" in numbers
    assert reason in numbers if reason else "in copy" not in numbers


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
    careful = {**low, "threads": 96}, {**high, "threads": 544}  # 20 warps, of which the library counts 24

    def run(low: Any, high: Any, carveout: list[int], beside: int) -> dict[str, Any]:
        return {"low": low, "high": high, "carveout": carveout, "repetition": 0, "beside": beside}

    runs = [run(low, high, [-1, -1], 0), run(low, high, [100, -1], 32), run(*careful, [100, -1], 32)]
    rewrite(results, "neighbours", {**head, "samples": runs})
    words, numbers = answer(results, "share a multiprocessor")[2:4]
    assert words == "**never where their sum does not fit**"
    assert "the driver's carve-outs: 0 of 1, and 0 of 0 whose sum" in numbers and "both" not in numbers
    assert "the largest for computation: 1 of 1, and 1 of 1 whose sum fits, but not by the library's" in numbers
    much = {**low, "threads": 384, "registers": 168}
    two = {**low, "dynamic": 76801, "blocks": 2}  # one of them has room beside it
    for wrong in (much, two):
        rewrite(results, "neighbours", {**head, "samples": [*runs, run(wrong, high, [100, 100], 1)]})
        assert answer(results, "share a multiprocessor")[2] == "**also where their sum does not fit (1 runs)**"
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
        for us, more in ((100, 0.5), (2000, 1))
        for way, factors in (("own share", (1, 1 + more, 1 + more)), ("fewer blocks", (2, 2.02, 2.5)))
        for c, factor in zip((0, 1, 24), factors)
    ]
    rewrite(results, "quantisation", {**head, "samples": waves})
    words, numbers = answer(results, "grid of one wave")[2:4]
    assert words == "**2.00 times** from the first block on where it stays, 1.50 where it ends after 100 us"
    assert "fewer blocks: 1.01 times with 1, 1.25 with 24 resident" in numbers
