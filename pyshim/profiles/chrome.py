"""Read traces of the PyTorch profiler, and of our simulated GPU: both are Chrome traces.

ChromeFile reads JSON of gigabytes event by event, in bounded memory, plain or compressed by gzip, whole or torn. The
standard library's decoder reads one event after the other out of a window over the file. It is faster here than an
event-driven parser, and where a file ends in the middle of an event everything before that is there.

Kineto writes the traces of PyTorch (libkineto: output_json.cpp, CuptiActivity.cpp); simulated ones (SIMGPU_TRACE,
tools/simgpu/trace.c) have its words. They have changed: categories were `Kernel`, `Memcpy` and `Memset` until PyTorch
1.11; numbers have come as strings; shared memory is one number, the sum of the static and the dynamic part. AMD's
events have no grid in some versions. The events are in no order. A kernel has its `priority` from CUDA 13.1 on.

Waits are rows of the category cuda_sync, recorded with enable_cuda_sync_events (CuptiActivity.h, class
CudaSyncActivity; cupti_strings.cpp for their names); each poll by cudaEventQuery is a row "Event Sync". The event that
is waited for is -1 where CUPTI did not send its record: always from CUDA 12.9 on (pytorch/kineto#1552), unless the
program itself asks CUPTI for these. Waits of streams that nothing ran on are left out (CuptiActivityProfiler.cpp,
logDeferredEvents).
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, BinaryIO

from pyshim.errors import OverlapError
from pyshim.profiles.kernel_names import is_communication
from pyshim.profiles.record import (
    Activity,
    Call,
    MemoryOperation,
    NamedRange,
    Trace,
    TracedGpu,
    TracedLaunch,
    Wait,
    architecture,
    priority,
)

_BYTES = 1 << 20
_COMPRESSED = 1 << 16  # becomes 64 MiB at the very worst
_LONGEST = 1 << 24  # characters of one event, or of one value beside them
# Nor may a small file keep us busy for hours: traces become 10 to 50 times as large, of zeros gzip makes 1,000 times as
# much.
_FEW, _TIMES = 1 << 26, 400
_FIELDS = ("deviceProperties", "distributedInfo")  # that somebody asks for
_SPACE = re.compile(r"[\s,]*")
# As C prints a float that is none; Kineto has let it through ("blocks per SM", with a GPU that it does not know).
_NO_NUMBER = re.compile(r"-?(inf|nan)\b", re.IGNORECASE)
_TEXT_OR_NONE = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|-?(?:inf|nan)\b', re.IGNORECASE | re.DOTALL)
_decode = json.JSONDecoder(strict=False).raw_decode

_MEMORY = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
_LATEST = 2.0**53  # microseconds: a clock that says more has lost the single ones
_LARGEST = 1 << 63  # of any number of a launch
_SPANS = {"user_annotation": False, "gpu_user_annotation": True}
_SYNC, _OPERATOR = "cuda_sync", "cpu_op"
_KNOWN = frozenset(("kernel", *_MEMORY, *_SPANS, _SYNC, "cuda_runtime", "cuda_driver", "runtime"))
_STREAM_WAITS, _HOST_WAITS = "Stream Wait Event", ("Stream Sync", "Event Sync")
_ROW = re.compile(r"stream \d+, device (\d{1,6}) \((.*)\)")


class Torn(Exception):
    """The file goes no further; says how it ends, as the end of a sentence."""


class _Bomb(Exception):
    """As Torn: few bytes become very many."""


class ChromeFile:
    """The trace event format: an object with `traceEvents`, or the bare array of events.

    fields: what the object says beside its events, of what we ask for, complete once events() has come to its end;
    torn: how it ends instead, None where it is whole.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fields: dict[str, Any] = {}
        self.torn: str | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of the file. Raises OSError."""
        self.fields, self.torn = {}, None
        with open(self.path, "rb") as file:
            text = _Text(file)
            try:
                yield from self._document(text)
            except Torn as torn:
                self.torn = str(torn)

    def _document(self, text: _Text) -> Iterator[dict[str, Any]]:
        if text.take("["):
            yield from self._array(text)
            return
        text.expect("{")
        while not text.take("}"):
            key = text.value()
            text.expect(":")
            if key == "traceEvents" and text.take("["):
                yield from self._array(text)
            else:
                value = text.value()
                if key in _FIELDS:
                    self.fields[str(key)] = value

    def _array(self, text: _Text) -> Iterator[dict[str, Any]]:
        while not text.take("]"):
            event = text.value()
            if isinstance(event, dict):
                yield event


class _Text:
    """A window over the characters of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._chunks = _characters(file)
        self._text = ""
        self._at = 0
        self._ending = "it ends in the middle"

    def take(self, character: str) -> bool:
        """Return whether the sign comes next, and go behind it if it does."""
        if self._next() != character:
            return False
        self._at += 1
        return True

    def expect(self, character: str) -> None:
        if not self.take(character):
            raise Torn(f"it is no JSON where {character} should be")

    def value(self) -> Any:
        """Return any JSON value."""
        if not self._next():
            raise Torn(self._ending)
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except RecursionError:
                raise Torn("it is nested too deep") from None
            except json.JSONDecodeError as error:
                number = _NO_NUMBER.match(self._text, error.pos)
                if number:
                    # All of the window at once: it is copied, and a trace may have millions of them.
                    left, self._at = self._text[self._at :], 0
                    self._text = _TEXT_OR_NONE.sub(lambda found: found[1] or "null", left)
                    if self._text == left:
                        raise Torn("it is no JSON") from None
                elif len(self._text) - self._at > _LONGEST:
                    raise Torn("it is no JSON") from None
                elif not self._more():
                    raise Torn(self._ending) from None
                continue
            except ValueError:  # a number of thousands of digits
                raise Torn("it is no JSON") from None
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value

    def _next(self) -> str:
        """Return the next character that means something, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Twice as much as is left, or a long value would be tried very often."""
        parts = [self._text[self._at :]]
        wanted = max(1, len(parts[0]))
        try:
            while wanted > 0:
                parts.append(next(self._chunks))
                wanted -= len(parts[-1])
        except StopIteration:
            pass
        except zlib.error:
            self._ending = "what follows cannot be decompressed"
        except _Bomb as bomb:
            raise Torn(str(bomb)) from None
        self._text, self._at = "".join(parts), 0
        return len(parts) > 1


