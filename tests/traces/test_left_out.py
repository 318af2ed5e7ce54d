"""Records that cannot be true: where they could change the answer, it is not known."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from made import GEMM
from made_waits import Program, boundary, by_host, copy, interior, steps


def program(count: int = 10) -> Program:
    """A small kernel waits behind a large one, and the host for it."""
    return steps(Program(), by_host, count)


def answer(overlap: Any, path: Path, *options: str) -> dict[str, Any]:
    done = overlap("explain", str(path), "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def changed(path: Path, change: Callable[[dict[str, Any]], None], name: str, most: int = 1000) -> Path:
    """Change the first events of a name."""
    whole = json.loads(path.read_text())
    events = [one for one in whole["traceEvents"] if str(one.get("name", "")).startswith(name)]
    for event in events[:most]:
        change(event)
    assert events
    path.write_text(json.dumps(whole, indent=1))
    return path


BAD = {
    "NaN": lambda one: one.update(dur=float("nan")),
    "infinite": lambda one: one.update(dur=float("inf")),
    "negative": lambda one: one.update(dur=-5.0),
    "null": lambda one: one.update(dur=None),
    "a word": lambda one: one.update(dur="long"),
    "no start": lambda one: one.pop("ts"),
    "huge": lambda one: one.update(ts=1e300),
    "for days": lambda one: one.update(dur=1e12),
    "for many steps": lambda one: one.update(dur=900.0),
}


@pytest.mark.parametrize("how", BAD)
def test_without_its_main_kernel_a_trace_has_no_answer(overlap, library, tmp_path, how):
    path = program().kineto(tmp_path / "trace.json")
    assert answer(overlap, path)["verdict"] == "yes"
    found = answer(overlap, changed(path, BAD[how], "interior"))
    assert found["verdict"] == "not known" and len(found["verdicts"]) == 1
    assert "10 of " in found["verdicts"][0]["text"] and "have no usable time" in found["verdicts"][0]["text"]
    assert found["next"].startswith("record the trace again")
    (note,) = found["notes"]
    assert "left out" in note, note
    done = overlap("explain", str(path))
    assert ", of what could be read: " in " ".join(done.stdout.split()) and "\nidle" not in done.stdout


def test_in_which_steps_a_record_was_is_not_known(overlap, library, tmp_path):
    """One of a kernel that is in each step, and the only one of another, say nothing of a few steps."""
    path = changed(program(40).kineto(tmp_path / "trace.json"), BAD["NaN"], "interior", most=1)
    chosen = "--steps", "20-30"
    assert answer(overlap, path)["verdict"] == answer(overlap, path, *chosen)["verdict"] == "yes"
    whole = json.loads(path.read_text())
    once = next(one for one in whole["traceEvents"] if str(one["name"]).startswith("interior"))
    whole["traceEvents"].append({**once, "name": "initialise", "dur": float("nan")})
    path.write_text(json.dumps(whole))
    assert answer(overlap, path, *chosen)["verdict"] == "yes" and answer(overlap, path)["verdict"] == "not known"
    found = answer(overlap, changed(path, BAD["NaN"], "interior"), *chosen)
    assert found["verdict"] == "not known" and found["verdicts"][0]["text"].startswith("12 of 35 kernels")


def test_times_before_zero_are_times(overlap, library, tmp_path):
    path = program().kineto(tmp_path / "trace.json")
    before = answer(overlap, path)
    whole = json.loads(path.read_text())
    for event in whole["traceEvents"]:
        event["ts"] = event.get("ts", 0) - 10_000_000
    path.write_text(json.dumps(whole))
    after = answer(overlap, path)
    assert (after["verdict"], after["processes"][0]["shares"]) == ("yes", before["processes"][0]["shares"])


def test_the_first_line_is_named(overlap, library, tmp_path):
    path = changed(program().kineto(tmp_path / "trace.json"), BAD["NaN"], "interior")
    lines = path.read_text().splitlines()
    first = next(number for number, line in enumerate(lines, 1) if "NaN" in line)
    found = answer(overlap, path)
    named = int(found["next"].rpartition("line ")[2].replace(",", ""))
    assert first - 10 < named <= first and f"(the first in line {named:,})" in found["notes"][0]


def test_places_stay_those_of_the_file_behind_numbers_that_are_none(overlap, library, tmp_path):
    """What C prints for them is no JSON; a line further on is named rightly all the same."""
    path = changed(program().kineto(tmp_path / "trace.json"), BAD["a word"], "boundary", 1)
    text = path.read_text()
    for word in ("nan", "-nan", "inf", "-inf"):
        path.write_text(text.replace('"ts": ', f'"blocks per SM": {word},\n"ts": ', 40))
        lines = path.read_text().splitlines()
        wrong = next(number for number, line in enumerate(lines, 1) if '"long"' in line)
        (note,) = answer(overlap, path)["notes"]
        named = int(note.rpartition("in line ")[2].partition(")")[0])
        assert wrong - 10 < named <= wrong, (word, note, wrong)


@pytest.mark.parametrize("how", ["NaN", "for days"])
def test_one_of_many_changes_nothing_and_is_said(overlap, library, tmp_path, how):
    path = changed(program(30).kineto(tmp_path / "trace.json"), BAD[how], "interior", 1)
    found = answer(overlap, path)
    assert found["verdict"] == "yes"
    (note,) = found["notes"]
    assert ": 1 " in note and "left out" in note, note


@pytest.mark.parametrize(("name", "text"), [("cudaLaunchKernel", "calls of the host"), ("Stream Sync", "waits of")])
def test_without_calls_or_waits_there_is_no_answer(overlap, library, tmp_path, name, text):
    path = changed(program().kineto(tmp_path / "trace.json"), BAD["NaN"], name)
    found = answer(overlap, path)
    assert found["verdict"] == "not known" and text in found["verdicts"][0]["text"]


def test_what_is_of_no_use_may_be_anything(overlap, library, tmp_path):
    path = program().kineto(tmp_path / "trace.json")
    before = answer(overlap, path)
    found = answer(overlap, changed(path, BAD["NaN"], "aten::mm"))
    assert found["verdict"] == before["verdict"] and found["notes"] == []


def test_of_several_ranks_one_that_can_be_read_counts(overlap, library, tmp_path):
    program().kineto(tmp_path / "a.json")
    changed(program().kineto(tmp_path / "b.json"), BAD["NaN"], "interior")
    found = answer(overlap, tmp_path)
    assert found["verdict"] == "yes" and found["processes"][found["worst"]]["path"].endswith("a.json")


def test_kernels_of_a_graph_and_the_next_kernel_may_run_beside_each_other(overlap, library, tmp_path):
    """Programmatic dependent launch: a kernel begins before the one in front ends."""
    made = Program()
    for number in range(1, 11):
        at = 10_000.0 * number
        made.launch(interior(at + 10, 5000), at + 1)
        made.launch(interior(at + 4000, 3000), at + 2)
        made.graph([interior(at + 7100 + 10 * part, 1500)._replace(name=GEMM) for part in range(4)], at + 3)
        made.steps.append((number, at, 10_000.0))
    found = answer(overlap, made.kineto(tmp_path / "trace.json"))
    assert found["notes"] == [] and found["verdict"] != "not known"


def test_an_export_of_nsys_with_times_that_are_none(overlap, library, tmp_path):
    path = program().nsys(tmp_path / "t.sqlite")
    assert answer(overlap, path)["verdict"] == "yes"
    with closing(sqlite3.connect(path)) as database:
        database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = start - 5 WHERE "end" - start > 20000')
        database.commit()
    found = answer(overlap, path)
    assert found["verdict"] == "not known" and found["notes"][0].endswith("10 records have no usable time: left out")


def test_a_trace_without_any_usable_time_is_refused_with_a_next_step(overlap, tmp_path):
    path = program().kineto(tmp_path / "trace.json")
    whole = json.loads(path.read_text())
    for event in whole["traceEvents"]:
        event["ts"] = event.get("ts", 1.0) * 1e30
    path.write_text(json.dumps(whole, indent=1))
    done = overlap("explain", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith(f"overlap: error: {path}: no kernel of a GPU in it: ")
    assert "have no usable time (the first in line" in first
    assert second.startswith("overlap: help: record the trace again"), second


def test_a_count_of_one_has_a_singular(overlap, library, tmp_path):
    made = program(30)
    made.launch(copy(5.0, 1.0), 1.0)
    path = changed(made.kineto(tmp_path / "trace.json"), BAD["NaN"], boundary(0, 1).name or "", 1)
    (note,) = answer(overlap, path)["notes"]
    assert ": 1 event has no usable time (in line " in note
