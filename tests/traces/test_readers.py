"""Every kind of trace, as its program writes it: what is read, what is passed over, what is said of a damaged one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from made import GEMM, GPU, NCCL, PUSH_POP, K, kineto, kineto_events, marks, nsys

from pyshim.errors import OverlapError
from pyshim.profiles import open_trace, window
from pyshim.profiles.chrome_file import ChromeFile
from pyshim.profiles.record import Call, MemoryOperation, NamedRange, Trace, TracedGpu, TracedLaunch, Wait

KERNELS = [
    K(GEMM, 100.0, 40.5),
    K(NCCL, 120.25, 60.0, 20, grid=(24, 1, 1), block=(544, 1, 1), registers=96, static=21568, dynamic=82240),
    K(None, 90.0, 5.0),
]
STEPS = [(3, 80.0, 200.0), (4, 280.0, 150.5)]


def read(path: Path) -> tuple[Trace, list[object]]:
    trace = open_trace(str(path))
    return trace, [record for record in trace.activity() if not isinstance(record, (Call, Wait))]


def test_kineto(tmp_path):
    trace, records = read(kineto(tmp_path / "trace.json", kineto_events(KERNELS, STEPS), rank=5))
    assert (trace.kind, trace.rank, trace.gpus, trace.warnings) == ("pytorch", 5, {0: TracedGpu(GPU, "sm_90", 132)}, [])
    assert records == [
        NamedRange("ProfilerStep#3", 80.0, 280.0, on_gpu=False),
        NamedRange("ProfilerStep#4", 280.0, 430.5, on_gpu=False),
        TracedLaunch(GEMM, False, 0, "7", 100.0, 140.5, 264, 128, 168, shared_memory=99328),
        TracedLaunch(NCCL, True, 0, "20", 120.25, 180.25, 24, 544, 96, shared_memory=103808, correlation=1),
        MemoryOperation(0, "7", 90.0, 95.0, correlation=2, memory="pinned"),
    ]


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "pageable"),
        ("Memcpy DtoH (Device -> Pageable)", "pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "pinned"),
        ("Memcpy DtoD (Device -> Device)", "device"),
        ("Memset (Device)", "device"),
        ("Memcpy HtoD (Array -> Unknown)", ""),
    ],
)
@pytest.mark.parametrize("many", [False, True], ids=["decoded", "by patterns"])
def test_the_memory_of_a_copy(tmp_path, name, memory, many):
    events = kineto_events([K(None, 100.0 + at, 0.5, correlation=1) for at in range(3000 if many else 3)])
    for event in events[-2:-1]:
        event["name"] = name
    events[-2]["ts"] = 1.0
    copies = [one for one in read(kineto(tmp_path / "trace.json", events))[1] if isinstance(one, MemoryOperation)]
    assert [one.memory for one in copies if one.start_us == 1.0] == [memory]
    assert {one.memory for one in copies if one.start_us > 1.0} == {"pinned"}


def test_the_memory_of_a_copy_of_nsys(tmp_path):
    path = nsys(tmp_path / "t.sqlite", [*KERNELS, K(None, 50.0, 1.0), K(None, 60.0, 1.0)])
    with closing(sqlite3.connect(path)) as database:
        for column in ("srcKind", "dstKind"):
            database.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY ADD COLUMN {column} INTEGER")
        for start, source, target in ((90, 2, 0), (50, 1, 2), (60, 2, 2)):
            words = f"SET srcKind = {source}, dstKind = {target} WHERE start = {start * 1000}"
            database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY {words}")
        database.commit()

        def found() -> dict[float, str]:
            return {one.start_us: one.memory for one in read(path)[1] if isinstance(one, MemoryOperation)}

        assert set(found().values()) == {""}, "numbers alone say nothing"
        database.execute("CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL, name TEXT, label TEXT)")
        for number, label in enumerate(("Pageable", "Pinned", "Device")):
            database.execute("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (?, ?, ?)", (number, f"X_{number}", label))
        database.commit()
        assert found() == {90.0: "pageable", 50.0: "pinned", 60.0: "device"}


def test_kineto_compressed_whatever_it_is_called(tmp_path):
    path = kineto(tmp_path / "trace.json", kineto_events(KERNELS, STEPS))
    _, plain = read(path)
    (tmp_path / "other").write_bytes(gzip.compress(path.read_bytes()))
    assert read(tmp_path / "other")[1] == plain
    # Members one after the other, as some programs that write in pieces leave them.
    data = path.read_bytes()
    (tmp_path / "other").write_bytes(gzip.compress(data[:1000]) + gzip.compress(data[1000:]))
    assert read(tmp_path / "other")[1] == plain


def test_kineto_in_pieces_of_any_size(tmp_path, monkeypatch):
    """A value ends where the window over the file ends, or does not."""
    path = kineto(tmp_path / "trace.json", kineto_events(KERNELS[:1], STEPS))
    whole = ChromeFile(str(path))
    events = list(whole.events())
    for size in range(1, 80):
        monkeypatch.setattr(window, "_BYTES", size)
        pieces = ChromeFile(str(path))
        assert list(pieces.events()) == events
        assert (pieces.fields, pieces.fields["deviceProperties"][0]["id"], pieces.torn) == (whole.fields, 0, None)


def test_kineto_of_older_versions(tmp_path):
    """PyTorch 1.8: words with a capital, whole microseconds, rows called `stream 7`, and all in a bare array."""
    event = {"ph": "X", "cat": "Kernel", "ts": 1650000000000001, "dur": 20, "pid": 1, "tid": "stream 7", "name": GEMM}
    event["args"] = {"device": "1", "registers per thread": "168", "grid": "[132, 2, 1]", "block": [128, 1, 1]}
    copy = {"ph": "X", "cat": "Memset", "ts": "5", "dur": "1.5", "pid": 1, "tid": "stream 7", "name": "Memset (Device)"}
    no_time = {"ph": "X", "cat": "Kernel", "ts": None, "name": GEMM}
    (tmp_path / "t").write_text(json.dumps([event, copy, no_time]))
    start = 1650000000000001.0
    assert read(tmp_path / "t")[1] == [
        TracedLaunch(GEMM, False, 1, "7", start, start + 20, 264, 128, 168),
        MemoryOperation(1, "7", 5.0, 6.5, memory="device"),
    ]


def test_kineto_of_a_gpu_that_it_does_not_know(tmp_path):
    """It printed C's inf and nan, which is no JSON."""
    path = kineto(tmp_path / "trace.json", kineto_events(KERNELS * 2))
    _, whole = read(path)
    text = path.read_text().replace('"blocks per SM": 2.0', '"blocks per SM": inf')
    path.write_text(text.replace('"warps per SM": 8.0', '"warps per SM": -nan'))
    trace, records = read(path)
    assert (records, trace.warnings) == (whole, [])


