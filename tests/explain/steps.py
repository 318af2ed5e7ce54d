"""Traces of one step again and again, as torch.profiler writes them, for tests of the answer: who launched what, when.

Times are microseconds. Of a step all is said relative to its start; the profiler's own ranges mark the steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LENGTH = 1000.0
NCCL = "ncclDevKernel_{}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GPU = {"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
LARGE, WAVE, SMALL = 100_000, 132, 64  # blocks: many waves, one wave, a part of one


class Step:
    """Takes what happens in one step, and writes it as events."""

    def __init__(self, at: float, first: int) -> None:
        self.at = at
        self.events: list[dict[str, Any]] = []
        self.number = first

    def _add(self, category: str, name: str, start: float, length: float, pid: int, tid: int, **args: Any) -> None:
        row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": self.at + start, "dur": length}
        self.events.append({**row, "args": args})

    def call(self, name: str, start: float, length: float = 2.0) -> int:
        self.number += 1
        self._add("cuda_runtime", name, start, length, 90, 90, correlation=self.number)
        return self.number

    def range(self, name: str, start: float, length: float) -> None:
        self._add("user_annotation", name, start, length, 90, 90)

    def kernel(
        self,
        name: str,
        start: float,
        length: float,
        stream: int = 7,
        called: float | None = 1.0,
        blocks: int = LARGE,
        device: int = 0,
        **told: Any,
    ) -> None:
        """called: when the host launched it, None: the trace does not say."""
        number = 0 if called is None else self.call("cudaLaunchKernel", called)
        shape = {"grid": [blocks, 1, 1], "block": [256, 1, 1], "registers per thread": 128, "shared memory": 0}
        place = {"device": device, "stream": stream, "correlation": number}
        self._add("kernel", name, start, length, device, stream, **place, **shape, **told)

    def collective(self, name: str, start: float, length: float, stream: int = 20, **more: Any) -> None:
        self.kernel(NCCL.format(name), start, length, stream, blocks=16, **more)

    def copy(
        self,
        start: float,
        length: float,
        stream: int = 21,
        called: float = 1.0,
        device: int = 0,
        name: str = "Memcpy HtoD (Pinned -> Device)",
    ) -> None:
        number = self.call("cudaMemcpyAsync", called)
        place = {"device": device, "stream": stream, "correlation": number}
        self._add("gpu_memcpy", name, start, length, device, stream, **place)

    def wait(self, stream: int, called: float) -> None:
        """A stream waits for an event, and the trace does not say which."""
        number = self.call("cudaStreamWaitEvent", called)
        self._add(
            "cuda_sync", "Stream Wait Event", called, 1.0, 0, stream, stream=stream, correlation=number, device=0,
            wait_on_stream=-1, wait_on_cuda_event_record_corr_id=-1,
        )  # fmt: skip


def trace(
    path: Path,
    step: Callable[[Step], None],
    count: int = 5,
    length: float = LENGTH,
    shift: float = 0.0,
    rank: int | None = None,
    marks: bool = True,
    devices: Sequence[dict[str, Any]] = (GPU,),
) -> Path:
    """Write `count` steps. shift: of this rank's clock; marks: with the profiler's ranges."""
    events: list[dict[str, Any]] = []
    number = 0
    for index in range(count):
        one = Step(shift + 10_000.0 + index * length, number)
        if marks:
            events.append(
                {"ph": "X", "cat": "gpu_user_annotation", "name": f"ProfilerStep#{index}", "pid": 0, "tid": 7}
                | {"ts": one.at, "dur": length}
            )
        step(one)
        events += one.events
        number = one.number
    whole: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": list(devices), "traceEvents": events}
    if rank is not None:
        whole["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path
