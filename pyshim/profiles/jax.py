"""What the traces of JAX (XLA's profiler) say: perfetto_trace.json.gz and *.trace.json.gz, in Chrome's form.

Events have no category. What they are is said by their rows: a process `/device:GPU:0` is a GPU, and its rows called
`Stream #13(Compute)` are its streams; rows of other names (XLA Ops, XLA Modules, Steps) sum up what ran on them. What a
kernel was launched with is one string, `kernel_details`: "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1
block:128,1,1 occ_pct:100". Calls of the driver are rows of `/host:CPU`, with the same correlation_id as what they
launched; what was waited for is told nowhere.
(xla/backends/profiler/gpu/cupti_collector.cc, xla/tsl/profiler/convert/trace_events_to_json.cc)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

from pyshim.profiles.kernel_names import is_communication
from pyshim.profiles.record import Activity, Call, MemoryOperation, NamedRange, TracedLaunch

RECORDS_CALLS = "jax.profiler.trace(DIR, create_perfetto_trace=True) records them with host_tracer_level of 2 or more"
_DEVICE = re.compile(r"/device:GPU:(\d{1,6})")
_STREAM = re.compile(r"Stream #(\d{1,18})")
_COPIES = re.compile(r"(Memcpy|Memset)|\bmem(cpy|set)", re.IGNORECASE)
_DETAIL = re.compile(r"(\w+):([\d,]+)")
_CALLS = re.compile(r"(cuda|cu|hip)[A-Z]\w*")
_STEPS = "Steps"

When = Callable[[Mapping[str, Any]], "tuple[float, float] | None"]


class Rows:
    """Which rows are streams of which GPU: told by the metadata that XLA writes before the events."""

    def __init__(self) -> None:
        self.devices: dict[int, None] = {}
        self._device: dict[object, int] = {}  # by process
        self._name: dict[object, str] = {}  # by process and row
        self._hosts: set[object] = set()

    def records(self, event: Mapping[str, Any], when: When) -> Iterator[Activity]:
        """Yield what an event without a category stands for."""
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        process, row = str(event.get("pid")), (str(event.get("pid")), str(event.get("tid")))
        name = str(event.get("name", ""))
        if event.get("ph") == "M":
            self._know(name, str(arguments.get("name", "")), process, row)
        elif event.get("ph") == "X" and (process in self._device or process in self._hosts):
            times = when(event)
            if times is not None:
                yield from self._record(sys.intern(name), arguments, process, row, times)

    def _know(self, kind: str, name: str, process: str, row: tuple[str, str]) -> None:
        device = _DEVICE.match(name)
        if kind == "thread_name":
            self._name[row] = name
        elif kind == "process_name" and device:
            self._device[process] = int(device[1])
            self.devices[int(device[1])] = None
        elif kind == "process_name" and name.startswith("/host:"):
            self._hosts.add(process)

    def _record(
        self, name: str, arguments: dict[str, Any], process: str, row: tuple[str, str], times: tuple[float, float]
    ) -> Iterator[Activity]:
        correlation = _integer(arguments.get("correlation_id"))
        if process in self._hosts:
            if correlation and _CALLS.match(name):
                yield Call(name, *times, correlation)
            return
        device, named = self._device[process], self._name.get(row, "")
        stream = _STREAM.match(named)
        if named == _STEPS:
            yield NamedRange(f"step {name}", *times, on_gpu=True)
        elif stream and _COPIES.match(name):
            yield MemoryOperation(device, stream[1], *times, correlation=correlation)
        elif stream:
            yield _kernel(name, str(arguments.get("kernel_details", "")), device, stream[1], times, correlation)


def _kernel(
    name: str, details: str, device: int, stream: str, times: tuple[float, float], correlation: int | None
) -> TracedLaunch:
    said = {key: [int(number) for number in value.split(",") if number] for key, value in _DETAIL.findall(details)}
    one = {key: values[0] for key, values in said.items() if len(values) == 1 and values[0] < 1 << 31}
    static, dynamic = one.get("static_shared"), one.get("dynamic_shared")
    return TracedLaunch(
        *(name, is_communication(name), device, sys.intern(stream), *times),
        blocks=_product(said.get("grid")),
        threads=_product(said.get("block")),
        registers=one.get("regs"),
        static_shared_memory=static,
        dynamic_shared_memory=dynamic,
        shared_memory=None if static is None or dynamic is None else static + dynamic,
        correlation=correlation,
    )


def _product(sizes: list[int] | None) -> int | None:
    return prod(sizes) if sizes and all(size < 1 << 32 for size in sizes) and len(sizes) == 3 else None


def _integer(value: object) -> int | None:
    """Return a number that was written as one, or as a string; None for 0."""
    text = str(value)
    return (int(text) or None) if text.isdecimal() and text.isascii() and len(text) < 19 else None
