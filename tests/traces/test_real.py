"""Traces that torch.profiler wrote on two H200 (data/README.md), against a sum of edges that is not ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pyshim.profiles import open_trace
from pyshim.profiles.record import TracedGpu, TracedLaunch

DATA = Path(__file__).with_name("data")
BEFORE, AFTER = (str(DATA / f"{name}-rank0.json.gz") for name in ("bare", "h200-paper"))
# Microseconds a step, of nine; by `by_hand`, when the traces came.
ANSWERS = {BEFORE: (13468.538, 2372.645, 1852.443), AFTER: (13903.817, 2957.088, 2244.673)}


def by_hand(path: str) -> tuple[float, float, float]:
    """A step, its communication, and what computation hides: all kernels' starts and ends in one list, walked through
    once with two counters."""
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
    communication = hidden = 0.0
    running, now = [0, 0], begun[0]
    for time, change, communicates in sorted(edges):
        communication += (time - now) * (running[1] > 0)
        hidden += (time - now) * (running[0] > 0 and running[1] > 0)
        running[communicates] += change
        now = time
    return (begun[-1] - begun[0]) / steps, communication / steps, hidden / steps


@pytest.mark.parametrize("path", ANSWERS)
def test_what_is_said_of_them(overlap, path):
    done = overlap("explain", path, "--json")
    (said,) = json.loads(done.stdout)["processes"]
    of_step = (said["span_us"], said["communication_us"], said["hidden_us"])
    assert of_step == pytest.approx(ANSWERS[path], abs=0.01)
    assert of_step == pytest.approx(by_hand(path), abs=0.01)


def test_what_they_say_of_themselves():
    trace = open_trace(BEFORE)
    kernels = [record for record in trace.activity() if isinstance(record, TracedLaunch)]
    assert (trace.kind, trace.rank, trace.python, trace.warnings) == ("pytorch", 0, True, [])
    assert trace.gpus[0] == TracedGpu("NVIDIA H200", "sm_90", 132)
    assert {one.kernel.partition("(")[0] for one in kernels if one.communication} == {
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    }
