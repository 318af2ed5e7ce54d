"""The error that is printed with an estimate is that of the committed pairs of estimate and gain."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from pyshim.diagnosis.estimate import ERRORS, words
from pyshim.diagnosis.find import find

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/traces/data"
LEAST = 2.0  # percent of a step


def rows(path: str) -> list[dict[str, str]]:
    with (ROOT / path).open(newline="") as file:
        return list(csv.DictReader(file))


PAIRS = rows("docs/data/estimates.csv")


def test_the_error_is_that_of_the_pairs() -> None:
    more: dict[str, list[float]] = {"about": [], "at most": [], "excerpt": []}
    for row in PAIRS:
        if float(row["expected_percent"]) < -LEAST:
            more[row["estimate"]].append(float(row["gained_percent"]) - float(row["expected_percent"]))
    about, bounds = more["about"], more["at most"]
    nothing = [
        float(row["gained_percent"])
        for row in PAIRS
        if row["estimate"] == "about" and float(row["expected_percent"]) >= -LEAST
    ]
    missed = [gained for gained in nothing if gained <= -3]
    assert all(points >= 0 for points in bounds)
    found = (
        *(len(about), pytest.approx(min(about)), pytest.approx(max(about))),
        *(len(bounds), pytest.approx(max(bounds)), len(nothing), len(missed)),
    )
    assert found == ERRORS
    assert words(at_most=False) == "estimates of 8 traces were off by -5 to +3 points"


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["trace"]], ids=lambda row: f"{row['program']} {row['estimate']}"
)
def test_what_is_expected_is_what_the_trace_says_today(row: dict[str, str], tmp_path: Path, library: None) -> None:
    path = DATA / row["trace"]
    if row["estimate"] == "at most":  # read as if no GPU were named
        trace = json.loads(gzip.decompress(path.read_bytes()))
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({**trace, "deviceProperties": []}))
    (process,) = find(str(path)).processes
    assert process.saves_at_most == (row["estimate"] == "at most")
    assert -100 * process.saves_us / process.span_us == pytest.approx(float(row["expected_percent"]), abs=0.05)


def test_what_was_gained_is_what_was_measured() -> None:
    times = {row["name"]: row["ms"] for row in json.loads((DATA / "stencil-times.json").read_text())["rows"]}
    gained = {
        name: 100 * (times[f"{how}-raised"] / times[how] - 1)
        for name, how in (("stencil, through host memory", "host"), ("stencil, halo by NCCL", "nccl"))
    }
    for row in rows("tools/gpu/results/foreign.csv"):
        if row["arm"] == "default":
            gained[row["program"]] = float(row["change_percent"])
    for row in rows("tools/gpu/results/observed.csv"):
        if row["arm"] == "default" and row["bits"] == "64":
            name = f"{row['program']} {row['n']}".strip()
            stencil = "" if row["program"] in ("ddp", "fsdp", "transpose") else "stencil "
            gained[f"{stencil}{name}, H200"] = float(row["change_percent"])
    for row in PAIRS:
        assert float(row["gained_percent"]) == pytest.approx(gained[row["program"]], abs=0.05), row
