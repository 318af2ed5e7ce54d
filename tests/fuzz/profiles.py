"""Traces of others, and our own simulated GPU's: Chrome's JSON, plain and packed, JSON of rocprofv3, and nsys' sqlite.

Any file is read by explain as far as it goes or refused in one sentence, half of them as the large ones are read.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import zlib
from pathlib import Path

from pyshim.profiles import chrome_file
from tests.fuzz.saying import ask, check_html
from tests.traces.large import write
from tests.traces.made import GEMM, K, kineto, kineto_events, nsys, step
from tests.traces.made_others import RCCL, D, jax, rocprofv3
from tests.traces.made_waits import Program, boundary, collective, copy, interior

WORDS = (
    b'"ph": "X"', b'"cat": "kernel"', b'"name": ', b'"ts": ', b'"dur": ', b'"args": {', b'"pid": ', b'"tid": []',
    b"[", b"]", b"{", b"}", b",", b":", b"null", b"NaN", b"Infinity", b"-inf", b"1e308", b"-1e999", b"9" * 400,
    b"9" * 5000, b"0.5", b"-0", b"true", b'"\\u001b[31m"', b'"\\ud800"', b'"\\u202e"', b'"[red]x[/red]"',
    b"<script>alert(1)</script>", b"\xff\xfe", b"\0", b"[" * 3000, b'{"a":' * 3000, b'"grid": [1, 2, 3]',
    b'"distributedInfo": {"rank": ', b'"traceEvents": ', b'"deviceProperties"', b"ProfilerStep#1",
    b"ncclDevKernel_AllReduce", b"CREATE VIEW ", b"CUPTI_ACTIVITY_KIND_KERNEL", b"NVTX_EVENTS", b"StringIds",
    b"cudaStreamWaitEvent", b'"cat": "cuda_sync"', b"Stream Wait Event", b'"wait_on_stream": 7',
    b'"wait_on_cuda_event_record_corr_id": 1', b'"correlation": 1', b"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    b"thread_name", b"stream 0x1, device 0 (NVIDIA H100)", b"\x1f\x8b\x08\0", b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x1b]0;x\x07", b'"rocprofiler-sdk-tool"', b'"kernel_dispatch"', b'"stream_id": {"handle": ', b'"agents": ',
    b'"/device:GPU:0"', b"Stream #13(Compute)", b'"correlation_id": ', b'"rank": 1, ', b'"pid": 91', b"}, {", b"}]",
    b'"Collective name": ', b"META_DATA_CAPTURE", b"TARGET_INFO_CUDA_NULL_STREAM", b"hipLaunchKernel",
)  # fmt: skip
_KERNELS = [*step(1000, [100, 120, 80], [(40, 300)]), K(None, 900, 20), *step(3000, [100, 120, 80], [(40, 250)])]
_DISPATCHES = [D("gemm", 100, 40, 5, called_us=80), D(RCCL, 120, 60, 6, called_us=82), D(None, 190, 5, 5, called_us=84)]
_STEPS = [(1, 900.0, 1500.0), (2, 2900.0, 1500.0)]


def _written(path: Path) -> bytes:
    data = path.read_bytes()
    path.unlink()
    return data


def _simulated() -> bytes:
    head = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "simulated, rule fifo"}}
    row = {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "stream 0x1, device 0 (NVIDIA H100)"}}
    arguments = {"grid": [8, 1, 1], "threads": 128, "dynamic_shared": 1024}
    launches = [
        {"name": name, "ph": "X", "pid": 1, "tid": 2, "ts": at, "dur": 9, "args": arguments}
        for at, name in enumerate([GEMM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "gemm"])
    ]
    return json.dumps([head, row, *launches]).encode()


def _waits() -> Program:
    program = Program()
    for at in (1000.0, 1100.0, 1200.0):
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(collective(at + 76, 9), at + 4)
        program.launch(copy(at + 86, 9), at + 5)
        program.record(1, 20, at + 7)
        program.wait(7, 1, at + 8)
        program.event_synchronize(1, at + 9, at + 96)
        program.synchronize(20, at + 97, at + 98)
        program.steps.append((int(at / 100), at, 100.0))
    return program


def seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        return _seeds(Path(name))


def _seeds(folder: Path) -> list[bytes]:
    events = kineto_events(_KERNELS, _STEPS)
    plain = _written(kineto(folder / "seed.json", events))
    database = nsys(folder / "seed.sqlite", _KERNELS, [("ProfilerStep#1", 900, 1500), ("ProfilerStep#2", 2900, 1500)])
    return [
        plain,
        json.dumps(kineto_events(_KERNELS, _STEPS, gpu_steps=True)).encode(),
        gzip.compress(plain),
        _written(database),
        _written(_waits().kineto(folder / "seed.json")),
        _written(_waits().nsys(folder / "seed.sqlite")),
        _simulated(),
        _written(write(folder / "seed.json.gz", 2, 6)),
        gzip.decompress(_written(write(folder / "seed.json.gz", 2, 6))),
        _written(rocprofv3(folder / "seed.json", _DISPATCHES, ranges=[("step 1", 70, 90)])),
        _written(jax(folder / "seed.json", [("fusion", 13, 100.0, 90.0), ("MemcpyD2H", 14, 150.0, 30.0)])),
        gzip.compress(b"[" + b" " * (1 << 22)),
        b"{}",
    ]


def read(data: bytes, file: str) -> bool:
    """Whether there is an answer. file: where to write the data."""
    Path(file).write_bytes(data)
    way = zlib.crc32(data) % 3  # each is slow, and the same input goes the same way again
    before, chrome_file._SMALL = chrome_file._SMALL, -1 if zlib.crc32(data) & 8 else 1 << 23
    try:
        if way == 0:
            return ask("explain", file, "--json").status == 0
        if way == 1:
            return ask("explain", file, "--full").status == 0
        said = ask("explain", file, "--html", "-")
        if said.status == 0:
            check_html(said.out)
        return said.status == 0
    finally:
        chrome_file._SMALL = before
