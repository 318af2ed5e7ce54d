"""Which kind of trace a file is: told by its content, whatever it is called."""

from __future__ import annotations

import os
import re
import stat
import zlib

from pyshim.errors import OverlapError
from pyshim.traces.kineto import KinetoTrace, SimulatedTrace
from pyshim.traces.nsys import MAGIC, NsysTrace
from pyshim.traces.record import Trace

_HEAD = 1 << 16
# The first event of SIMGPU_TRACE names the process so.
_SIMULATED = re.compile(r'^\[\s*\{"name": "process_name".*?"simulated, rule ')
_TIMELINE = re.compile(r'^\{"kernel": "[^\n]*"start_us": ')
# An object with keys, or an array of events: other JSON has no other way to be told.
_CHROME = re.compile(r'^(\{\s*("|$)|\[\s*(\{|$|\]))')


def open_trace(path: str) -> Trace:
    """Open a trace. Raises OverlapError where the file cannot be read, or is of no known kind."""
    head = _head(path)
    if head.startswith(MAGIC):
        return NsysTrace(path)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if _SIMULATED.match(text):
        return SimulatedTrace(path)
    if _TIMELINE.match(text):
        hint = "record SIMGPU_TRACE=FILE instead, which names the GPU as well"
        raise OverlapError(f"{path} is what SIMGPU_TIMELINE writes", hint)
    if _CHROME.match(text):
        return KinetoTrace(path)
    hint = "known are: JSON of torch.profiler (export_chrome_trace), sqlite of nsys export, SIMGPU_TRACE"
    if path.endswith((".nsys-rep", ".qdrep")):
        hint = f"nsys export --type sqlite {path}"
    raise OverlapError(f"{path} is {'no trace that we can read' if head else 'empty'}", hint)


def _head(path: str) -> bytes:
    try:
        kind = os.stat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # it would be waited for, and cannot be read twice
            raise OverlapError(f"{path} is a pipe, a socket or a device", "keep the trace in a file")
        with open(path, "rb") as file:
            data = file.read(_HEAD)
    except OSError as error:
        raise OverlapError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(31).decompress(data, _HEAD)
    except zlib.error:
        return b"not what gzip writes"
