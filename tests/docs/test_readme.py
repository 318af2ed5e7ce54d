"""README is short, and its picture and numbers are those of their commands. All pages together are short, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from subprocess import CompletedProcess
from typing import Any

import pytest
from blocks import ROOT, pages

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "tools" / "gpu" / "results"
LIMIT, ALL = 900, 35_000  # words, as `wc -w` counts them
BY_NCCL, BY_HOST = ("halo-stream", "computing-stream", "third-stream"), ("host-stream", "host-event", "host-polling")
BY_COPIES = ("host-copy",)
NOTHING_TO_GAIN, STEPS = ("one-stream", "synchronised", "swapped", "equal"), ("ddp", "fsdp", "tensor")


def words(text: str) -> int:
    return len(text.split())


def row(begin: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begin}")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def span(values: Iterable[float]) -> str:
    """As in the table: the lowest and the highest of shares, in per cent."""
    every = sorted(values)
    low, high = (f"{100 * value:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0") for value in (every[0], every[-1]))
    return f"{low} to {high} %"


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    found = json.loads((RESULTS / "critical.json").read_text(encoding="utf-8"))["cells"]
    assert isinstance(found, list)
    return found


def changes(cells: list[Any], arm: str, programs: Iterable[str]) -> list[float]:
    return [cell["change"][arm][0] for cell in cells if cell["program"] in programs and arm in cell["change"]]


def test_the_readme_is_short() -> None:
    assert words(README) < LIMIT


def test_all_pages_together_are_short() -> None:
    """What is longer is data, or said twice: docs/data takes the first, and the second goes."""
    counted = {page: words((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert sum(counted.values()) <= ALL, sorted(counted.items(), key=lambda item: -item[1])


def test_the_stencils_are_those_of_the_data(cells: list[Any]) -> None:
    for begin, programs in (("stencils, 192³", BY_NCCL), ("through host", BY_HOST), ("by blocking", BY_COPIES)):
        assert row(begin) == [span(changes(cells, arm, programs)) for arm in ("default", "paper")]
    assert row("stencils with nothing to gain")[0] == span(changes(cells, "default", NOTHING_TO_GAIN))
    assert row("training steps")[0] == span(changes(cells, "default", STEPS))


def test_the_kernel_pairs_are_those_of_the_results() -> None:
    """Worst, median and best of the results page, whose tables are those of the data."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    said = []
    for arm in ("the default policy", "the published method"):
        (line,) = [one for one in page.splitlines() if one.startswith(f"| {arm} |") and one.count(",") > 2]
        worst, median, best = line.split("|")[2].strip().split(", ")
        said.append(f"{best} to {worst} %, median {median} %")
    assert row("kernel pairs") == said


def test_the_noise_floor_is_above_the_table(cells: list[Any]) -> None:
    said = " ".join(README[README.index("Noise floor:") : README.index("| two H200")].split())
    assert f"stencils by {span(changes(cells, 'observe', BY_NCCL + BY_HOST + BY_COPIES))}" in said
    noise = [cell["noise"] for cell in cells if cell["program"] in STEPS]
    assert f"vary by {100 * min(noise):.1f} to {100 * max(noise):.1f} %" in said


def test_the_picture_is_of_today(python: Callable[..., CompletedProcess[str]]) -> None:
    done = python("-m", "tools.docs.picture", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    picture = (ROOT / "docs" / "pictures" / "stencil.svg").read_text(encoding="utf-8")
    assert picture.count("simulated") >= 3
