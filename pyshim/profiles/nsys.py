"""Read exports of nsys in sqlite's form (`nsys export --type sqlite`, `nsys stats`).

"SQLite Export Schema Reference" in NVIDIA's documentation of Nsight Systems. Tables and columns come and go with the
version and with what was recorded; times are nanoseconds since the recording began, of host and GPU alike. Opened
read-only. A wait for an event is for its last record before the call. Types of synchronisation are numbers of
ENUM_CUPTI_SYNC_TYPE; without that table CUPTI's own.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pyshim.errors import OverlapError
from pyshim.profiles.kernel_names import is_communication
from pyshim.profiles.record import (
    CALL,
    COPY,
    DEVICE,
    KERNEL,
    PAGEABLE,
    PINNED,
    WAIT,
    Activity,
    Call,
    MemoryOperation,
    NamedRange,
    TracedGpu,
    TracedLaunch,
    Wait,
    architecture,
    priority,
)
from pyshim.profiles.store import Store, StoredTrace

_LONGEST = 1 << 24  # bytes of a value, and of a row
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_MEMORY = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_SYNCHRONIZATIONS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
_SYNC_TYPES = "ENUM_CUPTI_SYNC_TYPE"
_MEMORY_KINDS = "ENUM_CUDA_MEM_KIND"  # labels Pageable, Pinned, Device, ...
# CUpti_ActivitySynchronizationType
_EVENT_SYNC, _STREAM_WAIT, _STREAM_SYNC = "EVENT_SYNCHRONIZE", "STREAM_WAIT_EVENT", "STREAM_SYNCHRONIZE"
_CUPTI_SYNC_TYPES = {1: _EVENT_SYNC, 2: _STREAM_WAIT, 3: _STREAM_SYNC}
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_STREAMS = "TARGET_INFO_CUDA_STREAM"  # every stream that the program created
# The default stream of each context: its number is in a table of its own, from schema 3.17 on in that of contexts.
_NULL_STREAMS = (("TARGET_INFO_CUDA_NULL_STREAM", "streamId"), ("TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId"))
_SETTINGS = "META_DATA_CAPTURE"
_CAPTURED = {"Cuda": "cuda", "NvtxEvents": "nvtx", "OSRuntime": "osrt", "Graphics": "opengl"}  # as --trace calls them
_SYSTEM = "TARGET_INFO_SYSTEM_ENV"
_RANGES = "NVTX_EVENTS"
# What nsys writes into every export; a database of something else has none of them.
_SIGNS = {KERNELS, _CALLS, "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", _RANGES, *_MEMORY}
# Push/pop and start/end ranges, by their numbers in ENUM_NSYS_EVENT_TYPE; marks and metadata are none.
_RANGE_TYPES = "(59, 60)"
_KERNEL_COLUMNS = (
    *("start", "end", "deviceId", "streamId", "globalPid", "mangledName", "demangledName", "shortName"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "correlationId"),
)
_COPY_COLUMNS = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", "srcKind", "dstKind")
_WAIT_COLUMNS = (
    *("start", "end", "deviceId", "contextId", "streamId", "globalPid", "correlationId", "syncType", "eventId"),
)


class NsysTrace(StoredTrace):
    kind = "nsys"
    records_calls = records_waits = "nsys profile records them with --trace=cuda"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._priorities: dict[tuple[int | None, str], int] = {}  # by process ID and stream
        self._null_streams: set[tuple[int | None, str]] = set()  # process ID and stream

    def read(self, store: Store) -> None:
        self.warnings, self.missing = [], []
        self.left_out.clear()
        self.ending = "it is shorter than it says" if _is_torn(self.path) else ""
        with self._tables() as tables:
            if not tables.names & _SIGNS:
                raise OverlapError(
                    f"{self.path} is a database of something else than nsys",
                    "make one: nsys export --type sqlite REPORT.nsys-rep",
                )
            self._know(tables)
            for read in (self._kernels, self._copies, self._ranges, self._calls, self._waits):
                for one in read(tables):
                    store.add(one)
            self._leave_out(tables)
            self.missing += self._missing(tables)

    @contextmanager
    def _tables(self) -> Iterator[_Tables]:
        patience = _Patience(self.path)
        try:
            with closing(sqlite3.connect(f"{Path(self.path).absolute().as_uri()}?mode=ro", uri=True)) as database:
                database.set_progress_handler(patience, _Patience.EVERY)
                # What views say in a file of somebody else's may use no function that does anything (www.sqlite.org/
                # security.html, "Untrusted SQLite Database Files"), and no value may be large.
                database.execute("PRAGMA trusted_schema = OFF")
                database.execute("PRAGMA cell_size_check = ON")
                if sys.version_info >= (3, 11):
                    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
                yield _Tables(database)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: of what defines a table
            if patience.left < 0:
                sentence = "its tables take far longer to read than those of any recording of its size"
                raise OverlapError(f"{self.path}: {sentence}", "export it again with nsys export") from error
            if self.ending:
                raise OverlapError(f"{self.path} cannot be read: {self.ending} ({error})", "copy it again") from error
            raise OverlapError(f"{self.path} cannot be read: {error}", "export it again with nsys export") from error

    def priority_of(self, process: int | None, stream: str) -> int | None:
        return self._priorities.get((_pid(process), stream))

    def priorities_of(self, process: int | None) -> list[int]:
        return [number for (pid, _), number in self._priorities.items() if pid == _pid(process)]

    def is_default_stream(self, process: int | None, device: int, stream: str) -> bool:
        if self._null_streams:
            return (_pid(process), stream) in self._null_streams
        return super().is_default_stream(process, device, stream)

    def _missing(self, tables: _Tables) -> Iterator[str]:
        """Yield what is not in the export that a recording of a program on a GPU has, and what to do."""
        if tables.count(KERNELS):
            if not tables.count(_CALLS):
                yield f"{self.path} has kernels and no calls of CUDA: export it without --tables"
            return
        asked = sorted(set(self._asked(tables)))
        recorded = f"it was recorded with --trace={','.join(asked)}" if asked else "it does not say what was traced"
        if tables.count(_GRAPHS):
            yield f"{self.path} has CUDA graphs as a whole, and no kernels: record with --cuda-graph-trace=node"
        elif tables.count(_CALLS):
            yield (
                f"{self.path} has {tables.count(_CALLS):,} calls of CUDA and no kernels ({recorded}): the program "
                "launched none while nsys recorded, or ended before nsys had its buffers; record longer, and let the "
                "program end by itself"
            )
        elif "cuda" in asked:
            yield (
                f"{self.path} has no calls of CUDA although {recorded}: the process that uses the GPU was not "
                "recorded; record it with --trace-fork-before-exec=true, or start nsys inside srun or mpirun"
            )
        else:
            yield f"{self.path} has neither kernels nor calls of CUDA ({recorded}): record with --trace=cuda,nvtx"

    def _asked(self, tables: _Tables) -> Iterator[str]:
        """Yield what --trace named."""
        for name, value in tables.rows(_SETTINGS, ("name", "value")):
            if name == "CAPTURE_EVENT_TYPE" and value:
                yield _CAPTURED.get(value, value.lower())

    def _know(self, tables: _Tables) -> None:
        self.host = next((value for name, value in tables.rows(_SYSTEM, ("name", "value")) if name == "Hostname"), "")
        for table, column in _NULL_STREAMS:
            for pid, stream in tables.rows(table, ("processId", column)):
                if stream is not None:
                    self._null_streams.add((pid, str(stream)))
        columns = ("id", "name", "computeMajor", "computeMinor", "smCount")
        for index, name, major, minor, multiprocessors in tables.rows("TARGET_INFO_GPU", columns):
            if index is not None and name:
                self.gpus[index] = TracedGpu(str(name), architecture(major, minor), multiprocessors or 0)
        for pid, stream, number in tables.rows(_STREAMS, ("processId", "streamId", "priority")):
            if number is not None:
                self._priorities[pid, str(stream)] = priority(number) or 0
        graphs = tables.count(_GRAPHS)
        if graphs:
            self.warnings.append(
                f"{self.path}: {graphs:,} launches of CUDA graphs were recorded as a whole, without the kernels in "
                "them: record with --cuda-graph-trace=node"
            )

    def _kernels(self, tables: _Tables) -> Iterator[Activity]:
        strings = tables.strings(KERNELS, _KERNEL_COLUMNS[5:8])
        for row in tables.rows(KERNELS, _KERNEL_COLUMNS, _ENDED):
            start, end, device, stream, process = row[:5]
            # The driver's own name where it is there: our patterns are tried on that.
            kernel = next((strings[name] for name in row[5:8] if name in strings), "")
            static, dynamic, correlation = row[15:18]
            yield TracedLaunch(
                *(kernel, is_communication(kernel), device or 0, sys.intern(str(stream or 0)), start / 1e3, end / 1e3),
                blocks=_product(row[8:11]),
                threads=_product(row[11:14]),
                registers=row[14],
                static_shared_memory=static,
                dynamic_shared_memory=dynamic,
                shared_memory=None if static is None or dynamic is None else static + dynamic,
                process=process,
                correlation=correlation,
            )

    def _leave_out(self, tables: _Tables) -> None:
        """Count what has no usable time, by the names that the kernels have that were read."""
        strings = tables.strings(KERNELS, _KERNEL_COLUMNS[5:8])
        for row in tables.rows(KERNELS, _KERNEL_COLUMNS[5:8], f"NOT ({_ENDED})"):
            self.leave_out(KERNEL, next((strings[name] for name in row if name in strings), ""))
        for sort, names in ((COPY, _MEMORY), (CALL, (_CALLS,)), (WAIT, (_SYNCHRONIZATIONS,))):
            for table in names:
                for _ in tables.rows(table, ("start",), f"NOT ({_ENDED})"):
                    self.leave_out(sort)
        self.note_left_out()

    def _copies(self, tables: _Tables) -> Iterator[MemoryOperation]:
        words = dict(tables.rows(_MEMORY_KINDS, ("id", "label"))) if _MEMORY_KINDS in tables.names else {}
        for table in _MEMORY:
            for start, end, device, stream, process, correlation, *kinds in tables.rows(table, _COPY_COLUMNS, _ENDED):
                told = {str(words.get(kind)).lower() for kind in kinds}
                memory = told & {PAGEABLE, PINNED} or told & {DEVICE}
                yield MemoryOperation(
                    *(device or 0, sys.intern(str(stream or 0)), start / 1e3, end / 1e3, process, correlation),
                    memory=min(memory, default=""),
                )

    def _calls(self, tables: _Tables) -> Iterator[Call]:
        strings = tables.strings(_CALLS, ("nameId",))
        columns = ("start", "end", "nameId", "correlationId", "globalTid")
        for start, end, name, correlation, thread in tables.rows(_CALLS, columns, _ENDED):
            if correlation:
                yield Call(strings.get(name, ""), start / 1e3, end / 1e3, correlation, _process(thread))

    def _waits(self, tables: _Tables) -> Iterator[Wait]:
        types = _CUPTI_SYNC_TYPES
        if _SYNC_TYPES in tables.names:
            words = {number: name for number, name in tables.rows(_SYNC_TYPES, ("id", "name")) if name}
            known = tuple(_CUPTI_SYNC_TYPES.values())
            types = {number: word for number, name in words.items() for word in known if name.upper().endswith(word)}
        events = _Events(tables)
        for row in tables.rows(_SYNCHRONIZATIONS, _WAIT_COLUMNS, _ENDED):
            start, end, device, context, stream, process, correlation, type_, event = row
            kind = types.get(type_)
            if kind is None or not correlation:
                continue
            own = None if kind == _EVENT_SYNC else str(stream)
            recorded = None if kind == _STREAM_SYNC else events.find((process, context, event), correlation)
            times = start / 1e3, end / 1e3
            yield Wait(kind != _STREAM_WAIT, device or 0, own, *times, correlation, recorded, process)

    def _ranges(self, tables: _Tables) -> Iterator[Activity]:
        strings = tables.strings(_RANGES, ("textId",))
        columns = ("start", "end", "text", "textId", "globalTid")
        kinds = f" AND eventType IN {_RANGE_TYPES}" if "eventType" in tables.columns(_RANGES) else ""
        for start, end, text, number, thread in tables.rows(_RANGES, columns, _ENDED + kinds):
            name = text or strings.get(number)
            if name:
                yield NamedRange(str(name), start / 1e3, end / 1e3, False, _process(thread))


class _Events:
    """When and where events were recorded."""

    def __init__(self, tables: _Tables) -> None:
        self._records: defaultdict[tuple[object, ...], list[tuple[int, str]]] = defaultdict(list)
        columns = ("contextId", "streamId", "correlationId", "globalPid", "eventId")
        for context, stream, correlation, process, event in tables.rows(_EVENTS, columns):
            if correlation:
                self._records[process, context, event].append((correlation, str(stream)))
        for records in self._records.values():
            records.sort()

    def find(self, event: tuple[object, ...], correlation: int) -> tuple[str, int] | None:
        """Return the stream and the correlation of an event's last record before a call."""
        records = self._records.get(event, [])
        before = bisect_left(records, (correlation, ""))
        return (records[before - 1][1], records[before - 1][0]) if before else None


