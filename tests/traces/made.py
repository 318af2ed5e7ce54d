"""Traces made by hand: the forms are those of the programs named, what happened in them is ours.

Kineto's is that of libkineto's output_json.cpp and CuptiActivity.cpp; that of nsys is the schema in NVIDIA's "SQLite
Export Schema Reference", of the tables that we read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(cutlass_80_tensorop_bf16_s16816gemm::Params)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GPU = "NVIDIA H200"


class K(NamedTuple):
    """A kernel that ran, or a copy (name None)."""

    name: str | None
    start_us: float
    length_us: float
    stream: int = 7
    device: int = 0
    grid: Sequence[int] = (132, 2, 1)
    block: Sequence[int] = (128, 1, 1)
    registers: int = 168
    static: int = 1024
    dynamic: int = 98304
    correlation: int | None = None  # of the call that launched it
    priority: int | None = None  # of the launch: from CUDA 13.1 on
    graph_node: int | None = None


def step(at: float, gemms: Sequence[float], reduces: Iterable[tuple[float, float]]) -> list[K]:
    """GEMMs one after the other from `at`, these long, on one stream; all-reduces (after `at`, long) on another."""
    kernels = []
    now = at
    for length in gemms:
        kernels.append(K(GEMM, now, length))
        now += length
    for start, length in reduces:
        kernels.append(K(NCCL, at + start, length, 20, grid=(24, 1, 1), block=(544, 1, 1), registers=96, dynamic=82240))
    return kernels


def kineto_events(
    kernels: Iterable[K], steps: Iterable[tuple[int, float, float]] = (), gpu_steps: bool = False
) -> list[dict[str, Any]]:
    """steps: (number, start, length) of ProfilerStep, in host time, or on the GPU's stream 7."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "ts": 0.0, "pid": 0, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 90, "tid": 90, "ts": 1.0, "dur": 2.0, "args": {}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 90, "tid": 90, "ts": 1.0, "dur": 1.0},
    ]
    for number, start, length in steps:
        where = (
            {"cat": "gpu_user_annotation", "pid": 0, "tid": 7} if gpu_steps else {"cat": "user_annotation", "pid": 90}
        )
        events.append({"ph": "X", "name": f"ProfilerStep#{number}", "ts": start, "dur": length, **where})
    for index, one in enumerate(kernels):
        correlation = index if one.correlation is None else one.correlation
        place = {"device": one.device, "context": 1, "stream": one.stream, "correlation": correlation}
        row = {"ph": "X", "pid": one.device, "tid": one.stream, "ts": one.start_us, "dur": one.length_us}
        if one.name is None:
            events.append({**row, "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "args": place})
            continue
        asked = {"registers per thread": one.registers, "shared memory": one.static + one.dynamic}
        shape = {"blocks per SM": 2.0, "warps per SM": 8.0, "grid": list(one.grid), "block": list(one.block)}
        newer = {"priority": one.priority, "graph node id": one.graph_node}
        told = {name: value for name, value in newer.items() if value is not None}
        arguments = {"queued": 0, **place, **asked, **shape, "est. achieved occupancy %": 25, **told}
        events.append({**row, "cat": "kernel", "name": one.name, "args": arguments})
    events.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9.0})
    return events


def kineto(path: Path, events: Sequence[dict[str, Any]], rank: int | None = 0, world: int = 2) -> Path:
    whole: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": GPU, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
        "cupti_version": 26,
    }
    if rank is not None:
        whole["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world, "pg_count": 1}
    whole |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": 1, "traceEvents": list(events), "traceName": path.name}
    path.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    return path


_KERNELS = """CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,
sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER)"""
_OTHERS = (
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, smCount INTEGER, "
    "computeMajor INTEGER, computeMinor INTEGER)",
    "CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)",
)
_COPIES = """CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
copyKind INTEGER NOT NULL)"""
_RANGES = """CREATE TABLE NVTX_EVENTS (
start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)"""
PUSH_POP = 59


def nsys(
    path: Path,
    kernels: Iterable[K],
    ranges: Iterable[tuple[str, float, float]] = (),
    mangled: dict[str, str] | None = None,
    process: int = 0x11000000000000,
) -> Path:
    """ranges: (text, start, length), of NVTX. Added to what is in the file already: another process, say."""
    new = not path.exists()
    with closing(sqlite3.connect(path)) as database:
        strings: dict[str, int] = {}
        if new:
            for words in (_KERNELS, *_OTHERS):
                database.execute(words)
            database.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, ?, 132, 9, 0)", (GPU,))
        else:
            strings = {value: number for number, value in database.execute("SELECT id, value FROM StringIds")}

        def number(text: str) -> int:
            if text not in strings:
                strings[text] = len(strings) + 1
                database.execute("INSERT INTO StringIds VALUES (?, ?)", (strings[text], text))
            return strings[text]

        def ns(us: float) -> int:
            return round(us * 1000)

        for one in kernels:
            when = (ns(one.start_us), ns(one.start_us + one.length_us), one.device)
            if one.name is None:
                database.execute(_COPIES.replace("TABLE", "TABLE IF NOT EXISTS"))
                values = (*when, 1, one.stream, one.correlation or 1, process, 4096, 1)
                database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({marks(values)})", values)
                continue
            short = one.name.partition("(")[0].split("::")[-1]
            names = (number(one.name), number(short), number((mangled or {})[one.name]) if mangled else None)
            place = (
                *when,
                1,
                None,
                one.stream,
                one.correlation or 1,
                process,
                *names,
                None,
                0,
                one.registers,
                *one.grid,
                *one.block,
            )
            row = (*place, one.static, one.dynamic, 0, 0, 0, None, None, None)
            database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks(row)})", row)
        for index, (text, start, length) in enumerate(ranges):
            database.execute(_RANGES.replace("TABLE", "TABLE IF NOT EXISTS"))
            # Registered strings have a number, others are in the row.
            said = (None, process + 5, None, number(text)) if index % 2 else (text, process + 5, None, None)
            values = (ns(start), ns(start + length), PUSH_POP, None, None, None, *said, 0)
            database.execute(f"INSERT INTO NVTX_EVENTS VALUES ({marks(values)})", values)
        database.commit()
    return path


def marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