@pytest.mark.parametrize("compressed", (False, True))
def test_a_torn_file_is_read_as_far_as_it_goes(tmp_path, compressed):
    """The program was killed while it wrote, at any byte."""
    path = kineto(tmp_path / "whole", kineto_events(KERNELS * 3, STEPS))
    data = path.read_bytes()
    whole = read(path)[1]
    torn = tmp_path / "torn"
    lengths = set()
    for end in range(400, len(data) - 3, 37):
        torn.write_bytes(gzip.compress(data[:end])[:-8] if compressed else data[:end])
        trace, records = read(torn)
        assert (trace.torn, trace.ending) == (True, "it ends in the middle")
        assert records == whole[: len(records)]
        lengths.add(len(records))
    assert lengths == set(range(len(whole) + 1))


def test_garbage_in_the_middle_is_said(tmp_path):
    path = kineto(tmp_path / "whole", kineto_events(KERNELS))
    text = path.read_text()
    at = text.index('"gpu_memcpy"')
    path.write_text(text[:at] + "}" * 100 + text[at:])
    trace, records = read(path)
    assert len(records) == 2 and len(trace.warnings) == 1


def test_nsys(tmp_path):
    trace, records = read(nsys(tmp_path / "export", KERNELS, [("step 3", 80.0, 200.0), ("step 4", 280.0, 150.5)]))
    assert (trace.kind, trace.rank, trace.gpus, trace.warnings) == ("nsys", None, {0: TracedGpu(GPU, "sm_90", 132)}, [])
    pid = 0x11000000000000
    assert records == [
        TracedLaunch(GEMM, False, 0, "7", 100.0, 140.5, 264, 128, 168, 1024, 98304, 99328, pid, 1),
        TracedLaunch(NCCL, True, 0, "20", 120.25, 180.25, 24, 544, 96, 21568, 82240, 103808, pid, 1),
        MemoryOperation(0, "7", 90.0, 95.0, pid, 1),
        NamedRange("step 3", 80.0, 280.0, False, pid),
        NamedRange("step 4", 280.0, 430.5, False, pid),
    ]


