"""The set `critical`: turns of its arms, shares of the gain, and what is found wrong, with a made-up program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import critical, machine

PROGRAM = """#!{python}
import json, sys
_, nccl, kind, n, raised = sys.argv
turns = 0
print("answer " + json.dumps({{"nccl": 22809}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request == "end":
        break
    turns += 1
    if kind == "halo-stream" and raised == "1" and turns == {fails}:
        sys.exit(3)
    print("answer " + json.dumps({{"ms": [0.5 if raised == "1" else 1.0] * request[1]}}), flush=True)
print("answer " + json.dumps({{"digest": f"{{n}} {{turns}}"}}), flush=True)
"""


def program(folder: Path, fails: int = 0) -> Path:
    made = folder / "program"
    made.write_text(PROGRAM.format(python=sys.executable, fails=fails), encoding="utf-8")
    made.chmod(0o755)
    return made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """run(fails=) -> the file, of one n. Every arm is a bare process."""
    monkeypatch.setattr(critical, "POLICIES", {})
    monkeypatch.setattr(critical, "STENCILS", ("halo-stream", "host-event"))
    monkeypatch.setattr(machine, "describe", dict)

    def measure(fails: int = 0, limit: str = "400") -> Any:
        out = tmp_path / "out.json"
        words = [
            "run",
            "--program",
            str(program(tmp_path, fails)),
            "--nccl",
            "none",
            "--out",
            str(out),
            "--limit",
            limit,
        ]
        assert (
            critical.main(
                [*words, "--rounds", "2", "--sizes", "8", "--starts", "2", "--only", "halo-stream", "host-event"]
            )
            == 0
        )
        return json.loads(out.read_text(encoding="utf-8"))

    return measure


def row(arm: str, ms: list[float | None], digest: str = "a", start: int = 0, **more: Any) -> dict[str, Any]:
    turns = [None if one is None else [one, one, one] for one in ms]
    return {"program": "halo-stream", "n": 192, "arm": arm, "start": start, "ms": turns, "digest": digest, **more}


def arms(bare: float = 1.0, raised: float = 0.8, default: float = 0.81, **digests: str) -> list[dict[str, Any]]:
    times = {"bare": bare, "raised": raised, "observe": bare, "default": default, "paper": 2 * bare}
    return [row(arm, [ms * drift for drift in (1, 1.1, 1.2)], digests.get(arm, "a")) for arm, ms in times.items()]


def test_every_arm_takes_its_turns_in_processes_of_two_starts(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = run()
    assert len(found["rows"]) == len(critical.STENCILS) * len(critical.ALL) * 2 and found["program"] == {"nccl": 22809}
    assert {len(one["ms"]) for one in found["rows"]} == {2, 1}
    assert {one["digest"] for one in found["rows"]} == {"8 3", "8 2"}, "a turn to learn, and those that count"
    assert [one["share"] for one in found["cells"]] == [0.0] * len(critical.STENCILS)
    assert all(one["wrong"] == ["the default gets 0% of what raising gains"] for one in found["cells"])
    assert capsys.readouterr().out == critical.table(found["cells"])


def test_a_process_that_dies_is_said_and_the_others_go_on(run: Any) -> None:
    found = run(fails=3)
    first = next(one for one in found["cells"] if one["program"] == "halo-stream")
    assert "a process failed" in first["wrong"] and first["turns"] == 2
    assert next(one for one in found["rows"] if "broken" in one)["statuses"] == [3]


def test_stages_that_there_is_no_time_for_are_named(run: Any) -> None:
    found = run(limit="1")
    assert found["rows"] == [] and [one.split(",")[0] for one in found["not_measured"]] == ["stage 1", "stage 4"]


def test_the_share_is_of_the_gain_of_the_programs_own_priorities() -> None:
    (found,) = critical.cells(arms())
    assert found["share"] == pytest.approx(0.95) and not found["wrong"] and found["turns"] == 3
    assert found["change"]["default"][0] == pytest.approx(-0.19) and found["change"]["paper"][0] == 1.0
    (less,) = critical.cells(arms(default=0.9))
    assert less["wrong"] == ["the default gets 50% of what raising gains"]


def test_where_raising_gains_nothing_there_is_no_share() -> None:
    (found,) = critical.cells(arms(raised=1.0, default=1.0))
    assert found["share"] is None and not found["wrong"] and "nothing to gain" in critical.table([found])


def test_a_trap_may_not_cost_more_than_one_percent() -> None:
    for default, wrong in ((1.009, []), (1.02, ["the default costs 2.0%"]), (0.5, [])):
        (found,) = critical.cells([one for one in arms(default=default) if one["arm"] in critical.TWO])
        assert found["wrong"] == wrong and "share" not in found


def test_other_results_are_wrong_but_a_second_start_may_have_its_own() -> None:
    (found,) = critical.cells(arms(default=0.8, paper="b"))
    assert found["wrong"] == ["digests differ: ['a', 'b']"]
    again = [row(one["arm"], [1.0], "later", 1) for one in arms()]
    assert not any("digests" in wrong for wrong in critical.cells([*arms(), *again])[0]["wrong"])


def test_turns_that_one_arm_lacks_are_left_out() -> None:
    rows = arms()
    rows[1]["ms"][1] = None
    assert critical.cells(rows)[0]["turns"] == 2


def test_observe_must_be_within_noise() -> None:
    rows = arms()
    rows[2] = row("observe", [1.1, 1.21, 1.32])
    assert any(wrong == "observe costs 10.0%" for wrong in critical.cells(rows)[0]["wrong"])


def test_an_interval_tells_how_far_processes_of_an_arm_differ() -> None:
    slow = [row(one["arm"], [0.99 if one["arm"] == "default" else 1.0] * 3, "b", 1) for one in arms()]
    (alike,), (apart,) = critical.cells(arms()), critical.cells([*arms(), *slow])
    assert alike["change"]["default"][1] == alike["change"]["default"][2]
    assert apart["change"]["default"][1] < -0.15 and apart["change"]["default"][2] > -0.05
