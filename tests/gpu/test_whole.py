"""Whole programs: how samples become changes, what is called possible, and which cells run together. No GPU."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tools.answers import comparing, suite
from tools.gpu.overlap import library_plan
from tools.gpu.whole import measure, table
from tools.gpu.whole.cells import put_together
from tools.gpu.whole.measure import ARMS, GIB, PROCESSES, grouped
from tools.gpu.whole.programs import GAINING, GAINING_ALONE, GAINS, LOOPS, LOSING, Cell, Place, cells

ROOT = Path(__file__).resolve().parents[2]

BARE = [[1.0], [1.02], [0.98], [1.0], [1.01], [0.99]]


def row(arm: str, factor: float = 1.0, start: int = 0, **more: Any) -> dict[str, Any]:
    ms = [[one * factor for one in turn] for turn in BARE]
    base = {"program": "halo-stream", "n": 256, "bits": 64, "arm": arm, "start": start, "ms": ms, "digest": "d"}
    return {**base, **more}


def one(*rows: dict[str, Any], **file: Any) -> dict[str, Any]:
    (found,) = put_together({"rows": list(rows), **file})
    return found


def test_a_change_is_of_rounds_and_has_an_interval() -> None:
    found = one(row("bare"), row("default", 0.8), row("observe"))
    assert found["ms"] == 1.0 and found["change"]["default"] == [-0.2, -0.2, -0.2]
    assert found["change"]["observe"] == [0.0, 0.0, 0.0] and not found["wrong"]
    assert found["expected"] == GAINS and found["as_expected"]


def test_starts_count_as_one_and_a_missing_one_is_left_out() -> None:
    found = one(row("bare"), row("bare", 2.0, 1), row("default", 0.9), row("default", 1.8, 1), row("trial", 0.5))
    assert found["starts"] == 2 and found["rounds"] == 12
    assert found["change"]["default"][0] == -0.1 and found["change"]["trial"][0] == -0.5


def test_what_is_possible_is_the_longer_part() -> None:
    found = one(row("bare", computation=[0.7, 0.7], communication=[0.4]), row("streams", 0.8), row("communication"))
    assert found["possible"] == -0.3 and found["best"] == "streams" and table.best(found) == -0.2
    assert one(row("bare", computation=[1.2], communication=[0.4]))["possible"] == 0.0


def test_a_prediction_is_of_the_trace_of_that_size() -> None:
    predicted = {"halo-stream-256.json.gz": {"span_us": 400.0, "most_us": 100.0}}
    assert one(row("bare"), predicted=predicted)["predicted"] == -0.25
    assert (
        one(row("bare"), predicted={"halo-stream-512.json.gz": {"span_us": 1.0, "most_us": 1.0}})["predicted"] is None
    )


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [
        ([{"outcome": "kept", "arm": "critical-streams"}], "critical-streams"),
        ([{"outcome": "nothing", "arm": None}], ""),
        ([{"outcome": "unsettled"}], None),
        ([{"outcome": "kept", "arm": "a"}, {"outcome": "nothing"}], None),
    ],
)
def test_a_trial_says_what_it_kept_and_what_trying_cost(outcomes: list[dict[str, Any]], kept: str | None) -> None:
    tried = {"first_ms": 1.1, "last_ms": 0.8, "iterations": 2000}
    found = one(row("bare"), row("trial", 0.8, tried=tried, trial={"outcomes": outcomes}))
    assert found["kept"] == kept and found["trial_first"] == 0.1


def trial(kept: str, streams: tuple[float, ...], communication: tuple[float, ...]) -> dict[str, Any]:
    keys = ("percent", "low_percent", "high_percent")
    arms = [
        {"name": name, **dict(zip(keys, of))} for name, of in (("critical-streams", streams), (RAISED, communication))
    ]
    return row(
        "trial", trial={"outcomes": [{"outcome": "kept" if kept else "nothing", "arm": kept or None, "arms": arms}]}
    )


RAISED, BOTH = "raised-communication", "streams-and-communication"


@pytest.mark.parametrize(
    ("kept", "best", "right", "holds"),
    [
        (RAISED, 0.8, True, True),
        ("critical-streams", 0.8, False, True),
        ("", 0.995, True, False),
        ("", 0.9, False, False),
    ],
)
def test_a_trial_is_held_against_processes_of_its_arms(kept: str, best: float, right: bool, holds: bool) -> None:
    verdict = trial(kept, (0.0, -1.0, 1.0), (-20.0, -22.0, -18.0))
    found = one(row("bare", 2.0), row("observe"), row("streams"), row("communication", best), verdict)
    assert found["right"] is right and found["best_tried"] == RAISED
    streams, communication = found["verdicts"]
    assert streams["holds"] and communication["holds"] is holds, "against observe, not bare"
    assert communication["said"] == [-0.2, -0.22, -0.18] and communication["truth"] == [round(best - 1, 4)] * 3
    (line, summary) = table.trials([found]).splitlines()
    assert ("WRONG" in line) is not right and ("MISSED" in line) is not holds
    assert summary.startswith(f"1 trials settled, {int(right)} right; {1 + holds} of 2 intervals")


def test_an_arm_that_was_not_measured_has_no_column() -> None:
    without = [one(row("bare"), row("streams", 0.9))]
    assert "both" not in table.table(without) and "both" not in table.families(without)
    found = [
        one(
            row("bare"),
            row("observe"),
            row("streams", 0.9),
            row("both", 0.7),
            trial(BOTH, (-10.0, -11.0, -9.0), (0.0, -1.0, 1.0)),
        )
    ]
    assert "both" in table.table(found) and "both" in table.families(found) and "-30.0" in table.table(found)
    assert found[0]["right"] and found[0]["best_tried"] == BOTH and found[0]["best"] == "streams"


def test_loops_are_those_that_priority_changes_most() -> None:
    """Of real libraries and NCCL, by the kept results; each change is the same in all rounds."""
    found: list[tuple[comparing.Change, str]] = []
    for name in sorted({loop.results for loop in LOOPS.values()}):
        (run,) = suite.read(ROOT, name).runs
        changes = comparing.against(
            [cell for cell in run.cells if cell.pattern in ("pairs", "loop")], "priority", "plain"
        )
        assert changes
        found += [(change, name) for change in changes.changes]
    found.sort(key=lambda pair: pair[0].median)
    alone = next(pair for pair in found if pair[1] == LOOPS[GAINING_ALONE].results)
    for (change, name), loop, sign in (
        (found[0], LOOPS[GAINING], -1),
        (alone, LOOPS[GAINING_ALONE], -1),
        (found[-1], LOOPS[LOSING], 1),
    ):
        cell = change.cell
        assert (name, cell.name, cell.computation, cell.pattern) == (loop.results, loop.cell, loop.kind, loop.pattern)
        assert all((ratio - 1) * sign > 0.03 for ratio in cell.ratios("priority", "plain"))
        raw = json.loads((ROOT / f"tools/gpu/results/{name}.json").read_text(encoding="utf-8"))
        assert {one["bytes"] for one in raw["runs"][0]["cells"] if one["cell"] == cell.name} == {loop.bytes}
        (known,) = (one for one in cells() if one.program == next(key for key in LOOPS if LOOPS[key] == loop))
        assert library_plan.COMMUNICATION[known.ranks][0] == cell.communication
        assert known.raised == {-1: "gains", 1: "loses"}[sign]


def test_raised_communication_is_judged_where_it_was_declared() -> None:
    def loop(program: str, raised: float) -> dict[str, Any]:
        own: dict[str, Any] = {"program": program, "n": 0}
        return one(row("bare", **own), row("default", **own), row("communication", raised, **own))

    assert loop(GAINING, 0.8)["as_expected"] and not loop(GAINING, 1.0)["as_expected"]
    assert loop(LOSING, 1.05)["as_expected"] and not loop(LOSING, 0.8)["as_expected"]
    assert "expected: nothing; communication raised loses" in table.line(loop(LOSING, 0.8))


def test_trying_costs_what_the_first_iterations_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop a step has eight."""
    batches, clock = iter(range(1, 1000)), [0.0]

    class Ranks:
        def ask(self, request: Any, patience: float) -> Any:
            clock[0] += 7
            return [{"ms": [float(next(batches)) for _ in range(request[1])]}]

    monkeypatch.setattr(measure.time, "monotonic", lambda: clock[0])
    ranks: Any = Ranks()
    running = measure.Running(Cell(GAINING, "", GAINS), "trial", ranks, Path(), {"steps": 50})
    measure.try_out(running)
    # 400 iterations a batch: the first three are 1,000 and some.
    assert running.row["tried"]["first_ms"] == 2.0 and running.row["tried"]["iterations"] == 6000


