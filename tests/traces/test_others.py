"""Traces of rocprofv3 and of JAX: what is read, and what is said to be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_others import AMD, RCCL, D, jax, rocprofv3

from pyshim.profiles import open_trace
from pyshim.profiles.record import Call, MemoryOperation, NamedRange, Trace, TracedGpu, TracedLaunch

GEMM = "void at::native::elementwise<float>(int, float*)"
WORKS = [
    D(GEMM, 100.0, 40.5, 5, called_us=80.0),
    D(RCCL, 120.25, 60.0, 6, called_us=82.0),
    D(None, 190.0, 5.0, 5, called_us=84.0),
]


def read(path: Path) -> tuple[Trace, list[object]]:
    trace = open_trace(str(path))
    return trace, list(trace.activity())


def test_rocprofv3(tmp_path):
    trace, records = read(rocprofv3(tmp_path / "1_results.json", WORKS, ranges=[("step 1", 70.0, 200.0)]))
    assert (trace.kind, trace.host, trace.hip, trace.python) == ("rocprofv3", "node3", True, True)
    assert (trace.gpus, trace.warnings, trace.missing) == ({0: TracedGpu(AMD, "gfx942", 304)}, [], [])
    assert records == [
        TracedLaunch(GEMM, False, 0, "5", 100.0, 140.5, 64, 256, 84, shared_memory=2048, correlation=1),
        TracedLaunch(RCCL, True, 0, "6", 120.25, 180.25, 64, 256, 84, shared_memory=2048, correlation=2),
        Call("hipLaunchKernel", 80.0, 80.9, 1),
        Call("hipLaunchKernel", 82.0, 82.9, 2),
        Call("hipMemcpyAsync", 84.0, 84.9, 3),
        MemoryOperation(0, "5", 190.0, 195.0, correlation=3),
        NamedRange("step 1", 70.0, 270.0, False),
    ]


def test_rocprofv3_by_queue(tmp_path):
    """Before ROCm 7.0 it knew no streams, and with --group-by-queue all have one number."""
    older = [work._replace(stream=None, queue=queue) for work, queue in zip(WORKS, (16, 17, 16))]
    _, records = read(rocprofv3(tmp_path / "older.json", older))
    assert [work.stream for work in records if not isinstance(work, Call)] == ["queue 16", "queue 17", "copies"]
    by_queue = [work._replace(stream=0, queue=queue) for work, queue in zip(WORKS, (16, 17, 16))]
    _, records = read(rocprofv3(tmp_path / "grouped.json", by_queue, group_by_queue=True))
    assert [work.stream for work in records if isinstance(work, TracedLaunch)] == ["queue 16", "queue 17"]


def test_rocprofv3_without_calls(tmp_path, overlap):
    path = rocprofv3(tmp_path / "trace.json", WORKS[:2], hip_trace=False)
    trace, records = read(path)
    assert not [one for one in records if isinstance(one, Call)]
    assert "has no calls of HIP: record with --hip-trace" in trace.missing[0]
    assert "--hip-trace" in trace.records_calls and not trace.records_waits
    assert overlap("explain", str(path), "--json").returncode == 0


@pytest.mark.parametrize("end", range(30, 4000, 61))
def test_a_torn_file_of_rocprofv3(tmp_path, end):
    whole = rocprofv3(tmp_path / "whole.json", WORKS)
    text = whole.read_text()
    (tmp_path / "torn.json").write_text(text[: min(end, len(text) - 3)])
    trace, records = read(tmp_path / "torn.json")
    assert trace.torn and trace.ending == "it ends in the middle"
    assert records == read(whole)[1][: len(records)]


@pytest.mark.parametrize("value", ["[]", "{}", "null", '"x"', "1e400", "-5", "true", "[[1]]"])
@pytest.mark.parametrize(
    "key",
    ["start_timestamp", "kernel_id", "correlation_id", "dispatch_info", "agents", "strings", "buffer_records", "x"],
)
def test_rocprofv3_with_odd_values(tmp_path, overlap, key, value):
    text = json.dumps(json.loads(rocprofv3(tmp_path / "t.json", WORKS).read_text()))
    begin = text.index(f'"{key}": ') + len(key) + 4
    _, end = json.JSONDecoder().raw_decode(text, begin)
    (tmp_path / "odd.json").write_text(text[:begin] + value + text[end:])
    done = overlap("explain", str(tmp_path / "odd.json"), "--json")
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr


def test_jax(tmp_path):
    kernels = [("loop_fusion", 13, 100.0, 90.0), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 150.0, 30.0)]
    trace, records = read(jax(tmp_path / "perfetto_trace.json", [*kernels, ("MemcpyD2H", 13, 200.0, 9.0)]))
    assert (trace.kind, trace.python, trace.gpus, trace.warnings) == ("jax", False, {0: TracedGpu("")}, [])
    shape = {"blocks": 16, "threads": 128, "registers": 32, "shared_memory": 1040}
    shape |= {"static_shared_memory": 16, "dynamic_shared_memory": 1024}
    assert [one for one in records if not isinstance(one, Call)] == [
        NamedRange("step 1", 0.0, 5000.0, on_gpu=True),
        TracedLaunch("loop_fusion", False, 0, "13", 100.0, 190.0, **shape, correlation=1),
        TracedLaunch(kernels[1][0], True, 0, "20", 150.0, 180.0, **shape, correlation=2),
        MemoryOperation(0, "13", 200.0, 209.0, correlation=3),
    ]
    assert [one for one in records if isinstance(one, Call)] == [
        Call("cuLaunchKernel", start, start + 4, number) for number, start in ((1, 80.0), (2, 130.0), (3, 180.0))
    ]
    assert trace.records_calls and not trace.records_waits, "XLA records no waits"


def test_jax_without_calls_is_answered(tmp_path, overlap):
    path = jax(tmp_path / "t.json", [("loop_fusion", 13, 100.0 * at, 90.0) for at in range(9)], calls=False)
    done = overlap("explain", str(path), "--json")
    (process,) = json.loads(done.stdout)["processes"]
    assert (done.returncode, process["devices"]) == (0, [0])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.nsys-rep", "nsys export --type sqlite"),
        ("host.xplane.pb", "create_perfetto_trace=True"),
        ("1_results.db", "rocprofv3 --output-format json"),
        ("1_results.pftrace", "rocprofv3 --output-format json"),
        ("notes.txt", "JSON of rocprofv3"),
    ],
)
def test_other_forms_are_refused_with_the_way_to_one_that_is_read(tmp_path, overlap, name, hint):
    (tmp_path / name).write_bytes(b"\x0a\x0fwhatever")
    done = overlap("explain", str(tmp_path / name))
    assert done.returncode == 2 and hint in done.stderr, done.stderr
