"""Traces made by hand of what a host called and what streams waited for, in both forms, each as complete as wanted.

The forms: libkineto's CuptiActivity.h (rows of the categories cuda_runtime and cuda_sync), and NVIDIA's "SQLite Export
Schema Reference" (tables RUNTIME, SYNCHRONIZATION, CUDA_EVENT, ENUM_CUPTI_SYNC_TYPE).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.traces.made import NCCL, K, kineto, kineto_events, nsys

LONG = "interior(double const*, double*, int)"
SHORT = "boundary(double const*, double*, int)"
PROCESS = 0x11000000000000
STEPS = 5  # of 100 us; the first is before what is measured, the last is not measured
PLAIN, UNRESOLVED, WHOLE = "plain", "unresolved", "whole"  # how much of waits is recorded
_TYPES = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
_COLUMNS = {
    "RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "SYNCHRONIZATION": "start end deviceId contextId streamId correlationId globalPid syncType eventId",
    "CUDA_EVENT": "timestamp deviceId contextId streamId correlationId globalPid eventId",
}


class _Sync(NamedTuple):
    kind: str
    stream: int | None
    start_us: float
    length_us: float
    correlation: int
    event: int | None = None
    recorded: tuple[int, int] | None = None  # stream and correlation


class Program:
    """Calls in the order in which they are made; times in microseconds."""

    def __init__(self) -> None:
        self.kernels: list[K] = []
        self.calls: list[tuple[str, float, float, int]] = []
        self.syncs: list[_Sync] = []
        self.records: list[tuple[int, int, int]] = []  # event, stream, correlation
        self.steps: list[tuple[int, float, float]] = []

    def _call(self, name: str, start_us: float, length_us: float) -> int:
        self.calls.append((name, start_us, length_us, len(self.calls) + 1))
        return len(self.calls)

    def launch(self, kernel: K, called_us: float, length_us: float = 1.0) -> None:
        name = "cudaMemcpyAsync" if kernel.name is None else "cudaLaunchKernel"
        self.kernels.append(kernel._replace(correlation=self._call(name, called_us, length_us)))

    def graph(self, kernels: list[K], called_us: float) -> None:
        correlation = self._call("cudaGraphLaunch", called_us, 1.0)
        self.kernels += [kernel._replace(correlation=correlation) for kernel in kernels]

    def record(self, event: int, stream: int, called_us: float) -> None:
        self.records.append((event, stream, self._call("cudaEventRecord", called_us, 0.1)))

    def _recorded(self, event: int) -> tuple[int, int]:
        return next((stream, correlation) for one, stream, correlation in reversed(self.records) if one == event)

    def wait(self, stream: int, event: int, called_us: float) -> None:
        correlation = self._call("cudaStreamWaitEvent", called_us, 0.1)
        self.syncs.append(_Sync("Stream Wait Event", stream, called_us, 0.1, correlation, event, self._recorded(event)))

    def synchronize(self, stream: int, start_us: float, end_us: float) -> None:
        correlation = self._call("cudaStreamSynchronize", start_us, end_us - start_us)
        self.syncs.append(_Sync("Stream Sync", stream, start_us, end_us - start_us, correlation))

    def event_synchronize(self, event: int, start_us: float, end_us: float, name: str = "cudaEventSynchronize") -> None:
        correlation = self._call(name, start_us, end_us - start_us)
        recorded = self._recorded(event)
        self.syncs.append(_Sync("Event Sync", None, start_us, end_us - start_us, correlation, event, recorded))

    def poll(self, event: int, start_us: float, end_us: float, every_us: float = 2.0) -> None:
        while start_us < end_us:
            self.event_synchronize(event, start_us, start_us + every_us / 2, "cudaEventQuery")
            start_us += every_us

    def device_synchronize(self, start_us: float, end_us: float) -> None:
        correlation = self._call("cudaDeviceSynchronize", start_us, end_us - start_us)
        self.syncs.append(_Sync("Context Sync", None, start_us, end_us - start_us, correlation))

    def kineto(self, path: Path, told: str = WHOLE, calls: bool = True) -> Path:
        events = kineto_events(self.kernels, self.steps, gpu_steps=True)
        host = {"ph": "X", "pid": 90, "tid": 90}
        if calls:
            for name, start, length, correlation in self.calls:
                row = {**host, "cat": "cuda_runtime", "name": name, "ts": start, "dur": length}
                events.append({**row, "args": {"cbid": 1, "correlation": correlation}})
        for sync in self.syncs if told != PLAIN else ():
            stream, correlation = sync.recorded if sync.recorded and told == WHOLE else (-1, -1)
            arguments: dict[str, Any] = {"cuda_sync_kind": sync.kind}
            if sync.event is not None:
                arguments |= {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": correlation}
                arguments |= {"wait_on_cuda_event_id": sync.event}
            own = -1 if sync.stream is None else sync.stream
            arguments |= {"stream": own, "correlation": sync.correlation, "device": 0, "context": 1}
            row = {"ph": "X", "cat": "cuda_sync", "name": sync.kind, "pid": 0, "tid": own, "ts": sync.start_us}
            events.append({**row, "dur": sync.length_us, "args": arguments})
        return kineto(path, events)

    def nsys(self, path: Path, told: str = WHOLE, types: bool = True) -> Path:
        """types: with the enumeration of kinds of waits, in numbers of its own."""
        nsys(path, self.kernels, [(f"step {number}", start, length) for number, start, length in self.steps])
        shift = 10 if types else 0
        with closing(sqlite3.connect(path)) as database:
            for table, columns in _COLUMNS.items():
                names = ", ".join(f"{column} INTEGER" for column in columns.split())
                database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_{table} ({names})")
            numbers: dict[str, int] = {}
            for name, start, length, correlation in self.calls:
                if name not in numbers:
                    numbers[name] = 1000 + len(numbers)
                    database.execute("INSERT INTO StringIds VALUES (?, ?)", (numbers[name], f"{name}_v3020"))
                row = (*_ns(start, length), 0, PROCESS + 5, correlation, numbers[name], 0, None)
                _insert(database, "RUNTIME", row)
            if types:
                database.execute("CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER NOT NULL, name TEXT, label TEXT)")
                for label, number in _TYPES.items():
                    word = label.replace("Sync", "Synchronize").upper().replace(" ", "_")
                    name = f"CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_{word}"
                    database.execute("INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES (?, ?, ?)", (number + shift, name, label))
            for sync in self.syncs if told != PLAIN else ():
                own = 2**32 - 1 if sync.stream is None else sync.stream
                place = (0, 1, own, sync.correlation, PROCESS, _TYPES[sync.kind] + shift, sync.event or 0)
                _insert(database, "SYNCHRONIZATION", (*_ns(sync.start_us, sync.length_us), *place))
            for event, stream, correlation in self.records if told == WHOLE else ():
                _insert(database, "CUDA_EVENT", (0, 0, 1, stream, correlation, PROCESS, event))
            database.commit()
        return path


def _ns(start_us: float, length_us: float) -> tuple[int, int]:
    return round(start_us * 1000), round((start_us + length_us) * 1000)


def _insert(database: sqlite3.Connection, table: str, values: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * len(values))
    database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({marks})", values)


def interior(at: float, length: float, stream: int = 7, waves: float = 100) -> K:
    return K(
        LONG, at, length, stream, grid=(round(1056 * waves), 1, 1), block=(256, 1, 1), registers=32, static=0, dynamic=0
    )


def boundary(at: float, length: float, stream: int = 20) -> K:
    return K(SHORT, at, length, stream, grid=(500, 1, 1), block=(256, 1, 1), registers=32, static=0, dynamic=0)


def collective(at: float, length: float, stream: int = 20) -> K:
    return K(NCCL, at, length, stream, grid=(16, 1, 1), block=(640, 1, 1), registers=96, dynamic=82240)


def copy(at: float, length: float, stream: int = 20) -> K:
    return K(None, at, length, stream)


def steps(program: Program, one: Callable[[Program, float], None], count: int = STEPS) -> Program:
    """Calls `one` with the start of each."""
    for number in range(count):
        at = 1000.0 + 100 * number
        one(program, at)
        if number:
            program.steps.append((number, at, 100.0))
    return program


def by_nccl(program: Program, at: float, start: float = 70.0, size: int = 1, late: bool = False) -> None:
    """The boundary is ready after 6 us, two after its launch call returns, and stands behind the interior until
    `start`; the collective behind it ends 15 us after the interior, and a copy on the interior's stream waits for it.
    late: the next interior does, which the host launches later."""
    program.launch(interior(at + 4, 76), at + 1)
    program.launch(boundary(at + start, 5)._replace(grid=(500 * size, 1, 1)), at + 3)
    program.launch(collective(at + start + 6, 95 - start - 6), at + 5)
    program.record(1, 20, at + 7)
    program.wait(7, 1, at + 8)
    if not late:
        program.launch(copy(at + 95, 1, stream=7), at + 9)


def by_host(program: Program, at: float, begin: float = 8.0, how: str = "stream") -> None:
    """The boundary waits from 6 to 70, then its copy runs until 85, for which the host waits from `begin` on."""
    program.launch(interior(at + 4, 68), at + 1)
    program.launch(boundary(at + 70, 5), at + 3)
    if how == "copy":
        program.launch(copy(at + 76, 9), at + begin, 86 - begin)
        return
    program.launch(copy(at + 76, 9), at + 5)
    program.record(2, 20, at + 7)
    if how == "stream":
        program.synchronize(20, at + begin, at + 86)
    elif how == "event":
        program.event_synchronize(2, at + begin, at + 86)
    elif how == "poll":
        program.poll(2, at + begin, at + 86)
    elif how == "device":
        program.device_synchronize(at + begin, at + 86)


def chain(
    program: Program, at: float, parts: int = 3, host: bool = True, copies: bool = False, waves: float = 100
) -> None:
    """`parts` kernels or copies of 1 us; the first waits behind an interior of 400 us. The host waits for each, if at
    all, and launches the next one 9 us later."""
    program.launch(interior(at + 4, 400, 15, waves), at + 1)
    for part in range(parts):
        start = at + 390 + 10 * part
        piece = copy(start, 1) if part and copies else boundary(start, 1)
        program.launch(piece, at + 5 if part == 0 else start - 3 if host else at + 6 + part)
        if host:
            program.synchronize(20, at + 8 if part == 0 else start - 1, start + 1.5)
    if not host:
        program.synchronize(20, at + 20, at + 391 + 10 * parts)