def test_nsys_with_the_names_that_the_driver_gives(tmp_path):
    """They are what policies are written for, so they come first."""
    mangled = {GEMM: "_ZN7cutlass7Kernel2I35cutlass_80_tensorop_bf16_s16816gemmEEvNT_6ParamsE", NCCL: NCCL[:40]}
    records = read(nsys(tmp_path / "export", KERNELS[:2], mangled=mangled))[1]
    assert [record.kernel for record in records] == list(mangled.values())
    assert [record.communication for record in records] == [False, True]


def test_nsys_with_fewer_tables_and_columns(tmp_path):
    with closing(sqlite3.connect(tmp_path / "export")) as database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 2500, 1)")
        database.commit()
    assert read(tmp_path / "export")[1] == [TracedLaunch("", False, 0, "0", 1.5, 2.5)]


def test_nsys_without_kernels(tmp_path):
    """Only the host was recorded: tables are made when something is to be in them."""
    with closing(sqlite3.connect(tmp_path / "export")) as database:
        database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        database.commit()
    assert read(tmp_path / "export")[1] == []


def test_nsys_marks_and_open_ranges_are_no_ranges(tmp_path):
    path = nsys(tmp_path / "export", [], [("step", 1.0, 1.0)])
    with closing(sqlite3.connect(path)) as database:
        for start, end, kind in ((1000, None, PUSH_POP), (1000, 2000, 34), (2000, 1000, PUSH_POP)):
            values = (start, end, kind, None, None, None, "other", 5, None, None, 0)
            database.execute(f"INSERT INTO NVTX_EVENTS VALUES ({marks(values)})", values)
        database.commit()
    assert [span.name for span in read(path)[1]] == ["step"]


def test_nsys_says_that_graphs_hide_kernels(tmp_path):
    path = nsys(tmp_path / "export", KERNELS)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT)")
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, ?)", [(2,)] * 1200)
        database.commit()
    (sentence,) = read(path)[0].warnings
    assert "1,200 launches of CUDA graphs" in sentence and "--cuda-graph-trace=node" in sentence


def test_the_trace_of_a_simulated_gpu_is_whole_where_the_disk_ends(overlap_run, tmp_path):
    """What was written before stays."""
    command = ("trap '' XFSZ; ulimit -f 200; exec \"$@\"", "sh", "demo-stencil", "-", "plain", "40", "stencil/style-0")
    done = overlap_run("--quiet", "--simulate", "h100", "sh", "-c", *command, env={"SIMGPU_TRACE": f"{tmp_path}/trace"})
    assert (done.returncode, done.stderr.count("SIMGPU_TRACE: ")) == (0, 1), done.stderr
    assert f"SIMGPU_TRACE: {tmp_path}/trace cannot be written: File too large" in done.stderr
    assert len(json.loads((tmp_path / "trace").read_text())) > 20


def test_the_simulated_gpu(overlap_run, tmp_path):
    """Kernels are those of the log of launches, and each has the call that made it."""
    path, log = tmp_path / "trace", tmp_path / "launches"
    variables = {"SIMGPU_TRACE": str(path), "SIMGPU_LAUNCHES": str(log)}
    done = overlap_run(
        "--quiet",
        "--simulate",
        "h100",
        "env",
        "SIMGPU=h100",
        "demo-stencil",
        "-",
        "plain",
        "2",
        "stencil/style-0",
        env=variables,
    )
    assert done.returncode == 0, done.stderr
    trace = open_trace(str(path))
    records = list(trace.activity())
    assert (trace.kind, trace.gpus, trace.warnings) == ("simulated", {0: TracedGpu("NVIDIA H100 80GB HBM3")}, [])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    kernels = sorted(
        (one for one in records if isinstance(one, TracedLaunch)), key=lambda one: (one.correlation, one.start_us)
    )
    names = ("kernel", "blocks", "threads", "dynamic_shared_memory", "static_shared_memory")
    assert [tuple(getattr(one, name) for name in names) for one in kernels] == [
        tuple(row[name.replace("_memory", "")] for name in names) for row in rows
    ]
    assert {one.dynamic_shared_memory for one in kernels} == {0, 82240}
    assert {True, False} == {one.communication for one in kernels}
    calls = {one.correlation: one for one in records if isinstance(one, Call)}
    for one in kernels:
        assert calls[one.correlation].name == "cuLaunchKernel" and calls[one.correlation].start_us <= one.start_us
    assert len({one.process for one in records}) == 1
    assert any(not one.host and one.event for one in records if isinstance(one, Wait))


