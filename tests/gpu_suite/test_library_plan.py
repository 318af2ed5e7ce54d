"""What the half of the overlap suite with real libraries runs, decided without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.gpu.overlap import arms
from tools.gpu.overlap import library_plan as plan
from tools.gpu.overlap.computations import ON_FEWER_SMS, WHAT

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("gpus", [1, 2])
def test_every_arm_is_one_of_the_suite_and_served_once_in_a_cell(gpus: int) -> None:
    for cell in plan.cells():
        served = [arm for one in plan.processes(gpus, [cell], True) for arm in one.ways(cell)]
        assert all(arms.known(arm) for arm in served)
        assert len(served) == len(set(served))
        assert ("sm-target" in served) == (cell.kind in ON_FEWER_SMS)
        assert ("threads-288" in served) == (gpus == 2)
        assert ("shape-2+priority" in served) == (2 in plan.SHAPED.get(cell.kind, ()))
        assert ("copy-engine" in served) == (cell.pattern != "graph")
        assert {"plain", "priority", "sequential", "policy:h200", "policy:observe"} <= set(served)


def test_the_matrix_is_24_cells_and_every_cell_has_a_name_of_its_own() -> None:
    cells = plan.cells()
    assert sum(cell.primary for cell in cells) == 24
    assert len({cell.name("SendRecv") for cell in cells}) == len(cells)
    assert {cell.kind for cell in cells} == set(WHAT)


@pytest.mark.parametrize(
    ("only", "count"),
    [
        pytest.param([], len(plan.cells()), id="nothing is everything"),
        pytest.param(["primary"], 24, id="a word"),
        pytest.param(["primary,simt"], 3, id="words that must all hold"),
        pytest.param(["primary,simt", "graph"], 4, id="either"),
        pytest.param(["graph,simt"], 0, id="what no cell is"),
    ],
)
def test_only(only: list[str], count: int) -> None:
    assert len(plan.chosen(only)) == count


def test_processes_of_kinds_that_are_not_asked_for_are_not_started() -> None:
    wanted = plan.chosen(["attention"])
    names = {process.name for process in plan.processes(1, wanted, True)}
    assert {"policy:h200, attention", "shape-1+priority"} <= names
    assert not {"policy:h200, simt", "shape-2+priority"} & names
    assert not [process for process in plan.processes(1, wanted, False) if process.policy]


def test_a_round_has_every_way_once_in_an_order_of_chance_that_is_the_same_again() -> None:
    takers = {"main": ["plain", "order", "priority"], "observe": ["plain"], "cluster-1": ["plain", "priority"]}
    rounds = list(plan.blocks(takers, 12, "seed"))
    for row in rounds:
        assert {name: sorted(ways) for name, ways in row} == {name: sorted(ways) for name, ways in takers.items()}
    assert len({tuple(name for name, _ in row) for row in rounds}) > 1
    assert len({tuple(dict(row)["main"]) for row in rounds}) > 1
    assert rounds == list(plan.blocks(takers, 12, "seed")) != list(plan.blocks(takers, 12, "another"))


@pytest.mark.parametrize(
    ("wanted", "took", "mib"),
    [
        pytest.param(0.3, (0.1, 0.5), 288, id="on the line through both"),
        pytest.param(0.9, (0.1, 0.5), 960, id="beyond it"),
        pytest.param(0.01, (0.1, 0.5), 1, id="never less than a MiB"),
        pytest.param(50.0, (0.1, 0.5), 3072, id="never more than fits"),
        pytest.param(0.3, (0.5, 0.1), 64, id="no line"),
    ],
)
def test_size_for(wanted: float, took: tuple[float, float], mib: int) -> None:
    assert plan.size_for(wanted, (64 << 20, 512 << 20), took) == mib << 20


def test_an_arm_that_lacks_a_sample_is_left_out_whole() -> None:
    kept = {"plain": [{"ms": 1.0}, {"ms": 2.0}], "order": [{"ms": 3.0}, None], "priority": [None, None]}
    assert plan.columns(kept) == {"plain": {"ms": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("digests", "count"),
    [
        pytest.param({"plain": ["a", "a"], "order": ["a", "a"], "sm-target": ["b", "b"]}, 0, id="all the same"),
        pytest.param({"plain": ["a", "a"], "order": ["a", "b"], "ctas-8": ["b"]}, 2, id="two differ"),
        pytest.param({"plain": ["a", "b"], "order": ["c", "d"]}, None, id="plain itself is not the same twice"),
        pytest.param({"order": ["a"]}, None, id="no plain"),
    ],
)
def test_differences(digests: dict[str, list[str]], count: int | None) -> None:
    assert plan.differences(digests) == count
