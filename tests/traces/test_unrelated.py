"""Traces that are not of ranks of one run: they are said to be none, and are not compared."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
NOT_ONE_RUN = "not all of the traces are of ranks of its run"
# As `overlap tune` leaves its folder.
SEARCH = '{"arm": [], "tries": ["X=1,2"], "command": ["./program"]}\n{"stage": -1, "arm": "bare", "seconds": 0.02}\n'


def copy(name: str, to: Path) -> Path:
    to.parent.mkdir(exist_ok=True)
    shutil.copy(DATA / f"{name}.json.gz", to)
    return to


def said(done) -> str:
    assert done.returncode == 0, done.stderr
    return " ".join(done.stderr.split())


def search(folder: Path) -> Path:
    folder.mkdir()
    (folder / "tune.jsonl").write_text(SEARCH)
    (folder / "001-bare.txt").write_text("step 100 ms\n")
    return folder


def with_rank(name: str, to: Path, rank: int, shift_us: float = 0.0) -> Path:
    """Write a real trace as that of another rank, or of another time."""
    whole = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    whole["distributedInfo"]["rank"] = rank
    for event in whole["traceEvents"]:
        if isinstance(event.get("ts"), (int, float)):
            event["ts"] += shift_us
    to.parent.mkdir(exist_ok=True)
    to.write_text(json.dumps(whole))
    return to


def test_a_folder_of_several_programs(overlap, tmp_path):
    for path in DATA.iterdir():
        if path.name.startswith(("bare", "comd-70", "h200", "stencil")):
            shutil.copy(path, tmp_path)
    done = overlap("explain", str(tmp_path))
    assert f"this is about stencil-host-events.json.gz, and {NOT_ONE_RUN}: 3 share neither kernels nor" in said(done)
    assert "rank 0 is in 2 of them" in said(done), "two runs of one program"
    assert "mpirun" not in done.stdout, "nothing says that the program has ranks"
    assert "stencil-times.json" not in done.stderr, "JSON that is no trace"
    found = json.loads(overlap("explain", str(tmp_path), "--json").stdout)
    assert found["ranks"] is None


def test_ranks_of_one_run_are_compared_and_nothing_is_said(overlap, tmp_path):
    for rank in (0, 1):
        with_rank("bare-rank0", tmp_path / "job" / f"rank{rank}.json", rank)
    done = overlap("explain", str(tmp_path / "job"), "--json")
    assert said(done) == "" and len(json.loads(done.stdout)["ranks"]["rows"]) == 2


def test_ranks_without_collectives_that_run_the_same_kernels_are_of_one_run(overlap, tmp_path):
    for rank in (0, 1):
        whole = json.loads(gzip.decompress((DATA / "stencil-host-events.json.gz").read_bytes()))
        for event in whole["traceEvents"]:
            if event.get("pid") == 746:
                event["pid"] += rank
            if event.get("cat") == "kernel":
                event["dur"] += rank
        (tmp_path / f"{rank}.json").write_text(json.dumps(whole))
    done = overlap("explain", str(tmp_path), env={"COLUMNS": "500"})
    assert said(done) == "" and "overlap-run torchrun ... train.py" in done.stdout, "torch.profiler has steps in Python"


def test_a_recording_that_is_there_twice_counts_once(overlap, tmp_path):
    first, second = (copy("bare-rank0", tmp_path / "job" / f"{name}.json.gz") for name in "ab")
    done = overlap("explain", str(tmp_path / "job"), "--json")
    assert said(done) == f"overlap: {second} is the same recording as {first}, and is left out"
    found = json.loads(done.stdout)
    assert (len(found["processes"]), found["ranks"]) == (1, None)
    assert "is the same recording" in said(overlap("explain", str(first), str(first)))


def test_cycles_of_the_profiler_in_one_process_are_no_ranks(overlap, tmp_path):
    """They have as many collectives of the same names; only what several ranks recorded in one cycle is compared."""
    for rank in (0, 1):
        for cycle in (0, 1):
            name = tmp_path / "job" / f"rank{rank}-{cycle}.json"
            with_rank("bare-rank0", name, rank, cycle * 60e6 + rank * 100)
    done = overlap("explain", str(tmp_path / "job"), "--json")
    assert "rank 0 is in 2 of them, rank 1 is in 2 of them" in said(done)
    rows = json.loads(done.stdout)["ranks"]["rows"]
    offsets = {row["name"]: round(row["offset_us"], -1) for row in rows}
    assert offsets == {f"rank{rank}-{cycle}.json": 100 * rank for rank in (0, 1) for cycle in (0, 1)}, rows
    shutil.rmtree(tmp_path / "job")
    for cycle in (0, 1):
        with_rank("bare-rank0", tmp_path / "job" / f"{cycle}.json", 0, cycle * 60e6)
    done = overlap("explain", str(tmp_path / "job"), "--json")
    assert "rank 0 is in 2 of them" in said(done) and json.loads(done.stdout)["ranks"] is None


@pytest.mark.parametrize("named", ["tune-4", "tune-4/tune.jsonl"])
def test_a_search_of_overlap_tune_is_named_as_one(overlap, tmp_path, named):
    search(tmp_path / "tune-4")
    for command, what in (("explain", "trace"), ("report", "report")):
        if command == "report" and "/" in named:
            continue
        done = overlap(command, named, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2 if command == "explain" else 1, "")
        assert done.stderr == (
            f"overlap: error: tune-4 is a search of overlap tune, and holds no {what}\n"
            "overlap: help: its answer: overlap tune --resume tune-4\n"
        )


def test_searches_beside_traces_are_passed_over(overlap, tmp_path):
    for number in range(1, 6):
        search(tmp_path / f"tune-{number}")
    done = overlap("explain", ".", cwd=tmp_path)
    assert (done.returncode, "tune" in done.stderr) == (2, False)
    assert done.stderr.startswith("overlap: error: . holds no trace\noverlap: help: torch.profiler")
    copy("comd-70", tmp_path / "trace.json.gz")
    assert said(overlap("explain", ".", cwd=tmp_path)) == ""


def test_of_many_files_that_say_nothing_a_few_are_named(overlap, tmp_path):
    for number in range(9):
        (tmp_path / f"rank{number}.json").write_text("")
    done = overlap("explain", ".", cwd=tmp_path)
    assert done.returncode == 2 and "and 6 more" in done.stderr and done.stderr.count("is empty") == 3


def test_operators_without_a_gpu_have_two_causes(overlap, tmp_path):
    """What the how-to guide records on a machine without a GPU has every activity that there is."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.0, "dur": 2.0, "args": {}}]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = overlap("explain", str(tmp_path / "t.json"))
    assert done.returncode == 2
    assert "torch.cuda.is_available()" in done.stderr and "ProfilerActivity.CUDA" in done.stderr


@pytest.mark.parametrize(("steps", "last"), [("3-99", True), ("0-4", False)])
def test_steps_that_are_not_there_are_said(overlap, steps, last):
    path = DATA / "bare-rank0.json.gz"
    told = said(overlap("explain", str(path), "--steps", steps))
    left = f" overlap: {path}: step 11 is the last one, and when the next would have begun is not known: it is left out"
    assert told == f"overlap: --steps {steps} goes beyond {path}, which has steps 2 to 11{left if last else ''}"
    assert said(overlap("explain", str(path), "--steps", "3-5")) == ""


def test_a_missing_trace_has_a_next_step(overlap, tmp_path):
    copy("comd-70", tmp_path / "x.json.gz")
    for named, hint in (
        ("x.json.gz/", "a file has no / at its end: overlap explain x.json.gz\n"),
        ("y.json.gz/", "did you mean x.json.gz?\n"),
        ("nothing-like-it", "torch.profiler records a trace with activities="),
    ):
        done = overlap("explain", named, cwd=tmp_path)
        assert done.returncode == 2 and f"overlap: help: {hint}" in done.stderr, done.stderr
