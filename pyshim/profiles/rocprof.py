"""Read the JSON of rocprofv3 (`--output-format json`, NAME_results.json): AMD's profiler of programs of HIP.

One object, `rocprofiler-sdk-tool`: a list of processes, each with its agents (CPUs and GPUs), the kernels' symbols,
names of kinds and operations, and buffers of records by kind. Times are nanoseconds of one clock, of host and GPU
alike. A dispatch and a copy have the internal correlation ID of the call of HIP that began them. Sizes of grids are in
work items. What rocprofv3 never records: for which event a stream waits; the calls are there (`--hip-trace`), without
their arguments. (ROCm/rocprofiler-sdk: source/docs/rocprofv3-schema.json,
source/lib/rocprofiler-sdk-tool/generateJSON.cpp, source/include/rocprofiler-sdk/cxx/serialization.hpp)

Streams are HIP's (`stream_id`), which rocprofv3 has recorded since ROCm 7.0; before that, and with --group-by-queue,
they are the hardware's queues, onto which HIP puts several streams.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyshim.profiles.kernel_names import is_communication
from pyshim.profiles.record import (
    CALL,
    COPY,
    KERNEL,
    Activity,
    Call,
    MemoryOperation,
    NamedRange,
    TracedGpu,
    TracedLaunch,
)
from pyshim.profiles.store import Store, StoredTrace
from pyshim.profiles.window import Broken, Torn, Window, line_of
from pyshim.unreadable import unreadable

TOOL = "rocprofiler-sdk-tool"
_GPU = 2  # rocprofiler_agent_type_t
_NULL_STREAM = "0"
_LARGEST = 1 << 63
_SORTS = {"kernel_dispatch": KERNEL, "memory_copy": COPY, "hip_api": CALL}


class RocprofTrace(StoredTrace):
    kind = "rocprofv3"
    records_calls = "rocprofv3 records them with --sys-trace, or --hip-trace --kernel-trace --memory-copy-trace"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.hip = True
        self._counts: dict[str, int] = {}

    def read(self, store: Store) -> None:
        self.warnings, self.missing, self.ending, self._counts = [], [], "", {}
        self.left_out.clear()
        try:
            with open(self.path, "rb") as file:
                window = Window(file)
                ending = self._document(window, store)
                place = window.place
        except OSError as error:
            raise unreadable(self.path, error) from error
        if ending is not None:
            self.ending = ending or f"it is no JSON in line {line_of(self.path, place):,}"
        self.python = any(isinstance(form, TracedLaunch) and "at::native" in form.kernel for form in store.works.forms)
        self._say_what_is_missing()
        self.note_left_out()

    def is_default_stream(self, process: int | None, device: int, stream: str) -> bool:
        return stream == _NULL_STREAM

    def _say_what_is_missing(self) -> None:
        if not self._counts.get("hip_api"):
            self.missing.append(f"{self.path} has no calls of HIP: record with --hip-trace, too")
        if self._counts.get("kernel_dispatch") and not self._counts.get("memory_copy"):
            self.missing.append(f"{self.path} has no copies: there were none, or --memory-copy-trace was not given")

    def _document(self, window: Window, store: Store) -> str | None:
        """Return how the file ends too early; "" where it is no JSON."""
        try:
            window.expect("{")
            while not window.take("}"):
                key = window.value()
                window.expect(":")
                if key == TOOL and window.take("["):
                    number = 0
                    while not window.take("]"):
                        _Process(self, window, store, self._counts, number).read()
                        number += 1
                else:
                    window.value()
        except Torn as torn:
            return str(torn)
        except Broken:
            return ""
        return None


class _Process:
    """One process of a file; its records come after what they refer to."""

    def __init__(self, trace: RocprofTrace, window: Window, store: Store, counts: dict[str, int], number: int) -> None:
        self._trace = trace
        self._window = window
        self._store = store
        self._counts = counts
        self._number: int | None = number or None
        self._devices: dict[int, int] = {}  # by agent
        self._kernels: dict[int, tuple[str, int | None]] = {}  # name and registers
        self._operations: dict[int, list[str]] = {}  # by kind
        self._markers: dict[int, str] = {}  # by correlation
        self._by_queue = False

    def read(self) -> None:
        for key in self._keys():
            if key in ("agents", "kernel_symbols") and self._window.take("["):
                for one in self._list():
                    self._know(str(key), one)
            elif key == "buffer_records":
                for kind in self._keys():
                    self._records(str(kind))
            else:
                value = self._window.value()
                if key == "strings":
                    self._know_strings(_mapping(value))
                elif key == "metadata":
                    self._know_process(_mapping(value))

    def _keys(self) -> Iterator[object]:
        self._window.expect("{")
        while not self._window.take("}"):
            key = self._window.value()
            self._window.expect(":")
            yield key

    def _list(self) -> Iterator[dict[str, Any]]:
        while not self._window.take("]"):
            yield _mapping(self._window.value())

    def _know_process(self, metadata: dict[str, Any]) -> None:
        self._trace.host = str(_mapping(metadata.get("node")).get("hostname") or "")
        self._by_queue = bool(_mapping(metadata.get("config")).get("group_by_queue"))

    def _know(self, key: str, one: dict[str, Any]) -> None:
        if key == "agents":
            if one.get("type") == _GPU:
                device = _integer(one.get("logical_node_type_id"))
                device = len(self._devices) if device is None or device < 0 else device
                self._devices[_handle(one.get("id"))] = device
                name = str(one.get("product_name") or one.get("name") or "")
                self._trace.gpus[device] = TracedGpu(
                    name, str(one.get("name") or ""), _integer(one.get("cu_count")) or 0
                )
            return
        number = _integer(one.get("kernel_id"))
        name = str(one.get("formatted_kernel_name") or one.get("demangled_kernel_name") or one.get("kernel_name") or "")
        if number is not None:
            self._kernels[number] = (
                sys.intern(name.removesuffix(" [clone .kd]") if name else ""),
                _integer(one.get("arch_vgpr_count")),
            )

    def _know_strings(self, strings: dict[str, Any]) -> None:
        kinds, markers = strings.get("buffer_records"), strings.get("marker_api")
        for number, one in enumerate(kinds if isinstance(kinds, list) else ()):
            operations = _mapping(one).get("operations")
            self._operations[number] = [str(name) for name in operations] if isinstance(operations, list) else []
        for one in markers if isinstance(markers, list) else ():
            key, value = _integer(_mapping(one).get("key")), _mapping(one).get("value")
            if key is not None and isinstance(value, str):
                self._markers[key] = value

    def _records(self, kind: str) -> None:
        if not self._window.take("["):
            self._window.value()
            return
        read = {"kernel_dispatch": self._dispatch, "memory_copy": self._copy, "hip_api": self._call}.get(kind)
        read = self._marker if kind == "marker_api" else read
        for one in self._list():
            times = _times(one)
            self._counts[kind] = self._counts.get(kind, 0) + 1
            if read and not times and kind in _SORTS:
                self._trace.leave_out(_SORTS[kind], self._kernel_of(one)[0] if kind == "kernel_dispatch" else "")
            record = read(one, *times) if read and times else None
            if record is not None:
                self._store.add(record)

    def _stream(self, one: dict[str, Any], place: dict[str, Any]) -> str:
        if "stream_id" in one and not self._by_queue:
            return sys.intern(str(_handle(one["stream_id"])))
        return sys.intern(f"queue {_handle(place.get('queue_id'))}")

    def _dispatch(self, one: dict[str, Any], start_us: float, end_us: float) -> Activity:
        place = _mapping(one.get("dispatch_info"))
        kernel, registers = self._kernel_of(one)
        grid, block = (_sizes(place.get(f"{what}_size")) for what in ("grid", "workgroup"))
        blocks = threads = None
        if block:
            threads = block[0] * block[1] * block[2]
        if grid and block:
            along = [-(-size // of_block) for size, of_block in zip(grid, block)]
            blocks = along[0] * along[1] * along[2]
        shared = _integer(place.get("group_segment_size"))
        return TracedLaunch(
            *(kernel, is_communication(kernel), self._devices.get(_handle(place.get("agent_id")), 0)),
            *(self._stream(one, place), start_us, end_us),
            blocks=blocks,
            threads=threads,
            registers=registers,
            shared_memory=shared,
            process=self._number,
            correlation=_correlation(one),
        )

    def _kernel_of(self, one: dict[str, Any]) -> tuple[str, int | None]:
        number = _integer(_mapping(one.get("dispatch_info")).get("kernel_id"))
        return self._kernels.get(number or 0, ("", None))

    def _copy(self, one: dict[str, Any], start_us: float, end_us: float) -> Activity:
        agents = [_handle(one.get(f"{which}_agent_id")) for which in ("dst", "src")]
        device = next((self._devices[agent] for agent in agents if agent in self._devices), 0)
        stream = sys.intern(str(_handle(one["stream_id"]))) if "stream_id" in one and not self._by_queue else "copies"
        return MemoryOperation(device, stream, start_us, end_us, self._number, _correlation(one))

    def _call(self, one: dict[str, Any], start_us: float, end_us: float) -> Activity | None:
        correlation, name = _correlation(one), self._operation(one)
        return Call(name, start_us, end_us, correlation, self._number) if correlation and name else None

    def _marker(self, one: dict[str, Any], start_us: float, end_us: float) -> Activity | None:
        """Return a range of roctx: what it is called is in the strings of the file, by its correlation."""
        name = self._markers.get(_correlation(one) or 0)
        return NamedRange(name, start_us, end_us, False, self._number) if name and end_us > start_us else None

    def _operation(self, one: dict[str, Any]) -> str:
        names = self._operations.get(_integer(one.get("kind")) or 0, [])
        number = _integer(one.get("operation"))
        return sys.intern(names[number]) if number is not None and 0 <= number < len(names) else ""


def _times(one: dict[str, Any]) -> tuple[float, float] | None:
    start, end = (_integer(one.get(f"{which}_timestamp")) for which in ("start", "end"))
    return None if start is None or end is None or end < start or start < 0 else (start / 1e3, end / 1e3)


def _correlation(one: dict[str, Any]) -> int | None:
    return _integer(_mapping(one.get("correlation_id")).get("internal")) or None


def _sizes(size: object) -> list[int] | None:
    numbers = [_integer(_mapping(size).get(axis)) for axis in "xyz"]
    known = [number for number in numbers if number is not None and 0 < number < 1 << 32]
    return known if len(known) == len(numbers) else None


def _handle(value: object) -> int:
    return _integer(_mapping(value).get("handle")) or 0


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _integer(value: object) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
    return value if known and isinstance(value, int) else None
