"""The comparison of bare and shimmed runs: what is a fault, what is not. Processes of this machine, no GPU."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import product
from tools.gpu.correctness.compare import AGAIN, BARE, Bench, Outcome, compare, results
from tools.gpu.correctness.programs import AGGRESSIVE, POLICIES, Program, table

PROGRAM = Program("made up", "", policies=("default",))
GOOD = Outcome(0, {"a": 1, "b": 2}, counts={"launches": 5, "shaped": 1, "raised": 0, "refused": 0}, seen=5)


def row(program: Program = PROGRAM, policy: str = "default", bare: Outcome = GOOD, **changed: Any) -> dict[str, Any]:
    again = changed.pop("again", bare)
    (made,) = compare(program, {BARE: bare, AGAIN: again, policy: dataclasses.replace(GOOD, **changed)})
    return made


def test_no_difference_is_no_fault() -> None:
    found = row()
    assert found["same"] and not found["faults"] and "different" not in found
    assert {key: found[key] for key in ("exit_bare", "exit_shimmed", "launches", "seen_by_profiler", "compared")} == {
        "exit_bare": 0,
        "exit_shimmed": 0,
        "launches": 5,
        "seen_by_profiler": 5,
        "compared": 2,
    }


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"results": {"a": 1, "b": 3}}, "another result: b"),
        ({"results": {"a": 1}}, "another result: b"),
        ({"results": {"a": 1, "b": 2, "c": 3}}, "another result: c"),
        ({"status": 1}, "it ends with 1 instead of 0"),
        ({"status": 124}, "it ends with 124 instead of 0"),
        ({"seen": 6}, "5 launches seen by the library, 6 by the profiler"),
        ({"counts": {}, "seen": None}, "the library saw no launch"),
        ({"counts": {"launches": 5, "refused": 2}}, "2 changed launches were refused"),
    ],
)
def test_a_difference_is_a_fault(changed: dict[str, Any], fault: str) -> None:
    assert row(**changed)["faults"] == [fault]


def test_a_program_that_only_asks_launches_nothing() -> None:
    assert not row(dataclasses.replace(PROGRAM, launches=False), counts={}, seen=None)["faults"]


def test_what_differs_by_itself_is_not_compared_and_is_named() -> None:
    again = dataclasses.replace(GOOD, results={"a": 1, "b": 7})
    found = row(again=again, results={"a": 1, "b": 9})
    assert found["same"] and found["itself"] == ["b"] and found["compared"] == 1
    assert row(again=again, results={"a": 2, "b": 9})["faults"] == ["another result: a"]


def test_a_program_that_does_not_run_bare_is_a_fault_though_it_is_the_same() -> None:
    broken = dataclasses.replace(GOOD, status=1, results={})
    assert row(bare=broken, status=1, results={})["faults"] == [
        "bare, it ends with 1 instead of 0",
        "bare again, it ends with 1 instead of 0",
        "bare, it says nothing",
    ]
    assert row(dataclasses.replace(PROGRAM, status=1), bare=dataclasses.replace(GOOD, status=1), status=1)["same"]


def test_a_policy_that_was_to_shape_and_did_not_has_shown_nothing() -> None:
    program = dataclasses.replace(PROGRAM, shaped=True, policies=(AGGRESSIVE,))
    counts = {"launches": 5, "shaped": 0}
    assert row(program, AGGRESSIVE, counts=counts)["faults"] == ["nothing was shaped, so nothing was tried"]
    assert not row(program, "default", counts=counts)["faults"]


def test_a_profiler_that_says_nothing_is_a_fault() -> None:
    program = dataclasses.replace(PROGRAM, policies=(AGGRESSIVE,))
    assert row(program, AGGRESSIVE, seen=None)["faults"] == ["cupti counted nothing"]
    assert not row(dataclasses.replace(program, counted="nobody"), AGGRESSIVE, seen=None)["faults"]


def test_results_by_name() -> None:
    assert results('{"x": "1",\n "y": 2}\n') == {"x": "1", "y": 2}
    assert results('{"x": 1}\n{"y": 2}\nab12\n') == {"x": 1, "y": 2, "line 3": "ab12"}
    lines = '{"case":"c","code":1,"got":2}\n{"case":"c","code":0}\n'
    assert results(lines) == {"c": {"case": "c", "code": 1, "got": 2}, "c (2)": {"case": "c", "code": 0}}


def test_real_processes_on_the_simulated_gpu(build: Any, simulated: dict[str, str], tmp_path: Path) -> None:
    """A program that launches, bare and behind the library; and one that looks whether the library is there."""
    found = product.environment(tmp_path / "commands")
    path = found["PATH"]
    bench = Bench(tmp_path, tmp_path / "runs", {**simulated, "PATH": path})
    launches = f"{build.client()} ptx=k launch=k,4224,128,0,0 repeat=7 launch=k,4224,128,1000,0"
    good = Program("good", launches, counted="nobody", policies=("observe", AGGRESSIVE))
    rows = bench.all([good], 4, lambda rows: None)
    assert [(row["policy"], row["faults"], row["launches"]) for row in rows] == [
        ("observe", [], 8),
        (AGGRESSIVE, [], 8),
    ]
    looks = Program("looks", f"sh -c 'echo $LD_PRELOAD; exec {launches}'", counted="nobody", policies=("observe",))
    assert [row["faults"] for row in bench.all([looks], 4, lambda rows: None)] == [["another result: line 1"]]


def test_the_table_is_whole() -> None:
    programs = table()
    assert len({one.name for one in programs}) == len(programs) > 30
    for one in programs:
        assert one.policies and set(one.policies) <= set(POLICIES), one.name
    for policy in POLICIES.values():
        assert "/" not in policy or Path(policy).is_file(), policy
