"""Traces that torch.profiler wrote on two H200 (data/README.md), against a sum of edges that is not ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pyshim.traces import open_trace

DATA = Path(__file__).with_name("data")
BEFORE, AFTER = (str(DATA / f"{name}-rank0.json.gz") for name in ("bare", "h200-paper"))
# Microseconds a step, of nine; by `by_hand`, when the traces came.
ANSWERS = {
    BEFORE: {"step_time": 13468.538, "computation": 12817.360, "communication": 2372.645, "hidden": 1852.443},
    AFTER: {"step_time": 13903.817, "computation": 13066.564, "communication": 2957.088, "hidden": 2244.673},
}


def by_hand(path: str) -> dict[str, float]:
    """All kernels' starts and ends in one list, walked through once with two counters."""
    with gzip.open(path) as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    marks = [one for one in events if one["name"].startswith("ProfilerStep#") and one["cat"] == "gpu_user_annotation"]
    begun = sorted(one["ts"] for one in marks)
    steps = len(begun) - 1
    edges = []
    for one in events:
        start, end = (min(max(time, begun[0]), begun[-1]) for time in (one["ts"], one["ts"] + one.get("dur", 0)))
        if one.get("cat") == "kernel" and start < end:
            edges += [(start, 1, "nccl" in one["name"]), (end, -1, "nccl" in one["name"])]
    sums = {"computation": 0.0, "communication": 0.0, "hidden": 0.0}
    running, now = [0, 0], begun[0]
    for time, change, communicates in sorted(edges):
        sums["computation"] += (time - now) * (running[0] > 0)
        sums["communication"] += (time - now) * (running[1] > 0)
        sums["hidden"] += (time - now) * (running[0] > 0 and running[1] > 0)
        running[communicates] += change
        now = time
    return {"step_time": (begun[-1] - begun[0]) / steps, **{name: value / steps for name, value in sums.items()}}


def test_what_is_said_of_them(overlap):
    done = overlap("report", "--compare", BEFORE, AFTER, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["comparable"], answer["simulated"]) == (0, True, False)
    for side, path in (("before", BEFORE), ("after", AFTER)):
        said = {name: answer["total"][name][side] for name in ANSWERS[path]}
        assert said == pytest.approx(ANSWERS[path], abs=0.01)
        assert said == pytest.approx(by_hand(path), abs=0.01)
        assert (answer[side]["steps"], answer[side]["steps_left_out"]) == (9, 1)
        assert answer[side]["gpus"] == ["NVIDIA H200"]


def test_of_steps_that_drift_nothing_is_claimed(overlap):
    """Both begin at 12.4 ms and end near 14: nine such steps are no nine measurements."""
    done = overlap("report", "--compare", BEFORE, AFTER)
    assert "less after" not in done.stdout and "more after" not in done.stdout
    for path, first, last in ((BEFORE, "12.804", "13.855"), (AFTER, "12.950", "14.474")):
        assert f"steps drift in {path}: {first} ms in the first third, {last} ms in the last" in done.stdout


def test_what_they_say_of_themselves():
    trace = open_trace(BEFORE)
    kernels = list(trace.launches())
    assert (trace.kind, trace.rank, trace.gpus[0], trace.torn) == ("pytorch", 0, "NVIDIA H200", False)
    assert {one.kernel.partition("(")[0] for one in kernels if one.communication} == {
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    }
