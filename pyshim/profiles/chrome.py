"""Read traces of the PyTorch profiler, of JAX, and of our simulated GPU: all are Chrome traces.

Kineto writes the traces of PyTorch (libkineto: output_json.cpp, CuptiActivity.cpp); simulated ones (SIMGPU_TRACE,
tools/simgpu/trace.c) have its words. They have changed: categories were `Kernel`, `Memcpy` and `Memset` until PyTorch
1.11; numbers have come as strings; shared memory is one number, the sum of the static and the dynamic part. AMD's
events have no grid in some versions. The events are in no order. A kernel has its `priority` from CUDA 13.1 on, and
what it communicates (`Collective name` and more) from PyTorch 2.4 on.

Waits are rows of the category cuda_sync, recorded with enable_cuda_sync_events (CuptiActivity.h, class
CudaSyncActivity; cupti_strings.cpp for their names); each poll by cudaEventQuery is a row "Event Sync". The event that
is waited for is -1 where CUPTI did not send its record: always from CUDA 12.9 on (pytorch/kineto#1552), unless the
program itself asks CUPTI for these. Waits of streams that nothing ran on are left out (CuptiActivityProfiler.cpp,
logDeferredEvents).

JAX's (XLA's, perfetto_trace.json.gz beside the .xplane.pb) have no categories: jax.py.

An event that is no JSON costs itself: reading goes on where the next one begins. In a large file, most events are of no
use here (operators, Python frames, arrows), and the others repeat each other but for their times: rows.py finds and
reads these without the decoder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

from pyshim.counts import counted
from pyshim.profiles import jax
from pyshim.profiles.chrome_file import HIP_FIELDS, MEMORY, SORTS, SYNC, ChromeFile
from pyshim.profiles.kernel_names import is_communication
from pyshim.profiles.record import (
    COPY,
    DEVICE,
    KERNEL,
    PAGEABLE,
    PINNED,
    Activity,
    Call,
    Collective,
    MemoryOperation,
    NamedRange,
    TracedGpu,
    TracedLaunch,
    Wait,
    architecture,
    priority,
)
from pyshim.profiles.store import Store, StoredTrace
from pyshim.profiles.window import Window, line_of
from pyshim.unreadable import unreadable

_LATEST = 2.0**53  # microseconds: a clock that says more has lost the single ones
_LARGEST = 1 << 63  # of any number of a launch
_SPANS = {"user_annotation": False, "gpu_user_annotation": True}
_OPERATOR = "cpu_op"
_KNOWN = frozenset(("kernel", *MEMORY, *_SPANS, SYNC, "cuda_runtime", "cuda_driver", "runtime"))
_STREAM_WAITS, _HOST_WAITS = "Stream Wait Event", ("Stream Sync", "Event Sync")
_ROW = re.compile(r"stream \d+, device (\d{1,6}) \((.*)\)")
# c10's names of types, as in torch/csrc/distributed/c10d/ParamCommsUtils.hpp
_BYTES_OF = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
}


class _ChromeTrace(StoredTrace):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._timeless = 0  # events
        self._first_timeless = 0  # its place

    def read(self, store: Store) -> None:
        self.warnings, self.missing = [], []
        self.left_out.clear()
        self._timeless = self._first_timeless = 0
        file = ChromeFile(self.path)
        try:
            for event in file.events(self._reader(store)):
                before = self._timeless
                for one in self._records(event):
                    store.add(one)
                if self._timeless and not before:
                    self._first_timeless = file.place
            self._note_left_out(file)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self.ending = file.torn or ""
        self._know(file.fields)

    def _note_left_out(self, file: ChromeFile) -> None:
        """Say which events were left out, and where the first of them is. Raises OSError."""
        self.left_out += file.of_use
        for count, one, more, said, place in (
            (file.broken, "event is", "events are", "no JSON ({}), and left out", file.first_broken),
            (self._timeless, "event has", "events have", "no usable time ({}): left out", self._first_timeless),
        ):
            if not count:
                continue
            line = f"line {line_of(self.path, place):,}"
            self.first_left_out = self.first_left_out or line
            where = f"{'the first ' if count > 1 else ''}in {line}"
            self.warnings.append(f"{self.path}: {counted(count, one, more)} {said.format(where)}")

    def _reader(self, store: Store) -> Callable[[Window], bool] | None:
        """Return what reads the events of a large file faster."""
        return None

    def _records(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        raise NotImplementedError

    def _know(self, fields: Mapping[str, Any]) -> None:
        """Keep the fields of the file beside its events."""

    def _when(self, event: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return start and end; None, and count it, where one of them is no time of a clock."""
        try:
            start, length = float(event["ts"]), float(event.get("dur", 0))
            if abs(start) < _LATEST and 0 <= length < _LATEST:
                return start, start + length
        except (KeyError, TypeError, ValueError, OverflowError):
            pass
        self._timeless += 1
        category = str(event.get("cat", "")).lower()
        is_of_xla = "kernel_details" in _mapping(event.get("args"))
        sort = KERNEL if is_of_xla else SORTS.get(category)
        if sort:
            self.leave_out(sort, str(event.get("name", "")))
        return None