class _Patience:
    """Stop sqlite, as its progress handler, in a view without end: each row costs it about a hundred instructions."""

    EVERY = 10_000  # instructions
    _FEW, _PER_BYTE = 20_000_000, 200

    def __init__(self, path: str) -> None:
        size = os.stat(path).st_size if os.path.exists(path) else 0
        self.left = (self._FEW + self._PER_BYTE * size) // self.EVERY

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def _is_torn(path: str) -> bool:
    """Return whether pages are missing: sqlite reads those that are there.

    www.sqlite.org/fileformat2.html, 1.3, "The Database Header": the page size at byte 16, where 1 means 65536, and the
    size in pages at byte 28, 0 where unknown."""
    try:
        with open(path, "rb") as file:
            header = file.read(100)
            length = os.fstat(file.fileno()).st_size
    except OSError:
        return False  # whoever reads it next says why
    size, pages = (int.from_bytes(header[begin:end], "big") for begin, end in ((16, 18), (28, 32)))
    return len(header) < 100 or length < (65536 if size == 1 else size) * pages


_TEXTS = ("text", "value", "name", "label")
_ENDED = """typeof("start") = 'integer' AND typeof("end") = 'integer' AND "end" >= "start\""""


class _Tables:
    """What is there of the tables and columns that are asked for."""

    def __init__(self, database: sqlite3.Connection) -> None:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        self._database = database
        self.names = {
            name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        }

    def columns(self, table: str) -> set[str]:
        return {row[1] for row in self._database.execute(f'PRAGMA table_info("{table}")')}

    def rows(self, table: str, columns: tuple[str, ...], where: str = "1") -> Iterator[tuple[Any, ...]]:
        """Yield rows: NULL for a column that is not there, nothing where the table is not."""
        if table not in self.names:
            return
        there = self.columns(table)
        if where.startswith(_ENDED) and not {"start", "end"} <= there:
            return
        chosen = ", ".join(_typed(column) if column in there else "NULL" for column in columns)
        yield from self._database.execute(f'SELECT {chosen} FROM "{table}" WHERE {where}')

    def count(self, table: str) -> int:
        if table not in self.names:
            return 0
        (found,) = self._database.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
        return int(found)

    def strings(self, table: str, columns: tuple[str, ...]) -> dict[int, str]:
        """Return the strings that these columns refer to: a long recording may have millions of others."""
        there = self.columns(table)
        used = " UNION ".join(f'SELECT "{column}" FROM "{table}"' for column in columns if column in there)
        rows = self.rows("StringIds", ("id", "value"), f'"id" IN ({used})') if used else ()
        return {number: text for number, text in rows if number is not None and text is not None}


def _typed(column: str) -> str:
    """NULL for what is of another type: sqlite keeps nothing else out of a column."""
    return f"""CASE WHEN typeof("{column}") = '{"text" if column in _TEXTS else "integer"}' THEN "{column}" END"""


def _process(thread: int | None) -> int | None:
    """Return the globalPid of a globalTid: the same number with the thread's 24 bits 0 (NVIDIA's document)."""
    return None if thread is None else thread & ~0xFFFFFF


def _pid(process: int | None) -> int | None:
    """Return the process ID of a globalPid, from which TARGET_INFO tables know it."""
    return None if process is None else process >> 24 & 0xFFFFFF


def _product(sizes: tuple[int | None, ...]) -> int | None:
    result = 1
    for size in sizes:
        if size is None:
            return None
        result *= size
    return result
