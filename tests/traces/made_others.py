"""Traces of rocprofv3 and of JAX made by hand: the forms are theirs, what happened in them is ours.

rocprofv3's is that of ROCm/rocprofiler-sdk, source/docs/rocprofv3-schema.json; JAX's that of XLA's
trace_events_to_json.cc and cupti_collector.cc.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

RCCL = "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)"
AMD = "AMD Instinct MI300X"
_KINDS = {5: ("HIP_RUNTIME_API", ["hipApiName", "hipLaunchKernel", "hipMemcpyAsync", "hipStreamWaitEvent"])}
GPU_AGENT, CPU_AGENT = 37946, 37944


class D(NamedTuple):
    """A dispatch or a copy (name None), with the call that began it."""

    name: str | None
    start_us: float
    length_us: float
    stream: int | None = 1
    queue: int = 16
    called_us: float | None = None
    blocks: int = 64


def rocprofv3(
    path: Path,
    works: Iterable[D],
    hip_trace: bool = True,
    ranges: Iterable[tuple[str, float, float]] = (),
    **config: Any,
) -> Path:
    """config: of the tool, as in its metadata."""
    names: dict[str, int] = {}
    kinds_of_records = ("kernel_dispatch", "hip_api", "memory_copy", "marker_api")
    records: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds_of_records}
    for number, one in enumerate(works, 1):
        shared = {
            "thread_id": 7,
            "correlation_id": {"internal": number, "external": 0},
            "start_timestamp": round(one.start_us * 1000),
            "end_timestamp": round((one.start_us + one.length_us) * 1000),
        }
        if one.stream is not None:
            shared["stream_id"] = {"handle": one.stream}
        if one.name is None:
            agents = {"dst_agent_id": {"handle": CPU_AGENT}, "src_agent_id": {"handle": GPU_AGENT}}
            records["memory_copy"].append({"size": 64, "kind": 10, "operation": 3, **shared, **agents, "bytes": 4096})
        else:
            place = {
                "agent_id": {"handle": GPU_AGENT},
                "queue_id": {"handle": one.queue},
                "kernel_id": names.setdefault(one.name, len(names) + 1),
                "group_segment_size": 2048,
                "workgroup_size": {"x": 256, "y": 1, "z": 1},
                "grid_size": {"x": 256 * one.blocks - 3, "y": 1, "z": 1},
            }
            row = {"size": 184, "kind": 11, "operation": 2, **shared}
            records["kernel_dispatch"].append({**row, "dispatch_info": place})
        if hip_trace and one.called_us is not None:
            called_ns = round(one.called_us * 1000)
            called = {"start_timestamp": called_ns, "end_timestamp": called_ns + 900}
            operation = 1 if one.name else 2
            records["hip_api"].append({"size": 64, "kind": 5, "operation": operation, **shared, **called})
    markers = []
    for number, (name, start, length) in enumerate(ranges, 9000):
        markers.append({"key": number, "value": name})
        times = {"start_timestamp": round(start * 1000), "end_timestamp": round((start + length) * 1000)}
        correlation = {"correlation_id": {"internal": number, "external": 0}}
        records["marker_api"].append({"size": 64, "kind": 7, "operation": 1, "thread_id": 7, **correlation, **times})
    kinds = [dict(zip(("kind", "operations"), _KINDS.get(kind, ("X", [])))) for kind in range(12)]
    process = {
        "metadata": {"node": {"hostname": "node3"}, "pid": 908, "config": {"group_by_queue": False, **config}},
        "agents": [
            {"id": {"handle": CPU_AGENT}, "type": 1, "logical_node_type_id": 0, "name": "EPYC", "cu_count": 128},
            {
                **{"id": {"handle": GPU_AGENT}, "type": 2, "logical_node_type_id": 0, "cu_count": 304},
                **{"name": "gfx942", "product_name": AMD, "vendor_name": "AMD"},
            },
        ],
        "strings": {"buffer_records": kinds, "marker_api": markers},
        "kernel_symbols": [
            {"kernel_id": number, "formatted_kernel_name": name, "arch_vgpr_count": 84}
            for name, number in names.items()
        ],
        "callback_records": {"counter_collection": []},
        "buffer_records": records,
    }
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}), encoding="utf-8")
    return path


def jax(path: Path, kernels: Iterable[tuple[str, int, float, float]], calls: bool = True) -> Path:
    """kernels: (name, stream, start, length)."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 1, "tid": 99, "name": "thread_name", "args": {"name": "XLA Modules"}},
        {"ph": "M", "pid": 1, "tid": 98, "name": "thread_name", "args": {"name": "Steps"}},
        {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "X", "pid": 1, "tid": 99, "ts": 0, "dur": 5000, "name": "jit_step", "args": {"group_id": 1}},
        {"ph": "X", "pid": 1, "tid": 98, "ts": 0, "dur": 5000, "name": "1", "args": {"group_id": 1}},
    ]
    for stream in {stream for _, stream, _, _ in kernels}:
        words = {"name": f"Stream #{stream}(Compute,MemcpyD2H)"}
        events.append({"ph": "M", "pid": 1, "tid": stream, "name": "thread_name", "args": words})
    details = "regs:32 static_shared:16 dynamic_shared:1024 grid:8,2,1 block:128,1,1 occ_pct:100"
    for number, (name, stream, start, length) in enumerate(kernels, 1):
        arguments = {"correlation_id": str(number), "kernel_details": details, "hlo_op": "fusion.1"}
        row = {"ph": "X", "pid": 1, "tid": stream, "ts": start, "dur": length, "name": name}
        events.append({**row, "args": arguments})
        if calls:
            host = {"ph": "X", "pid": 701, "tid": 5, "ts": start - 20, "dur": 4, "name": "cuLaunchKernel"}
            events.append({**host, "args": {"correlation_id": str(number)}})
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}), encoding="utf-8")
    return path
