"""One event that is no JSON costs itself, and is counted; records that cannot be true are left out."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from made import GEMM, NCCL, K, kineto, kineto_events, nsys
from made_waits import Program, boundary, copy, interior

from pyshim.diagnosis.chosen import load
from pyshim.profiles import open_trace
from pyshim.profiles.record import Activity, Trace, TracedLaunch

KERNELS = [K(f"gemm_{number}", 100.0 * number, 40.0) for number in range(1, 7)]
DAMAGE = {
    "an unescaped quote": ('"gemm_3"', '"gemm_3(a: "b")"'),
    "a bad number": ('"ts": 300.0', '"ts": 300.0.1'),
    "no value": ('"ts": 300.0', '"ts": '),
    "a missing quote": ('"gemm_3"', '"gemm_3'),
    "a missing brace": ('"ts": 300.0', '}"ts": 300.0'),
    "a bad escape": ('"gemm_3"', '"gemm_3\\x"'),
    "words": ('"ts": 300.0', '"ts": 300.0 # about'),
    "more digits than Python reads": ('"ts": 300.0', f'"ts": {"3" * 5000}'),
}


def read(path: Path) -> tuple[Trace, list[Activity]]:
    trace = open_trace(str(path))
    return trace, list(trace.activity())


def named(records: list[Activity]) -> list[str]:
    return [one.kernel for one in records if isinstance(one, TracedLaunch)]


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_event_costs_itself(tmp_path, damage, bare, indent):
    events = kineto_events(KERNELS)
    text = json.dumps(events if bare else {"schemaVersion": 1, "traceEvents": events, "traceName": "x"}, indent=indent)
    old, new = DAMAGE[damage]
    assert text.count(old) == 1
    (tmp_path / "t").write_text(text.replace(old, new))
    trace, records = read(tmp_path / "t")
    assert named(records) == [f"gemm_{number}" for number in (1, 2, 4, 5, 6)]
    assert not trace.torn
    assert re.fullmatch(r".*/t: 1 event is no JSON \(in line [\d,]+\), and left out", *trace.warnings)


def test_the_first_and_the_last_event(tmp_path):
    events = [event for event in kineto_events(KERNELS) if event.get("cat") == "kernel"]
    text = json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]})
    (tmp_path / "t").write_text(text.replace('"gemm_1"', '"gemm"1"').replace('"gemm_6"', '"gemm"6"'))
    trace, records = read(tmp_path / "t")
    assert named(records) == [f"gemm_{number}" for number in range(2, 6)]
    assert "2 events are no JSON (the first in line 1), and left out" in trace.warnings[0]
    assert trace.gpus[0].name == "NVIDIA H200", "what follows the events is read"


def test_what_is_nested_too_deep_ends_the_file(tmp_path, overlap):
    path = kineto(tmp_path / "t", kineto_events(KERNELS))
    path.write_text(path.read_text().replace('"gemm_3"', "[" * 100_000))
    done = overlap("explain", str(path))
    said = f"overlap: error: {path}: it is nested too deep, and no whole step is in what is there\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_a_control_character_costs_nothing(tmp_path):
    text = json.dumps(kineto_events(KERNELS))
    (tmp_path / "t").write_text(text.replace('"gemm_3"', '"gemm\n\t\x01_3"'))
    trace, records = read(tmp_path / "t")
    assert (len(named(records)), trace.warnings) == (6, [])


def test_the_line_of_a_broken_event_is_said(tmp_path):
    path = kineto(tmp_path / "t", kineto_events(KERNELS))
    text = path.read_text()
    path.write_text(text.replace('"gemm_3"', '"gemm"3"'))
    begins = text[: text.index('"gemm_3"')].rindex("{")
    line = text[:begins].count("\n") + 1
    assert f"(in line {line:,})" in read(path)[0].warnings[0]


def test_kernels_before_their_launch_are_left_out(tmp_path, overlap):
    """Half of a millisecond is the profilers' own inaccuracy; seconds are not."""
    program = Program()
    for at in (1000.0, 1100.0, 1200.0, 1300.0):
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(copy(at + 86, 9), at + 5)
        program.steps.append((int(at / 100), at, 100.0))
    program.kernels[1] = program.kernels[1]._replace(start_us=-4.9e6)
    program.kernels[3] = program.kernels[3]._replace(start_us=program.kernels[3].start_us - 500)
    path = program.kineto(tmp_path / "trace.json")
    loaded = load(str(path))
    (records,) = loaded.processes.values()
    assert len(records.works) == len(program.kernels) - 1
    said = "1 kernel or copy began more than a second before it was launched: an impossible record, left out"
    assert loaded.trace.warnings == [f"{path}: {said}"]
    answer = json.loads(overlap("explain", str(path), "--json").stdout)
    assert answer["notes"] == [f"{path}: {said}"]
    assert answer["processes"][0]["span_us"] < 1000


def test_clocks_that_differ_are_said(tmp_path):
    """Where most of the work began before its launch, it is the clock, and not the work."""
    program = Program()
    for at in range(1000, 2000, 100):
        program.launch(interior(at - 7e6, 76), at)
    loaded = load(str(program.kineto(tmp_path / "trace.json")))
    (records,) = loaded.processes.values()
    assert (len(records.works), records.calls) == (10, [])
    assert "7.0 s before their launch" in loaded.trace.warnings[0] and "clocks" in loaded.trace.warnings[0]