class KinetoTrace(_ChromeTrace):
    kind = "pytorch"
    records_calls = "torch.profiler records them with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    records_waits = (
        "torch.profiler records them with enable_cuda_sync_events, and from CUDA 12.9 on with one call of CUPTI, too"
    )
    # As in docs/how-to/training.md, which a test compares.
    records_code: tuple[str, ...] = (
        "config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)",
        "with torch.profiler.profile(experimental_config=config) as profiler:",
        '    ctypes.CDLL("libcupti.so.13").cuptiActivityEnable(36)  # from CUDA 12.9 on; 13: its major version',
    )
    records_events = "from CUDA 12.9 on, torch.profiler records for which events streams wait after one call of CUPTI"
    records_events_code = records_code[1:]

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._xla = jax.Rows()
        self._host: object = None  # the first process whose calls are in it

    def read(self, store: Store) -> None:
        self._xla, self._host = jax.Rows(), None
        super().read(store)
        if self._xla.devices:
            self.kind = "jax"
            self.records_calls, self.records_waits, self.records_code = jax.RECORDS_CALLS, "", ()
            self.records_events, self.records_events_code = "", ()
            self.gpus = {**{device: TracedGpu("") for device in self._xla.devices}, **self.gpus}
        self.python = self.python or any(_is_of_torch(form) for form in store.works.forms)
        calls = [form.name for form in store.calls.forms]
        had_work = any(sort in (KERNEL, COPY) for sort, _ in self.left_out)
        if self.kind == "pytorch" and self.python and not store.works.forms and not had_work:
            self.missing.append(
                f"{self.path} is of PyTorch and has nothing of a GPU: PyTorch saw no GPU (torch.cuda.is_available() "
                f"says whether it does), or what the GPU did was not recorded: {self.records_calls}"
            )
        if store.works.forms and not calls:
            self.missing.append(f"{self.path} has no calls that launched its work: {self.records_calls}")
        names = [gpu.name for gpu in self.gpus.values()]
        self.pid = _integer(self._host)
        self.hip = self.hip or any(name.startswith("hip") for name in calls) or any("AMD" in name for name in names)

    def _reader(self, store: Store) -> Callable[[Window], bool] | None:
        reader: list[Callable[[Window], bool]] = []

        def read_on(window: Window) -> bool:
            if not reader:
                from pyshim.profiles.rows import Rows  # which small traces do not need

                reader.append(Rows(self._record_of, store).read_on)
            return reader[0](window)

        return read_on

    def _records(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        category = event.get("cat")
        if not isinstance(category, str):
            yield from self._xla.records(event, self._when)
            return
        if event.get("ph") != "X":
            return
        category = category.lower()
        if category == _OPERATOR:
            self.python = True
        if category not in _KNOWN:
            return
        when = self._when(event)
        if when is None:
            return
        name = sys.intern(str(event.get("name", "")))  # a trace repeats few names
        if category == "kernel":
            yield _kernel(event, name, *when)
        elif category in MEMORY:
            yield MemoryOperation(*_place(event), *when, _rank(event), _correlation(event), _memory(name))
        elif category in _SPANS:
            process = _rank(event) if _SPANS[category] else self.process(event)
            yield NamedRange(name, *when, _SPANS[category], process)
        elif correlation := _correlation(event):
            if category != SYNC:
                yield Call(name, *when, correlation, self.process(event))
            elif name == _STREAM_WAITS or name in _HOST_WAITS:
                yield _wait(event, name, *when, correlation)

    def process(self, event: Mapping[str, Any]) -> int | None:
        """Return which process called: None for the first, as a trace of Kineto is of one; ranks.py for others."""
        rank = _rank(event)
        if rank is not None:
            return rank
        pid = event.get("pid")
        if self._host is None:
            self._host = pid
        return None if pid == self._host else _integer(pid)

    def _record_of(self, event: Mapping[str, Any]) -> Activity | None:
        """Return the one record that an event is, if it is one."""
        return next(self._records(event), None)

    def _know(self, fields: Mapping[str, Any]) -> None:
        distributed = _mapping(fields.get("distributedInfo"))
        # Of torch.distributed, also where no operators were recorded.
        self.python = self.python or "backend" in distributed
        self.rank, self.world_size = (_integer(distributed.get(name)) for name in ("rank", "world_size"))
        self.host = str(fields.get("host_name") or "")
        self.hip = any(name in fields for name in HIP_FIELDS)
        devices = fields.get("deviceProperties")
        for device in map(_mapping, devices if isinstance(devices, list) else ()):
            index, name = _integer(device.get("id")), device.get("name")
            if index is not None and isinstance(name, str):
                capability = architecture(*(_integer(device.get(f"compute{part}")) for part in ("Major", "Minor")))
                self.gpus[index] = TracedGpu(name, capability, _integer(device.get("numSms")) or 0)


class SimulatedTrace(KinetoTrace):
    """Of our simulated GPU: times are those of the virtual clock, and several processes may share a file."""

    kind = "simulated"

    def _reader(self, store: Store) -> Callable[[Window], bool] | None:
        return None

    def _records(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        arguments, process = _mapping(event.get("args")), _integer(event.get("pid"))
        named = _ROW.match(str(arguments.get("name", ""))) if event.get("name") == "thread_name" else None
        if named:
            self.gpus[int(named.group(1))] = TracedGpu(named.group(2))
        for record in super()._records(event):
            if isinstance(record, TracedLaunch):
                static, dynamic = (_integer(arguments.get(f"{kind}_shared")) for kind in ("static", "dynamic"))
                record = record._replace(static_shared_memory=static, dynamic_shared_memory=dynamic)
            yield record._replace(process=process)


def _is_of_torch(form: object) -> bool:
    """Not by ProfilerStep: a library in CUDA that Python calls runs under torch.profiler, too, as demo-stencil did."""
    if not isinstance(form, TracedLaunch):
        return False
    return form.collective is not None or "at::native" in form.kernel or "_ZN2at6native" in form.kernel


def _kernel(event: Mapping[str, Any], kernel: str, start_us: float, end_us: float) -> TracedLaunch:
    arguments = _mapping(event.get("args"))
    return TracedLaunch(
        *(kernel, is_communication(kernel), *_place(event), start_us, end_us),
        blocks=_product(arguments.get("grid")),
        threads=_product(arguments.get("block")),
        registers=_integer(arguments.get("registers per thread")),
        shared_memory=_integer(arguments.get("shared memory")),
        process=_rank(event),
        correlation=_correlation(event),
        priority=priority(_integer(arguments.get("priority"))),
        graph=bool(_integer(arguments.get("graph node id"))),
        collective=_collective(arguments) if "Collective name" in arguments else None,
    )


def _collective(arguments: Mapping[str, Any]) -> Collective:
    into, out = (_integer(arguments.get(f"{which} msg nelems")) for which in ("In", "Out"))
    dtype = str(arguments.get("dtype") or "")
    elements, size = max(into or 0, out or 0), _BYTES_OF.get(dtype)
    return Collective(
        str(arguments["Collective name"]),
        bytes=elements * size if size and elements else None,
        elements=into,
        dtype=dtype,
        group=str(arguments.get("Process Group Name", "")),
        group_size=_integer(arguments.get("Group size")),
        sequence=_integer(arguments.get("Seq")),
    )


def _wait(event: Mapping[str, Any], name: str, start_us: float, end_us: float, correlation: int) -> Wait:
    arguments = _mapping(event.get("args"))
    on, recorded = (_integer(arguments.get(f"wait_on_{what}")) for what in ("stream", "cuda_event_record_corr_id"))
    event_of = (str(on), recorded) if on is not None and on >= 0 and recorded is not None else None
    device, stream = _place(event)
    own = None if name == "Event Sync" else stream
    return Wait(name in _HOST_WAITS, device, own, start_us, end_us, correlation, event_of, _rank(event))


def _rank(event: Mapping[str, Any]) -> int | None:
    """Return the rank that a program which merged files wrote beside the correlation."""
    arguments = _mapping(event.get("args"))
    return _integer(arguments["rank"]) if "rank" in arguments and "correlation" in arguments else None


def _memory(name: str) -> str:
    """Return the memory in Memcpy HtoD (Pageable -> Device), Memcpy PtoP (Device -> Device), Memset (Device)."""
    if "Pageable" in name or "Pinned" in name:
        return PAGEABLE if "Pageable" in name else PINNED
    return DEVICE if "(Device -> Device)" in name or name.startswith("Memset") else ""


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
    return device, sys.intern(str(stream).replace("stream ", ""))


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