def _characters(file: BinaryIO) -> Iterator[str]:
    """Whatever a kernel's name consists of: what is no UTF-8 becomes a question mark."""
    decoder = getincrementaldecoder("utf-8-sig")("replace")
    for data in _bytes(file):
        text = decoder.decode(data)
        if text:
            yield text


def _bytes(file: BinaryIO) -> Iterator[bytes]:
    """Unpacked, to the last byte that there is. Raises zlib.error."""
    compressed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not compressed:
        yield from iter(lambda: file.read(_BYTES), b"")
        return
    member = zlib.decompressobj(31)
    read = unpacked = 0
    for data in iter(lambda: file.read(_COMPRESSED), b""):
        read += len(data)
        while data:
            found = member.decompress(data)
            unpacked += len(found)
            if unpacked > max(_FEW, _TIMES * read):
                raise _Bomb(f"it unpacks to more than {_TIMES} times its size, as no trace does")
            yield found
            data = member.unused_data
            if member.eof:
                member = zlib.decompressobj(31)


class _ChromeTrace(Trace):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._timeless = 0  # events

    def activity(self) -> Iterator[Activity]:
        self.warnings = []
        self._timeless = 0
        file = ChromeFile(self.path)
        try:
            for event in file.events():
                yield from self._records(event)
        except OSError as error:
            raise OverlapError(f"{self.path} cannot be read: {error.strerror or error}") from error
        self.torn = file.torn is not None
        if file.torn:
            self.warnings.append(f"{self.path}: {file.torn}: it was read as far as it goes")
        if self._timeless:
            self.warnings.append(f"{self.path}: {self._timeless:,} events have times of no clock, and were left out")
        self._know(file.fields)

    def _records(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        raise NotImplementedError

    def _know(self, fields: Mapping[str, Any]) -> None:
        """Keep the fields of the file beside its events."""

    def _when(self, event: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return start and end; None for what has neither."""
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

    def _records(self, event: Mapping[str, Any]) -> Iterator[Activity]:
        category = event.get("cat")
        if event.get("ph") != "X" or not isinstance(category, str):
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
        elif category in _MEMORY:
            yield MemoryOperation(*_place(event), *when, correlation=_correlation(event))
        elif category in _SPANS:
            yield NamedRange(name, *when, on_gpu=_SPANS[category])
        elif correlation := _correlation(event):
            if category != _SYNC:
                yield Call(name, *when, correlation)
            elif name == _STREAM_WAITS or name in _HOST_WAITS:
                yield _wait(event, name, *when, correlation)

    def _know(self, fields: Mapping[str, Any]) -> None:
        self.rank = _integer(_mapping(fields.get("distributedInfo")).get("rank"))
        devices = fields.get("deviceProperties")
        for device in map(_mapping, devices if isinstance(devices, list) else ()):
            index, name = _integer(device.get("id")), device.get("name")
            if index is not None and isinstance(name, str):
                capability = architecture(*(_integer(device.get(f"compute{part}")) for part in ("Major", "Minor")))
                self.gpus[index] = TracedGpu(name, capability, _integer(device.get("numSms")) or 0)


class SimulatedTrace(KinetoTrace):
    """Of our simulated GPU: times are those of the virtual clock, and several processes may share a file."""

    kind = "simulated"

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


def _kernel(event: Mapping[str, Any], kernel: str, start_us: float, end_us: float) -> TracedLaunch:
    arguments = _mapping(event.get("args"))
    return TracedLaunch(
        *(kernel, is_communication(kernel), *_place(event), start_us, end_us),
        blocks=_product(arguments.get("grid")),
        threads=_product(arguments.get("block")),
        registers=_integer(arguments.get("registers per thread")),
        shared_memory=_integer(arguments.get("shared memory")),
        correlation=_correlation(event),
        priority=priority(_integer(arguments.get("priority"))),
        graph=bool(_integer(arguments.get("graph node id"))),
    )


def _wait(event: Mapping[str, Any], name: str, start_us: float, end_us: float, correlation: int) -> Wait:
    arguments = _mapping(event.get("args"))
    on, recorded = (_integer(arguments.get(f"wait_on_{what}")) for what in ("stream", "cuda_event_record_corr_id"))
    event_of = (str(on), recorded) if on is not None and on >= 0 and recorded is not None else None
    device, stream = _place(event)
    own = None if name == "Event Sync" else stream
    return Wait(name in _HOST_WAITS, device, own, start_us, end_us, correlation, event_of)


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
