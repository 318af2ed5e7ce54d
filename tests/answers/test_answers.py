"""The pages of tools/answers are what their data and the library say today."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Answers = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
PAGES = ("sizes", "sensitivity", "robustness")  # of the method
MEASURED = ("overlap", "answers")  # of the GPU


def page(name: str, root: Path = ROOT) -> str:
    return (root / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_the_pages_are_of_today(answers: Answers) -> None:
    done = answers(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_footprint_is_seen(answers: Answers, copy: Path) -> None:
    assert answers(copy, "--check", "sizes").returncode == 0
    library = copy / "pyshim" / "footprints" / "libraries" / "nccl-2.28.9.json"
    before = library.read_text(encoding="utf-8")
    library.write_text(before.replace("21568", "30016"), encoding="utf-8")
    done = answers(copy, "--check", "sizes")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "docs/sizes.md: not of today: .venv/bin/python tools/answers --write sizes\n"
    assert answers(copy, "--write", "sizes").returncode == 0
    assert page("sizes", copy) != page("sizes")
    assert answers(copy, "--check", "sizes").returncode == 0


def test_a_library_that_contradicts_a_sentence_is_not_written_over_it(answers: Answers, copy: Path) -> None:
    """A block so small that A40 has room: the page says that none has."""
    library = copy / "pyshim" / "footprints" / "libraries" / "nccl-2.32.3.json"
    before = library.read_text(encoding="utf-8")
    assert '"bytes": 82240' in before
    library.write_text(before.replace('"bytes": 82240', '"bytes": 1024'), encoding="utf-8")
    done = answers(copy, "--write", "sizes")
    assert done.returncode == 1
    assert done.stderr.startswith("answers: the numbers no longer say: ")
    assert page("sizes", copy) == page("sizes")


def test_rows_that_a_run_does_not_repeat_are_seen(answers: Answers, copy: Path) -> None:
    data = copy / "tools" / "bench" / "results" / "suite.csv"
    before = data.read_text(encoding="utf-8")
    (row,) = re.findall(r"^h100,hold,h100,one-long-kernel/gemm,.*$", before, re.MULTILINE)
    data.write_text(before.replace(row, row.replace(",-2", ",-1", 1)), encoding="utf-8")
    assert answers(copy, "--write", "robustness").returncode == 0
    done = answers(copy, "--check", "robustness")
    assert done.returncode == 1
    assert done.stderr.startswith("tools/bench/results/suite.csv: h100 on h100, hold, one-long-kernel/gemm: ")
    assert "tools/answers --measure" in done.stderr


def test_an_unknown_page(answers: Answers) -> None:
    done = answers(ROOT, "--check", "size")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no page is called size; pages: sizes, sensitivity, robustness, overlap, answers" in done.stderr


@pytest.mark.parametrize("name", [*PAGES, *MEASURED])
def test_a_page_begins_with_its_answer_and_links_to_what_is_there(name: str) -> None:
    text = page(name)
    words = re.findall(r"^\*\*([A-Za-z ]+)\.\*\*", text.partition("\n## ")[0], re.MULTILINE)
    assert [word for word in words if word != "The published number"] == ["Question", "Answer", "From", "Anew"]
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / "docs" / link).exists(), link


@pytest.mark.parametrize("name", [*PAGES, *MEASURED])
def test_tables_are_narrow_and_whole(name: str) -> None:
    heads = 0
    width = 0
    for line in page(name).splitlines():
        if line.startswith("|"):
            cells = line.count("|") - 1
            heads += width == 0
            width = width or cells
            assert cells == width <= 8, line
        else:
            width = 0
    assert heads >= (4 if name in PAGES else 1)


def test_the_published_number_has_its_baseline() -> None:
    for name in PAGES:
        for paragraph in page(name).split("\n\n"):
            if "25.5" in paragraph and not paragraph.startswith("|"):
                assert "baseline not known to us" in " ".join(paragraph.split())
    assert "25.5 %" in page("robustness")


def test_simulated_and_measured_are_told_apart() -> None:
    for name in ("sensitivity", "robustness"):
        heads = re.findall(r"^## (.*)$", page(name), re.MULTILINE)
        measured = [head for head in heads if head.startswith("Measured: ")]
        assert len(measured) == 1
        assert not any("imulated" in head for head in measured)
        part = page(name).partition(f"## {measured[0]}")[2].partition("\n## ")[0]
        assert "sim." not in part and "imulated" not in part


def test_pictures_are_whole_and_alone() -> None:
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert len(pictures) >= 7
    shown = "".join(map(page, (*PAGES, *MEASURED)))
    for picture in pictures:
        root = ElementTree.parse(picture).getroot()
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
        text = picture.read_text(encoding="utf-8")
        assert "href" not in text and "<script" not in text and len(text) < 24000
        assert f"(pictures/{picture.name})" in shown


@pytest.mark.parametrize("name", ["h100-gemm", "h100-elementwise", "a100-tiled", "a40-tiled"])
def test_ranges_are_what_each_size_by_itself_has(library: Any, name: str) -> None:
    import tables
    from answers import sensitivity, sweep

    pair = sensitivity.PAIRS[name]
    kernel, block = pair.blocks()
    found = sweep.ranges(pair.gpu, kernel, block)
    struct = tables.known_gpu(pair.gpu)
    assert found[0].minimum == kernel.dynamic
    assert found[-1].maximum + kernel.static == struct.shared_optin
    for one, following in zip(found, found[1:]):
        assert following.minimum == one.maximum + 1
        assert (following.resident, following.beside) != (one.resident, one.beside)
    for size in range(kernel.dynamic or 0, found[-1].maximum, 641):
        own = next(one for one in found if one.minimum <= size <= one.maximum)
        assert sweep.fits(struct, kernel, block, size) == (own.resident, own.beside)
    # What the planner calls room is where nothing has to end first.
    rooms = {(one.minimum, one.maximum) for one in tables.answer(struct, kernel, block).rooms}
    assert rooms == {(one.minimum, one.maximum) for one in found if one.first == 0}


def test_an_arm_is_compared_with_the_bare_one_of_its_run(tmp_path: Path) -> None:
    from answers import measured

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
    folder = tmp_path / measured.FOLDER
    folder.mkdir(parents=True)
    (folder / "two-gpus.json").write_text(json.dumps({"samples": samples}), encoding="utf-8")
    found = [(step.run, step.case, step.arm, round(step.change, 6)) for step in measured.steps(tmp_path)]
    assert sorted(found) == [
        (1, "pairs 2:1", "bare, against itself", 10.0),
        (1, "pairs 2:1", "room", 20.0),
        (2, "pairs 2:1", "room", -5.0),
    ]


def test_best_median_and_worst() -> None:
    from answers.robustness import Spread

    found = Spread([(3.0, "c"), (-20.04, "a"), (0.5, "b")])
    assert found.cells == ("-20.0 % (a)", "+0.5 %", "+3.0 % (c)", "1 of 3")
    assert Spread([(0.0, "a"), (0.04, "b")]).cells == ("0.0 %", "0.0 %", "0.0 %", "0 of 2")


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(0, 200, [0, 50, 100, 150, 200]), (-28.4, 43.9, [-20, 0, 20, 40]), (-1, 1, [-1, -0.5, 0, 0.5, 1])],
)
def test_ticks_are_round(least: float, most: float, expected: list[float]) -> None:
    from answers import svg

    assert svg.ticks(least, most, 4) == pytest.approx(expected)


def test_no_sentence_stands_against_the_numbers() -> None:
    from answers.markdown import holds

    assert holds(True, "so it is") == "so it is"
    with pytest.raises(SystemExit, match="no longer say: so it is"):
        holds(False, "so it is")
