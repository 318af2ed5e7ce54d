"""Read traces of the PyTorch profiler, and of our simulated GPU: both are Chrome traces, with different words.

Kineto writes the former (libkineto: output_json.cpp, CuptiActivity.cpp), SIMGPU_TRACE the latter (simgpu/trace.c).

Kineto's words have changed: categories were `Kernel`, `Memcpy` and `Memset` until PyTorch 1.11; numbers have come as
strings; shared memory is one number, the sum of the static and the dynamic part. AMD's events have no grid in some
versions. The events are in no order.

Waits are rows of the category cuda_sync, recorded with enable_cuda_sync_events (CuptiActivity.h, class
CudaSyncActivity; cupti_strings.cpp for their names); each poll by cudaEventQuery is a row "Event Sync". The event that
is waited for is -1 where CUPTI did not send its record: always from CUDA 12.9 on (pytorch/kineto#1552), unless the
program itself asks CUPTI for these. Waits of streams that nothing ran on are left out (CuptiActivityProfiler.cpp,
logDeferredEvents).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from pyshim.errors import OverlapError
from pyshim.traces.chrome import ChromeFile
from pyshim.traces.names import is_communication
from pyshim.traces.record import (
    Activity,
    Call,
    MemoryOperation,
    Record,
    Span,
    Trace,
    TracedLaunch,
    Wait,
    bounds_on_gpu,
)

_MEMORY = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
_LATEST = 2.0**53  # microseconds: a clock that says more has lost the single ones
_LARGEST = 1 << 63  # of any number of a launch
_SPANS = {"user_annotation": False, "gpu_user_annotation": True}
_SYNC = "cuda_sync"
_OF_HOST = (_SYNC, "cuda_runtime", "cuda_driver", "runtime")
_STREAM_WAITS, _HOST_WAITS = "Stream Wait Event", ("Stream Sync", "Event Sync")
_ROW = re.compile(r"stream (0x[0-9a-f]+), device (\d{1,6}) \((.*)\)")


class _ChromeTrace(Trace):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._timeless = 0  # events

    def activity(self, host: bool) -> Iterator[Activity]:
        self.warnings = []
        self._timeless = 0
        file = ChromeFile(self.path)
        try:
            for event in file.events():
                yield from self._records(event)
                if host:
                    yield from self._of_host(event)
        except OSError as error:
            raise OverlapError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if file.torn:
            self.warnings.append(f"{self.path}: {file.torn}: it was read as far as it goes")
        if self._timeless:
            self.warnings.append(f"{self.path}: {self._timeless:,} events have times of no clock, and were left out")
        self._know(file.fields)

    def _records(self, event: Mapping[str, Any]) -> Iterator[Record]:
        raise NotImplementedError

    def _of_host(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        return iter(())

    def _know(self, fields: Mapping[str, Any]) -> None:
        """Keep the fields of the file beside its events."""

    def _when(self, event: Mapping[str, Any]) -> tuple[float, float] | None:
        """Start and end; None for what has neither."""
        try:
            start, length = float(event["ts"]), float(event.get("dur", 0))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        if abs(start) < _LATEST and 0 <= length < _LATEST:
            return start, start + length
        self._timeless += 1
        return None


class KinetoTrace(_ChromeTrace):
    kind = "pytorch"

    def _records(self, event: Mapping[str, Any]) -> Iterator[Record]:
        category = event.get("cat")
        if event.get("ph") != "X" or not isinstance(category, str):
            return
        category = category.lower()
        when = self._when(event) if category in ("kernel", *_MEMORY, *_SPANS) else None
        if when is None:
            return
        if category == "kernel":
            yield _kernel(event, *when)
        elif category in _MEMORY:
            yield MemoryOperation(*_place(event), *when, correlation=_correlation(event))
        else:
            yield Span(str(event.get("name", "")), *when, on_gpu=_SPANS[category])

    def _of_host(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        category = str(event.get("cat")).lower()
        if category not in _OF_HOST or event.get("ph") != "X":
            return
        when, name, correlation = self._when(event), str(event.get("name", "")), _correlation(event)
        if when is None or correlation is None:
            return
        if category != _SYNC:
            yield Call(name, *when, correlation)
        elif name == _STREAM_WAITS or name in _HOST_WAITS:
            arguments = _mapping(event.get("args"))
            on, recorded = (
                _integer(arguments.get(f"wait_on_{what}")) for what in ("stream", "cuda_event_record_corr_id")
            )
            event_of = (str(on), recorded) if on is not None and on >= 0 and recorded is not None else None
            device, stream = _place(event)
            own = None if name == "Event Sync" else stream
            yield Wait(name in _HOST_WAITS, device, own, *when, correlation, event_of)

    def on_gpu(self, bounds: Sequence[float], process: int | None) -> list[float] | None:
        """Place times on the GPU by the calls that launched what ran."""
        called: dict[int, float] = {}
        ran: list[tuple[int, float, float]] = []
        for one in self.activity(host=True):
            if isinstance(one, Call) and "launch" in one.name.lower():
                called[one.correlation] = one.start_us
            elif isinstance(one, TracedLaunch) and one.correlation is not None:
                ran.append((one.correlation, one.start_us, one.end_us))
        return bounds_on_gpu(bounds, ((called[one], start, end) for one, start, end in ran if one in called))

    def _know(self, fields: Mapping[str, Any]) -> None:
        self.rank = _integer(_mapping(fields.get("distributedInfo")).get("rank"))
        devices = fields.get("deviceProperties")
        for device in devices if isinstance(devices, list) else ():
            index = _integer(_mapping(device).get("id"))
            if index is not None and isinstance(device.get("name"), str):
                self.gpus[index] = device["name"]


class SimulatedTrace(_ChromeTrace):
    """Times are those of the virtual clock."""

    kind = "simulated"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._rows: dict[tuple[str, str], tuple[int, str]] = {}  # of a process: device and stream

    def _records(self, event: Mapping[str, Any]) -> Iterator[Record]:
        row = (str(event.get("pid")), str(event.get("tid")))  # anything may stand there, also a list
        arguments = _mapping(event.get("args"))
        named = _ROW.match(str(arguments.get("name", ""))) if event.get("name") == "thread_name" else None
        when = self._when(event) if event.get("ph") == "X" else None
        if named:
            self._rows[row] = (int(named.group(2)), named.group(1))
            self.gpus[int(named.group(2))] = named.group(3)
        elif when:
            kernel = str(event.get("name", ""))
            device, stream = self._rows.get(row, (0, row[1]))
            yield TracedLaunch(
                *(kernel, is_communication(kernel), device, stream, *when),
                blocks=_product(arguments.get("grid")),
                threads=_integer(arguments.get("threads")),
                registers=_integer(arguments.get("registers")),
                static_shared_memory=_integer(arguments.get("static_shared")),
                dynamic_shared_memory=_integer(arguments.get("dynamic_shared")),
                process=_integer(event.get("pid")),
            )


def _kernel(event: Mapping[str, Any], start_us: float, end_us: float) -> TracedLaunch:
    arguments = _mapping(event.get("args"))
    kernel = str(event.get("name", ""))
    return TracedLaunch(
        *(kernel, is_communication(kernel), *_place(event), start_us, end_us),
        blocks=_product(arguments.get("grid")),
        threads=_product(arguments.get("block")),
        registers=_integer(arguments.get("registers per thread")),
        shared_memory=_integer(arguments.get("shared memory")),
        correlation=_correlation(event),
    )


def _correlation(event: Mapping[str, Any]) -> int | None:
    """Of a call, and of what it launched; 0 is none (CUPTI)."""
    return _integer(_mapping(event.get("args")).get("correlation")) or None


def _place(event: Mapping[str, Any]) -> tuple[int, str]:
    """Device and stream: Kineto's rows are these, and its arguments say them as well."""
    arguments = _mapping(event.get("args"))
    device = _integer(arguments.get("device"))
    if device is None:
        device = _integer(event.get("pid")) or 0
    stream = arguments.get("stream", event.get("tid", ""))
    return device, str(stream).replace("stream ", "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _integer(value: object) -> int | None:
    if isinstance(value, (int, str, float)):
        try:
            number = int(value)
        except (ValueError, OverflowError):
            return None
        return number if abs(number) < _LARGEST else None
    return None


def _product(values: object) -> int | None:
    """Of a grid or block, which older versions wrote as a string: "[8, 1, 1]"."""
    if isinstance(values, str):
        values = re.findall(r"\d+", values)
    if not isinstance(values, list) or not values:
        return None
    numbers = [_integer(value) for value in values]
    known = [number for number in numbers if number is not None]
    return prod(known) if len(known) == len(numbers) else None