def test_torch_without_operators(tmp_path):
    """By its kernels, or by torch.distributed; libraries in CUDA that Python calls have torch.profiler's steps, too."""
    kernel = K("void at::native::vectorized_elementwise_kernel<4>(int)", 100.0, 5.0)
    for number, (kernels, steps, rank, torch) in enumerate(
        (
            ([kernel], [], None, True),
            ([K(GEMM, 100.0, 5.0)], [(1, 90.0, 50.0)], 0, True),
            ([K(GEMM, 100.0, 5.0)], [(1, 90.0, 50.0)], None, False),
        )
    ):
        events = [event for event in kineto_events(kernels, steps) if event.get("cat") != "cpu_op"]
        trace, _ = read(kineto(tmp_path / f"{number}.json", events, rank))
        assert trace.python is torch


def test_hip_where_the_gpu_has_no_name(tmp_path):
    """By the calls, or by the versions that Kineto writes; its deviceProperties had no names in ROCm 7.0."""
    events = kineto_events(KERNELS)
    path = kineto(tmp_path / "t.json", events)
    assert not read(path)[0].hip
    call = {"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 90, "tid": 90, "ts": 1.0, "dur": 1.0}
    assert read(kineto(tmp_path / "calls.json", [*events, {**call, "args": {"correlation": 1}}]))[0].hip
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "roctracer_version": 4.1}))
    assert read(path)[0].hip


def test_what_a_collective_says(tmp_path):
    events = kineto_events([K(NCCL, 100.0, 50.0, 20)])
    kernel = next(event for event in events if event.get("cat") == "kernel")
    kernel["args"] |= {"Collective name": "_allgather_base", "In msg nelems": 512, "Out msg nelems": 4096, "Seq": 7}
    kernel["args"] |= {"Group size": 8, "dtype": "BFloat16", "Process Group Name": "3"}
    _, records = read(kineto(tmp_path / "t.json", events))
    (launch,) = (one for one in records if isinstance(one, TracedLaunch))
    assert launch.collective == ("_allgather_base", 8192, 512, "BFloat16", "3", 8, 7)


def test_missing_calls_are_said(tmp_path):
    """With what records them: no advice may ask for anything else."""
    trace, _ = read(kineto(tmp_path / "t.json", kineto_events(KERNELS)))
    assert trace.missing == [f"{trace.path} has no calls that launched its work: {trace.records_calls}"]
    assert "ProfilerActivity.CPU" in trace.records_calls and "enable_cuda_sync_events" in trace.records_waits
    program = Program()
    program.launch(interior(1004, 76), 1001)
    assert read(program.kineto(tmp_path / "calls.json"))[0].missing == []


def test_world_size_and_rank(tmp_path):
    trace, _ = read(kineto(tmp_path / "t.json", kineto_events(KERNELS), rank=5, world=64))
    assert (trace.rank, trace.world_size) == (5, 64)


def test_default_streams_by_the_tables_of_nsys(tmp_path):
    pid, process = 0x234, 0x11000000000000 | 0x234 << 24
    for table, column in (("NULL_STREAM", "streamId"), ("CONTEXT_INFO", "nullStreamId")):
        path = nsys(tmp_path / f"{table}.sqlite", KERNELS)
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"CREATE TABLE TARGET_INFO_CUDA_{table} ({column} INTEGER, processId INTEGER)")
            database.execute(f"INSERT INTO TARGET_INFO_CUDA_{table} VALUES (15, ?)", (pid,))
            database.commit()
        trace, _ = read(path)
        assert trace.is_default_stream(process, 1, "15")
        assert not trace.is_default_stream(process, 1, "30")
        assert not trace.is_default_stream(process + (1 << 24), 1, "15")


@pytest.mark.parametrize(
    ("events", "calls", "said"),
    [
        (("Cuda", "NvtxEvents"), 3, r"has 3 calls of CUDA and no kernels \(it was recorded with --trace=cuda,nvtx\)"),
        (("NvtxEvents", "OSRuntime"), 0, r"neither kernels nor calls of CUDA \(it was .* --trace=nvtx,osrt\): record"),
        (("Cuda",), 0, r"no calls of CUDA although it was recorded with --trace=cuda: the process that uses the GPU"),
        ((), 0, r"neither kernels nor calls of CUDA \(it does not say what was traced\)"),
    ],
)
def test_an_export_of_nsys_without_kernels(tmp_path, overlap, events, calls, said):
    path = nsys(tmp_path / "export.sqlite", [])
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
        settings = [(one,) for one in events]
        database.executemany("INSERT INTO META_DATA_CAPTURE VALUES ('CAPTURE_EVENT_TYPE', ?)", settings)
        columns = "start INTEGER, end INTEGER, nameId INTEGER, correlationId INTEGER, globalTid INTEGER"
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ({columns})")
        numbers = [(number,) for number in range(calls)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 1, ?, 1)", numbers)
        database.commit()
    done = overlap("explain", str(path))
    assert done.returncode == 2 and re.search(said, " ".join(done.stderr.split())), done.stderr