def test_nsys_columns_of_other_types(tmp_path):
    path = nsys(tmp_path / "export", KERNELS[:2])
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 'x', gridX = 'many', globalPid = x'00'")
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'late' WHERE streamId = 20")
        database.execute("UPDATE StringIds SET value = 5.5")
        database.commit()
    (launch,) = read(path)[1]
    shape = (None, 128, 168, 1024, 98304, 99328)
    assert launch == TracedLaunch("5.5", False, 0, "7", 100.0, 140.5, *shape, correlation=1)


@pytest.mark.parametrize(
    ("data", "sentence", "hint"),
    [
        pytest.param(b"", "is empty", "torch.profiler", id="an empty file"),
        pytest.param(b"\x7fELF\2\1\1", "is no trace that we can read", "nsys export", id="a program"),
        pytest.param(b"\x1f\x8b\x08broken", "is no trace that we can read", "SIMGPU_TRACE", id="broken gzip"),
        pytest.param(b'{"kernel"', None, None, id="something like it"),
    ],
)
def test_no_trace_at_all(tmp_path, data, sentence, hint):
    (tmp_path / "file").write_bytes(data)
    if sentence is None:
        assert read(tmp_path / "file")[0].torn
        return
    with pytest.raises(OverlapError) as error:
        open_trace(str(tmp_path / "file"))
    assert error.value.sentence == f"{tmp_path / 'file'} {sentence}"
    assert hint in error.value.hint


def test_no_file(tmp_path):
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(OverlapError, match=f"cannot be read: {why}"):
            open_trace(str(path))


def test_a_report_of_nsys_must_be_exported(tmp_path):
    (tmp_path / "run.nsys-rep").write_bytes(b"QdstrmFi")
    with pytest.raises(OverlapError) as error:
        open_trace(str(tmp_path / "run.nsys-rep"))
    assert error.value.hint == f"nsys export --type sqlite {tmp_path / 'run.nsys-rep'}"


def test_another_database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("CREATE TABLE people (name TEXT)")
        database.commit()
    with pytest.raises(OverlapError, match="something else than nsys"):
        read(tmp_path / "db")
    path = nsys(tmp_path / "export", KERNELS * 200)
    shutil.copy(path, tmp_path / "torn")
    with (tmp_path / "torn").open("r+b") as file:
        file.truncate(12000)
    with pytest.raises(OverlapError, match="cannot be read"):
        read(tmp_path / "torn")


def test_a_database_that_lost_pages_is_said_to_be_shorter(tmp_path):
    """sqlite reads what is there, and says nothing. Less than a page is enough."""
    path = nsys(tmp_path / "whole", KERNELS * 200)
    assert read(path)[0].warnings == []
    for lost in (100, 4096):
        (tmp_path / "torn").write_bytes(path.read_bytes()[:-lost])
        try:
            assert read(tmp_path / "torn")[0].ending == "it is shorter than it says"
        except OverlapError as error:
            assert "cannot be read" in error.sentence


@pytest.mark.parametrize("times", ['"ts": 1e300, "dur": 1.0', '"ts": 1.0, "dur": 1e308', '"ts": -1e300, "dur": 1e300'])
def test_times_of_no_clock_are_left_out(tmp_path, times):
    path = kineto(tmp_path / "trace.json", kineto_events(KERNELS, STEPS))
    whole = read(path)[1]
    event = f'{{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, {times}}},'
    path.write_text(path.read_text().replace('"traceEvents": [', f'"traceEvents": [{event}', 1))
    trace, records = read(path)
    assert records == whole
    assert trace.warnings == [f"{path}: 1 event has no usable time (in line 21): left out"]


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(OverlapError, match="is a pipe"):
        open_trace(str(tmp_path / "pipe.json"))


# Not by getrusage: a process's greatest size is also that of the one that has started it, before exec.
PEAK = """
import re, sys
from pyshim.diagnosis.find import find
assert find(sys.argv[1]).processes
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
"""


@pytest.mark.slow
def test_memory_is_that_of_what_ran(tmp_path, python):
    """Of kernels alone, the worst case: some hundred bytes a launch, and what a window over the file needs."""
    peaks, counts = [], (6_000, 60_000)
    for count in counts:
        kernels = [K(NCCL if at % 10 == 0 else GEMM, 40.0 * at, 39.0, 7 + at % 10 // 9) for at in range(count)]
        done = python("-c", PEAK, str(kineto(tmp_path / "trace.json", kineto_events(kernels, STEPS))))
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) / 1024)
    assert (tmp_path / "trace.json").stat().st_size > 20e6
    assert peaks[1] - peaks[0] < 1500 * (counts[1] - counts[0]) / 1e6 + 15
