"""SIMGPU_TRACE: a Chrome trace, whole JSON whatever happens to those that write it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
d = Driver()
m = d.module(cubin([Kernel("gemm", 32), Kernel("ncclDevKernel_AllReduce", 96, 7104)]))
gemm, nccl = (d.function(m, n) for n in ("gemm", "ncclDevKernel_AllReduce"))
s, t = d.stream(), d.stream(-3)
assert d.launch(gemm, (11, 12, 3), 256, 1024, s) == 0
assert d.launch(nccl, 24, 640, 2048, t) == 0
assert d.launch(gemm, 1, stream=s) == 0
"""
STATIC = {"ncclDevKernel_AllReduce": 7104}


def events(path: Path, kind: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text()) if event["ph"] == kind]


def test_a_row_for_each_stream_and_an_event_for_each_kernel(simulate: Any, tmp_path: Path) -> None:
    run = simulate(PROGRAM + "d.cuCtxSynchronize()", gpu="h100:drain", SIMGPU_TRACE=str(tmp_path / "trace"))
    found = events(tmp_path / "trace")
    assert [event["name"] for event in found] == [row["kernel"] for row in run.timeline]
    for event, row in zip(found, run.timeline):
        assert event["ts"] == row["start_us"]
        assert event["dur"] == pytest.approx(row["end_us"] - row["start_us"], abs=0.002)
        assert event["args"]["queued_us"] == row["queued_us"]
        assert event["args"]["resident_peak"] == row["resident_peak"]
        assert event["args"]["registers"] == row["registers"]
        assert event["args"]["static_shared"] == STATIC.get(row["kernel"], 0)
    by_name = {event["name"]: event for event in found if event["args"]["grid"] != [1, 1, 1]}
    assert {key: by_name["gemm"]["args"][key] for key in ("grid", "threads", "dynamic_shared", "priority")} == {
        "grid": [11, 12, 3],
        "threads": 256,
        "dynamic_shared": 1024,
        "priority": 0,
    }
    assert by_name["gemm"]["cat"] == "computation"
    assert by_name["ncclDevKernel_AllReduce"]["cat"] == "communication"
    assert by_name["ncclDevKernel_AllReduce"]["args"]["priority"] == -3
    names = {event["tid"]: event["args"]["name"] for event in events(tmp_path / "trace", "M")}
    streams = {row["kernel"]: row["stream"] for row in run.timeline}
    for event in found:
        assert names[event["tid"]] == f"stream {streams[event['name']]}, device 0 (NVIDIA H100 80GB HBM3)"
    assert names[0] == "simulated, rule drain"


def test_kernels_of_one_stream_that_overlap_get_rows(graphs: Any, tmp_path: Path) -> None:
    graphs(
        """
one, two = d.add_kernel(g, a), d.add_kernel(g, b)
d.add_kernel(g, c, before=[one, two])
run(g); run(g)
""",
        SIMGPU_TRACE=str(tmp_path / "trace"),
    )
    found = events(tmp_path / "trace")
    rows = {tid: [e for e in found if e["tid"] == tid] for tid in {e["tid"] for e in found}}
    assert len(found) == 6
    assert len(rows) == 2
    for row in rows.values():
        for before, after in zip(row, row[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.002
    assert any(name["args"]["name"].endswith(", row 2") for name in events(tmp_path / "trace", "M"))


def test_a_killed_process_leaves_whole_json(simulate: Any, tmp_path: Path) -> None:
    simulate(
        PROGRAM + f"d.cuCtxSynchronize(); d.launch(gemm); os.kill(os.getpid(), {int(signal.SIGKILL)})",
        status=-signal.SIGKILL,
        SIMGPU_TRACE=str(tmp_path / "trace"),
    )
    assert len(events(tmp_path / "trace")) == 3


def test_work_left_at_exit_and_several_processes(simulate: Any, tmp_path: Path) -> None:
    for _ in range(2):
        simulate(PROGRAM, SIMGPU_TRACE=str(tmp_path / "trace"))
    found = events(tmp_path / "trace")
    assert len(found) == 6
    assert len({event["pid"] for event in found}) == 2


def test_many_kernels_are_written_in_pieces(simulate: Any, tmp_path: Path) -> None:
    simulate(PROGRAM + "for i in range(700): d.launch(gemm, 2 + i, stream=s)", SIMGPU_TRACE=str(tmp_path / "trace"))
    assert len(events(tmp_path / "trace")) == 703


def test_a_file_without_its_bracket_is_continued(simulate: Any, tmp_path: Path) -> None:
    simulate(PROGRAM, SIMGPU_TRACE=str(tmp_path / "trace"))
    text = (tmp_path / "trace").read_text()
    (tmp_path / "trace").write_text(text[: -len("\n]\n")])
    simulate(PROGRAM, SIMGPU_TRACE=str(tmp_path / "trace"))
    assert len(events(tmp_path / "trace")) == 6


def test_names_that_json_must_escape_and_a_place_that_cannot_be_written(simulate: Any, tmp_path: Path) -> None:
    odd = """a"b\\c"""
    program = f"d = Driver(); d.launch(d.kernel(cubin([Kernel({odd!r})]), {odd!r})); d.cuCtxSynchronize()"
    simulate(program, SIMGPU_TRACE=str(tmp_path / "trace"))
    assert events(tmp_path / "trace")[0]["name"] == odd
    run = simulate(program, SIMGPU_TRACE=str(tmp_path / "no" / "trace"))
    assert run.stderr.count("simgpu: SIMGPU_TRACE: ") == 1