def test_what_a_cell_lacks_is_named() -> None:
    place = Place(Path("/bin"), "libnccl.so.2", "")
    assert place.lacks(Cell("mpi-stencil", "", GAINS, 128)) == "no MPI"
    if importlib.util.find_spec("jax") is None:
        assert place.lacks(Cell("pmap", "", GAINS)) == "no Python module jax"


def test_every_program_is_of_one_family() -> None:
    named = [name for programs in table.FAMILIES.values() for name in programs]
    assert sorted(named) == sorted({cell.program for cell in cells()})
    assert table.family({"program": "solver", "n": 128}) == table.SMALLEST
    found = one(row("bare", computation=[0.7], communication=[0.1]), row("default", 0.8), row("observe"))
    found["rounds"] = table.ROUNDS
    fewer = {**found, "rounds": table.ROUNDS - 1, "change": {**found["change"], "default": [-0.9]}}
    other = {**found, "change": {**found["change"], "default": [-0.1]}}
    (line,) = table.families([found, other, fewer]).splitlines()[1:]
    assert line.split()[:4] == ["stencils,", "halo", "by", "NCCL"] and "-20.0 to -10.0" in line and "2" in line


def test_what_is_wrong_is_said() -> None:
    assert one(row("bare"), row("default", digest="e"))["wrong"] == ["digests differ: ['d', 'e']"]
    assert one(row("bare"), row("default", broken="ended"))["wrong"] == ["a process failed: default"]
    assert "wrong" in table.table([one(row("bare"), row("default", broken="ended"))])


def test_stages_fit_the_machine(tmp_path: Any) -> None:
    groups = grouped(cells())
    assert [cell for group in groups for cell in group] == cells() and len(set(cells())) == len(cells())
    for group in groups:
        assert len(group) == 1 or all(cell.is_compiled for cell in group)
        assert len(group) * len(ARMS) <= PROCESSES
        assert len(group) == 1 or len(ARMS) * sum(cell.gib for cell in group) <= GIB
        for cell in group:
            assert Place(tmp_path, "nccl", "/mpi").command(cell, True, ["overlap-run"]).count("overlap-run") == 1


def test_priorities_of_the_program_are_an_argument() -> None:
    place = Place(Path("/bin"), "libnccl.so.2", "")
    cell = Cell("host-stream", "", GAINS, 128, 32)
    assert place.command(cell, True, []) == ["/bin/stencil32", "libnccl.so.2", "host-stream", "128", "1"]
    assert place.lacks(Cell("mpi-stencil", "", GAINS, 128)) and not place.lacks(cell)
