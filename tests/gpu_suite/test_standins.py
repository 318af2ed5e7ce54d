"""`standins.py run`: the arms do what they say, and the file is what its readers are told."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tools.gpu.overlap.arms import ARMS, blocks_of, known, meaning
from tools.gpu.overlap.cells import KINDS, POLICIES, STAND_INS, Cell, cells

from .conftest import SUITE, Standins

BARE = "computation,communication,sequential,plain,priority,order,cluster-1,shape-1+priority"
FEW = f"{BARE},policy:observe,policy:h200-paper"


def measured(standins: Standins, file: Path, rule: str, only: str) -> dict[str, Any]:
    done = standins("run", "--out", str(file), "--simulate", f"h200:{rule}", "--rounds", "2", "--only", only)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(file.read_text())
    return result


@pytest.fixture(scope="module")
def under_hold(standins: Standins, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("hold") / "made.json"
    return measured(standins, file, "hold", f"primary,0.5,tensor128,persistent,{FEW}")


@pytest.fixture(scope="module")
def under_backfill(standins: Standins, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("backfill") / "made.json"
    return measured(standins, file, "backfill", f"primary,0.5,tensor128,{FEW}")


def arms(result: dict[str, Any], kind: str, key: str = "ms") -> dict[str, float]:
    cell = next(cell for cell in result["runs"][0]["cells"] if cell["computation"] == kind)
    return {arm: median(row[key]) for arm, row in cell["arms"].items()}


def test_the_file_is_what_its_readers_are_told(under_hold: dict[str, Any]) -> None:
    assert under_hold["version"] == 1
    assert under_hold["set"] == "overlap-simulated"
    assert under_hold["machine"]["simulated"] is True
    assert set(under_hold["kernels"]) == {"tensor128", "persistent", *STAND_INS}
    roles = {name: row["role"] for name, row in under_hold["kernels"].items()}
    assert roles == {name: "communication" if name in STAND_INS else "computation" for name in roles}
    (run,) = under_hold["runs"]
    assert run["rule"] == "hold"
    names = [cell["cell"] for cell in run["cells"]]
    assert names == ["tensor128 + hbm-2.5x 1:2, one long kernel", "persistent + hbm-2.5x 1:2, one long kernel"]
    for cell in run["cells"]:
        assert (cell["pattern"], cell["ratio"], cell["primary"]) == ("one", 0.5, True)
        assert set(cell["arms"]) == {
            arm for arm in FEW.split(",") if arm != "shape-1+priority" or "tensor" in cell["cell"]
        }
        for row in cell["arms"].values():
            assert [len(row[key]) for key in ("ms", "computation_ms", "communication_ms")] == [2, 2, 2]
    assert run["cells"][0]["arms"]["shape-1+priority"]["blocks_per_sm"] == 1
    assert run["cells"][0]["arms"]["shape-1+priority"]["dynamic"] == 115713


def test_communication_takes_the_share_that_was_asked_for(under_hold: dict[str, Any]) -> None:
    for kind in ("tensor128", "persistent"):
        alone = arms(under_hold, kind)
        assert alone["communication"] / alone["computation"] == pytest.approx(0.5, abs=0.02)


def test_under_hold_priority_alone_gets_the_gain(under_hold: dict[str, Any]) -> None:
    ms = arms(under_hold, "tensor128")
    assert ms["plain"] > 0.95 * ms["sequential"]
    assert ms["priority"] < 0.85 * ms["plain"]
    assert ms["priority"] < ms["shape-1+priority"]
    assert ms["order"] == pytest.approx(ms["priority"], rel=0.05)


def test_policies_act_and_observe_does_not(under_hold: dict[str, Any]) -> None:
    ms = arms(under_hold, "tensor128")
    assert ms["policy:observe"] == pytest.approx(ms["plain"], rel=0.03)
    assert ms["policy:h200-paper"] == pytest.approx(ms["shape-1+priority"], rel=0.02)


def test_under_backfill_priority_moves_nothing(under_backfill: dict[str, Any]) -> None:
    """A cluster of four finds no four multiprocessors that are free at once."""
    ms = arms(under_backfill, "tensor128")
    assert ms["priority"] == pytest.approx(ms["plain"], rel=0.02)


def test_a_persistent_kernel_takes_twice_as_long_beside_communication(under_hold: dict[str, Any]) -> None:
    took = arms(under_hold, "persistent", "computation_ms")
    assert 1.3 < took["order"] / took["computation"] < 2.1


def test_every_arm_of_every_cell_is_known() -> None:
    from tools.gpu.overlap.cells import turns

    sizes = {3: 5000, 2: 7000, 1: 9000}
    seen = {arm for cell in cells() for arm in turns(cell, sizes, 1 << 20, 1000.0, True)}
    assert {arm for arm in seen if not known(arm)} == set()
    assert set(ARMS) - seen == {"green"}  # left out; its name is in the table for others
    assert {blocks_of(arm) for arm in seen} == {None, 1, 2, 3}
    assert all(meaning(arm) for arm in seen)


def test_the_primary_matrix_has_24_cells() -> None:
    made = [cell for cell in cells() if cell.primary]
    assert {(cell.computation, cell.ratio) for cell in made} == {(kind, r) for kind in KINDS for r in (0.25, 0.5, 1.0)}
    assert len({cell.name for cell in cells()}) == len(cells())
    assert Cell("simt", "link").primary is False


def test_policies_of_the_suite_are_valid(overlap: Any) -> None:
    own = sorted(str(file) for file in (SUITE / "policies").glob("*.yaml"))
    others = {"blocks-1", "blocks-2", "blocks-4"}  # of the half with real libraries
    assert {Path(file).stem for file in own} - others < set(POLICIES)
    assert overlap("policy", "check", *own).returncode == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--simulate", "a100"], "only h200 has kernels here", id="another GPU"),
        pytest.param(["--simulate", "h200:hoard"], "only h200 has kernels here", id="no rule"),
        pytest.param(["--simulate", "h200", "--only", "tensr128"], "nothing is called 'tensr128'", id="a typo"),
        pytest.param(
            ["--simulate", "h200", "--out", "/no/such/folder/made.json"], "no folder /no/such/folder", id="folder"
        ),
        pytest.param(["--simulate", "h200", "--rounds", "0"], "--rounds is a number from 1", id="no rounds"),
    ],
)
def test_wrong_options_are_one_error(standins: Standins, tmp_path: Path, options: list[str], said: str) -> None:
    done = standins("run", "--out", str(tmp_path / "made.json"), *options)
    assert done.returncode == 2
    assert done.stderr.startswith("standins: error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_gpu_there_is_one_error(standins: Standins, tmp_path: Path) -> None:
    done = standins(
        "run", "--out", str(tmp_path / "made.json"), "--only", "tensor128", env={"LD_LIBRARY_PATH": "/none"}
    )
    assert done.returncode == 1
    assert done.stderr.startswith("standins: error: bare: standins-program: no ")
    assert "Traceback" not in done.stderr


def test_changes_are_medians_of_paired_ratios(standins: Standins, tmp_path: Path) -> None:
    file = tmp_path / "made.json"
    arms = {"plain": {"ms": [1.0, 2.0, 4.0]}, "order": {"ms": [0.9, 1.9, 2.0]}, "computation": {"ms": [1.0, 1.0, 1.0]}}
    file.write_text(json.dumps({"runs": [{"rule": "hold", "cells": [{"cell": "one", "arms": arms}]}]}))
    done = standins("changes", str(file))
    assert (done.returncode, done.stdout) == (0, "hold: one: order -10.0\n")
    file.write_text("[]")
    assert standins("changes", str(file)).returncode == 2


def test_a_simulated_run_is_held_against_a_real_one(standins: Standins, tmp_path: Path) -> None:
    for name, rule, took in (("real.json", None, 0.9), ("simulated.json", "hold", 0.8)):
        arms = {"plain": {"ms": [1.0]}, "order": {"ms": [took]}, "shape-2": {"ms": [2.0]}, "memcpy": {"ms": [1.0]}}
        cells_ = [{"cell": "one", "primary": True, "arms": arms}, {"cell": "two", "primary": False, "arms": arms}]
        (tmp_path / name).write_text(json.dumps({"runs": [{"rule": rule, "cells": cells_}]}))
    done = standins("changes", str(tmp_path / "simulated.json"), str(tmp_path / "real.json"))
    assert (done.returncode, done.stdout) == (0, "hold: order 10.0\nhold: shape 0.0\n")


def test_costs_of_what_is_no_run_are_one_error(standins: Standins, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"version": 1}')
    for path, said in ((file, "not a whole run of a real GPU"), (tmp_path / "none.json", "No such file")):
        done = standins("costs", str(path))
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr
