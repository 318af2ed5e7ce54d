"""Real software on a real GPU, bare against shimmed: pytest -m gpu tests/gpu. Programs: tools/gpu/correctness."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import compare_occupancy, needs, product
from tools.gpu.correctness.__main__ import OCCUPANCY, prepare
from tools.gpu.correctness.compare import AGAIN, BARE, Bench, compare
from tools.gpu.correctness.programs import AGGRESSIVE, Program, table

pytestmark = pytest.mark.gpu
PROGRAMS = {one.name: one for one in table()}


@pytest.fixture(scope="session")
def built() -> Path:
    """Folder of the programs made by nvcc."""
    return Path(__file__).resolve().parents[2] / "build/gpu/bin"


@pytest.fixture(scope="session")
def bench(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    lacks = needs.missing(("nvcc", "overlap-run"))
    if lacks:
        pytest.skip(f"needs {'; '.join(lacks)}")
    folder = tmp_path_factory.mktemp("correctness")
    return Bench(built, folder, product.environment(folder / "commands"))


@pytest.fixture(scope="session")
def rows(bench: Bench, built: Path, request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    """Of every program whose test was chosen: they run side by side."""
    names = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    chosen = [one for one in PROGRAMS.values() if one.name in names and not needs.missing(one.needs)]
    prepare(chosen, False, built)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in bench.all(chosen, max(1, (os.cpu_count() or 2) * 3 // 4), lambda rows: None):
        found.setdefault(row["program"], []).append(row)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_behind_the_library(bench: Bench, rows: dict[str, list[dict[str, Any]]], name: str) -> None:
    lacks = needs.missing(PROGRAMS[name].needs)
    if lacks:
        pytest.skip(f"needs {'; '.join(lacks)}")
    assert [row["policy"] for row in rows[name]] == list(PROGRAMS[name].policies)
    assert {row["policy"]: row["faults"] for row in rows[name] if row["faults"]} == {}


def test_another_result_is_seen(bench: Bench, built: Path) -> None:
    """The same program with another seed stands for a library that corrupts."""
    program = PROGRAMS["nvcc, plain"]
    prepare([program], False, built)
    outcomes = {BARE: bench.run(program, BARE), AGAIN: bench.run(program, AGAIN)}
    outcomes[AGGRESSIVE] = bench.run(replace(program, variables=(("KINDS_SEED", "2"),)), AGGRESSIVE)
    (row,) = compare(program, outcomes)
    assert row["faults"] == ["another result: plain"] and not row["same"]


def test_a_program_that_hangs_is_ended_and_seen(bench: Bench) -> None:
    hanging = Program("hangs", "sleep 60", limit=1, counted="nobody")
    outcomes = {BARE: bench.run(hanging, BARE), "h200": bench.run(hanging, "h200")}
    assert "bare, it ends with 124 instead of 0" in compare(hanging, outcomes)[0]["faults"]


def test_occupancy_is_the_drivers_and_the_planner_keeps_its_promises(bench: Bench, built: Path) -> None:
    prepare([], True, built)
    said = compare_occupancy.compare(str(built / OCCUPANCY), None, 1500, 20000)
    assert sum(said["samples"].values()) + sum(said["planner"]["promises"].values()) > 100_000
    assert not said["planner"]["broken"] and set(said["different"]) <= {compare_occupancy.KNOWN}, said["planner"][
        "examples"
    ]
